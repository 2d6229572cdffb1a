// Parses master keys in the form that a setting, a file or the output of a command has.
import { parseBase64 } from './base64.ts'

/** A master key as the operator gave it: its 32 bytes, or the text of a key that a key service has wrapped. */
export type GivenKey = Uint8Array | string

/** One key or more. The first key seals new values. */
export type GivenKeys = readonly [GivenKey, ...GivenKey[]]

/** Parses keys that are separated by commas or line ends. Undefined if one is neither 32 bytes in standard Base64 nor a wrapped key. */
export function parseKeyList(text: string): GivenKeys | undefined {
  const keys = text.split(/,|\r?\n/).map((entry) => (WRAPPED.test(entry) ? entry : parseBase64(entry, 32)))
  const [first, ...others] = keys
  if (first === undefined || keys.includes(undefined)) return undefined
  return [first, ...others.filter((key) => key !== undefined)]
}

/** The answer of the transit engine of Vault and OpenBao: the version of its key, then the ciphertext. */
const WRAPPED = /^vault:v\d{1,9}:[A-Za-z0-9+/]{20,400}={0,2}$/
