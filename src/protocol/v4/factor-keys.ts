// Packs the stored secret of an activation: KEY_ACTIVATION_SECRET and the factor keys that can be replaced (v4 §7.5).
//
//   stored = 0x01 ‖ KEY_ACTIVATION_SECRET (32) ‖ flags ‖ the keys whose flags are set, 32 bytes each, in the order of the flags
import { concat } from '../../lib/bytes.ts'
import type { Named } from '../protocol.ts'

/** The keys of one factor, 32 bytes each. While a key is being replaced, both are valid until the phone has used one of them. */
export interface FactorKeys<F extends ReplaceableFactor> {
  /** Absent once biometry has been removed (v4 §9.13). */
  readonly current?: FactorKey<F>
  readonly next?: FactorKey<F>
}

/** The key of a factor, 32 bytes. */
export type FactorKey<F extends ReplaceableFactor> = Named<Uint8Array, F>

type ActivationSecret = { readonly keyActivationSecret: KeyActivationSecret } & KeysOfFactors
type KeysOfFactors = { readonly [F in ReplaceableFactor]: FactorKeys<F> }

/** 32 bytes. */
export type KeyActivationSecret = Named<Uint8Array, 'KEY_ACTIVATION_SECRET'>

/** Factors whose keys can be replaced. */
export type ReplaceableFactor = 'knowledge' | 'biometry'

/** Packs the secret for storage. */
export function createActivationSecret({ keyActivationSecret, knowledge, biometry }: ActivationSecret): Uint8Array {
  const keys = [knowledge.current, knowledge.next, biometry.current, biometry.next]
  const flags = keys.reduce((bits, key, i) => (key === undefined ? bits : bits | (1 << i)), 0)
  const present = keys.filter((key) => key !== undefined)
  return concat(Uint8Array.of(FORMAT), keyActivationSecret, Uint8Array.of(flags), ...present)
}

/** Unpacks a stored secret. Throws for other bytes, because they come only from pawl's own storage. */
export function parseActivationSecret(stored: Uint8Array): ActivationSecret {
  const flags = stored[1 + KEY_LENGTH] ?? 0
  let position = 2 + KEY_LENGTH
  const take = (bit: number): Uint8Array | undefined => {
    if ((flags & (1 << bit)) === 0) return undefined
    position += KEY_LENGTH
    return stored.subarray(position - KEY_LENGTH, position)
  }
  const keyActivationSecret = stored.subarray(1, 1 + KEY_LENGTH)
  const [knowledge, biometry] = [createFactorKeys<'knowledge'>(take(0), take(1)), createFactorKeys<'biometry'>(take(2), take(3))]
  if (stored[0] !== FORMAT || position !== stored.length) throw new TypeError('no secret of an activation')
  return { keyActivationSecret, knowledge, biometry }
}

/** Sets the key of password/change as the next one, in place of an earlier next one (v4 §9.12). */
export const replaceKnowledgeKey = (stored: Uint8Array, key: FactorKey<'knowledge'>): Uint8Array =>
  replaceKeys(stored, 'knowledge', ({ current }) => createFactorKeys(current, key))

/** Sets the key of biometry/add as the next one, or as the current one if the activation has none (v4 §9.13). */
export const addBiometryKey = (stored: Uint8Array, key: FactorKey<'biometry'>): Uint8Array =>
  replaceKeys(stored, 'biometry', ({ current }) => (current ? { current, next: key } : { current: key }))

/** Removes the keys of biometry, for biometry/remove (v4 §9.13). */
export const removeBiometryKeys = (stored: Uint8Array): Uint8Array => replaceKeys(stored, 'biometry', () => ({}))

/**
 * The new stored secret after a match with the current key (`used` 0) or the next one (1). Only the used key stays, because the phone has shown that
 * it has this one (v4 §7.5). Undefined when nothing changes.
 */
export function settleFactorKeys(stored: Uint8Array, factor: ReplaceableFactor, used: number): Uint8Array | undefined {
  if (parseActivationSecret(stored)[factor].next === undefined) return undefined
  return replaceKeys(stored, factor, ({ current, next }) => createFactorKeys(used === 1 ? next : current, undefined))
}

function replaceKeys<F extends ReplaceableFactor>(
  stored: Uint8Array,
  factor: F,
  replace: (keys: FactorKeys<F>) => FactorKeys<F>,
): Uint8Array {
  const secret = parseActivationSecret(stored)
  const keys: KeysOfFactors = secret
  return createActivationSecret({ ...secret, [factor]: replace(keys[factor]) })
}

const createFactorKeys = <F extends ReplaceableFactor>(
  current: FactorKey<F> | undefined,
  next: FactorKey<F> | undefined,
): FactorKeys<F> => ({
  ...(current && { current }),
  ...(next && { next }),
})

const FORMAT = 1
const KEY_LENGTH = 32
