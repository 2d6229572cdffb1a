// Composes the text that the developer of a mobile application compiles into it (v4 §3.3).
import { toBase64 } from '../../lib/base64.ts'
import { concat } from '../../lib/bytes.ts'

/** Values of one application version. */
interface SdkConfiguration {
  /** 16 bytes. */
  readonly applicationKey: Uint8Array
  /** 16 bytes. */
  readonly applicationSecret: Uint8Array
  /** Public master keys: points of 65 and 97 bytes, SubjectPublicKeyInfo of ML-DSA. */
  readonly masterPublicKeys: Partial<Readonly<Record<MasterKeyName, Uint8Array>>>
}

/** The names of master keys, in the order of their ids. */
type MasterKeyName = keyof typeof KEY_IDS

/** Composes the text: Base64 of format version, key, secret, and every master key with its id, each with its length in front. */
export function composeSdkConfiguration({ applicationKey, applicationSecret, masterPublicKeys }: SdkConfiguration): string {
  const keys = Object.entries(KEY_IDS).flatMap(([name, id]) => {
    const key = masterPublicKeys[name as MasterKeyName]
    return key ? [concat(Uint8Array.of(id), withCount(key))] : []
  })
  const head = concat(Uint8Array.of(FORMAT), withCount(applicationKey), withCount(applicationSecret))
  return toBase64(concat(head, encodeCount(keys.length), ...keys))
}

const withCount = (bytes: Uint8Array): Uint8Array => concat(encodeCount(bytes.length), bytes)

/** Encodes a number: one byte below 0x80, two below 0x4000, else four. The upper bits of the first byte tell the length. */
function encodeCount(count: number): Uint8Array {
  if (count < 0x80) return Uint8Array.of(count)
  if (count < 0x4000) return Uint8Array.of(0x80 | (count >>> 8), count & 0xff)
  return Uint8Array.of(0xc0 | (count >>> 24), (count >>> 16) & 0xff, (count >>> 8) & 0xff, count & 0xff)
}

const FORMAT = 1
const KEY_IDS = { EC_P256: 1, EC_P384: 2, ML_DSA_65: 3, ML_DSA_87: 4 } as const
