// Makes and reads activation codes, signs them, and composes the text of their QR codes (v3 §4.1, §4.2).
import type { KeyObject } from 'node:crypto'
import { crc16 } from '../../crypto/hash.ts'
import { ecdsaSign } from '../../crypto/ecdsa.ts'
import { inThread } from '../../crypto/threads.ts'
import { toBase64 } from '../../lib/base64.ts'
import { utf8 } from '../../lib/bytes.ts'
import { findSigningMasterKeys, keysAltered } from '../application/master-keys.ts'
import { type KeyParts, undefinedIfAltered } from '../secrets/secrets.ts'

/** Makes the activation code of 10 random bytes: four groups of five characters with dashes between them, 23 characters. */
export function createActivationCode(random: Uint8Array): string {
  const bytes = Buffer.concat([random, Buffer.alloc(2)])
  bytes.writeUInt16BE(crc16(random), random.length)
  return encodeBase32(bytes).match(/.{5}/g)?.join('-') ?? ''
}

/** Parses a code into its 10 random bytes. Undefined when form or checksum is wrong; lower case and blanks are wrong. */
export function parseActivationCode(code: string): Uint8Array | undefined {
  if (!FORM.test(code)) return undefined
  const bytes = decodeBase32(code.replaceAll('-', ''))
  const random = bytes.subarray(0, 10)
  return bytes.readUInt16BE(10) === crc16(random) ? random : undefined
}

/** Signs a code with its dashes by a key on P-256. Returns Base64 of the DER signature. */
export const signActivationCode = (code: string, masterPrivateKey: KeyObject): string =>
  toBase64(ecdsaSign(masterPrivateKey, utf8(code)))

/** Signs any text of a QR code, by a key that all phones of its application can verify: P-256, or P-384 where no phone has protocol 3 (v4 §8.3). */
export const signQrText = async (
  { isProtocol3Admitted }: { readonly isProtocol3Admitted: boolean },
  text: string,
  masterPrivateKey: KeyObject,
): Promise<string> =>
  isProtocol3Admitted
    ? signActivationCode(text, masterPrivateKey)
    : toBase64(await inThread('ecdsaSignP384', masterPrivateKey, utf8(text)))

/**
 * Appends to `head` its signature by the key that signs activation codes (v3 §15.1, v4 §11.2). It is for texts that name no activation. `head` ends
 * with the line of the key indicator. Throws REQUEST_INVALID when the key was altered in the database.
 */
export async function signOfflineText(
  parts: KeyParts,
  application: { readonly applicationId: string; readonly isProtocol3Admitted: boolean },
  head: string,
): Promise<string> {
  const { applicationId, isProtocol3Admitted } = application
  const algorithm = isProtocol3Admitted ? 'EC_P256' : 'EC_P384'
  const keys = await findSigningMasterKeys(parts, applicationId, algorithm).catch(undefinedIfAltered)
  if (keys === undefined) throw keysAltered()
  return `${head}${await signQrText(application, head, keys.ecdsa)}`
}

/** The text of the QR code: code ‖ "#" ‖ signature. */
export const composeActivationQrText = (code: string, signature: string): string => `${code}#${signature}`

function encodeBase32(bytes: Uint8Array): string {
  let bits = 0n
  for (const byte of bytes) bits = (bits << 8n) | BigInt(byte)
  // 96 bits and four zero bits of filler are 20 characters.
  bits <<= FILLER_BITS
  let text = ''
  for (let i = 0; i < CHARACTERS; i += 1) {
    text = ALPHABET.charAt(Number(bits & 31n)) + text
    bits >>= 5n
  }
  return text
}

/** Decodes 20 characters of Base32 to 12 bytes. The four filler bits are ignored, as in the published library (v3 §4.1). */
function decodeBase32(text: string): Buffer {
  let bits = 0n
  for (const character of text) bits = (bits << 5n) | BigInt(ALPHABET.indexOf(character))
  return Buffer.from((bits >> FILLER_BITS).toString(16).padStart(24, '0'), 'hex')
}

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
const CHARACTERS = 20
const FILLER_BITS = 4n
const FORM = /^[A-Z2-7]{5}(-[A-Z2-7]{5}){3}$/
