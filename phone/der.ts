// Writes DER (ITU-T X.690), for the certificate requests of the phone, and for tests and the command line.
import { join } from './v3/crypto.ts'

/** Encodes one value in DER. `contents` together have at most 65,535 bytes. */
export function der(tag: number, ...contents: readonly Uint8Array[]): Uint8Array {
  const content = join(...contents)
  const length = content.length
  if (length < 0x80) return join(Uint8Array.of(tag, length), content)
  return join(length < 0x100 ? Uint8Array.of(tag, 0x81, length) : Uint8Array.of(tag, 0x82, length >> 8, length & 0xff), content)
}
