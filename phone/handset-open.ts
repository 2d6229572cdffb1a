// Opens a handset: a new one, a stored one, or one that moves from 3.3 to 4.0 (v4 §10).
import { createGenerationOf3, type StateOf3 } from './v3/handset.ts'
import { createGenerationOf4, createPhoneOf4 } from './v4/handset.ts'
import { createHandset, type Handset, type HandsetIdentity, type HandsetRecord, type Unlock } from './handset.ts'
import { hideKey } from './password.ts'
import { NO_BODY } from './http.ts'
import type { PhoneState } from './v3/state.ts'
import type { PhoneAlgorithm } from './v4/crypto.ts'
import { type V4PhoneState, v4KeysOf } from './v4/state.ts'

/** Makes a phone that was never bound. `persist` stores its record. */
export function newHandset(identity: HandsetIdentity, persist: (record: HandsetRecord) => void): Handset {
  const generation = createGeneration(identity, undefined)
  const isOf3 = identity.version !== '4.0'
  const record: HandsetRecord = {
    identity,
    state: generation.state,
    knowledge: undefined,
    isConfirmed: isOf3,
    isBiometryOn: false,
  }
  return createHandset({ record, generation, persist: () => persist(record) })
}

export function openHandset(record: HandsetRecord, persist: () => void): Handset {
  const generation = createGeneration(record.identity, record.state)
  record.state = generation.state
  return createHandset({ record, generation, persist })
}

const createGeneration = (identity: HandsetIdentity, state: HandsetRecord['state'] | undefined) =>
  identity.version === '4.0'
    ? createGenerationOf4(identity, state as V4PhoneState | undefined)
    : createGenerationOf3(identity, state as StateOf3 | undefined)

export interface Upgraded {
  readonly record: HandsetRecord
  /** The fingerprint; undefined when an earlier attempt had agreed on the keys. */
  readonly fingerprint: string | undefined
}

/**
 * Moves a phone of 3.3 to 4.0. Calls `keep` with the new record before it asks the server to switch, so that a lost answer loses no phone:
 * the next attempt gets that record as `pending`, and finds out which of the two records the server knows.
 */
export async function upgradeHandset(
  old: Handset,
  algorithm: PhoneAlgorithm,
  { password, pending, keep }: Unlock & { pending: HandsetRecord | undefined; keep: (record: HandsetRecord) => void },
): Promise<Upgraded> {
  const { identity } = old.record
  if (identity.version !== '3.3') throw new Error(`a phone of ${identity.version} cannot move to 4.0`)
  if (password === undefined) throw new Error('the password of the phone is needed')
  if (pending !== undefined && (await isSwitched(pending))) return { record: pending, fingerprint: undefined }
  const next: HandsetIdentity = { ...identity, version: '4.0', algorithm }
  const phone = createPhoneOf4(next)
  phone.state.activationId = old.record.state.activationId
  const start = { path: '/pa/v4/upgrade/start', resourceId: '/pa/upgrade/start' }
  const authorize = (body: Uint8Array) => old.sign({ ...start, body: Buffer.from(body).toString('utf8') }, { password }).headers
  const { fingerprint } = await old.exchange(await phone.prepareUpgradeStart(authorize))
  // The numeric counter goes on from its value in 3.3 (v4 §10.4).
  phone.state.counter = (old.record.state as PhoneState).counter
  const { knowledge } = v4KeysOf(phone.state)
  phone.state.keys = { ...v4KeysOf(phone.state), secret: NO_BODY, knowledge: NO_BODY, biometry: NO_BODY }
  const record: HandsetRecord = {
    identity: next,
    state: phone.state,
    knowledge: hideKey(knowledge, password),
    isConfirmed: true,
    isBiometryOn: false,
  }
  const confirmation = phone.prepareUpgradeConfirm()
  keep(record)
  await phone.exchange(confirmation)
  return { record, fingerprint }
}

/** Whether the server has the activation in version 4 already. */
async function isSwitched(pending: HandsetRecord): Promise<boolean> {
  try {
    const asPowerAuth: HandsetRecord = { ...pending, identity: { ...pending.identity, dialect: 'PowerAuth' } }
    return (await openHandset(asPowerAuth, () => undefined).status()).currentVersion === 4
  } catch {
    return false
  }
}
