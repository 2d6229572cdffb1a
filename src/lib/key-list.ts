// Parses master keys as they are written in a setting, in a file, or in the output of a command.
import { parseBase64 } from './base64.ts'

/** A master key as it was given: its 32 bytes, or the text under which a key service keeps it wrapped. */
export type GivenKey = Uint8Array | string

/** One key or more. The first seals. */
export type GivenKeys = readonly [GivenKey, ...GivenKey[]]

/** Keys with a comma or the end of a line between them. Undefined where one is neither 32 bytes in standard Base64 nor a wrapped key. */
export function parseKeyList(text: string): GivenKeys | undefined {
  const keys = text.split(/,|\r?\n/).map((entry) => (WRAPPED.test(entry) ? entry : parseBase64(entry, 32)))
  const [first, ...others] = keys
  if (first === undefined || keys.includes(undefined)) return undefined
  return [first, ...others.filter((key) => key !== undefined)]
}

/** What the transit engine of Vault and OpenBao answers: the version of its key, then the ciphertext. */
const WRAPPED = /^vault:v\d{1,9}:[A-Za-z0-9+/]{20,400}={0,2}$/
