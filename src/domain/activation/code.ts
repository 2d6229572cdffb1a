// Activation codes, their signature and the text of their QR code (v3 §4.1, §4.2).
import type { KeyObject } from 'node:crypto'
import { crc16 } from '../../crypto/crc16.ts'
import { ecdsaSign } from '../../crypto/ecdsa.ts'
import { inThread } from '../../crypto/threads.ts'
import { toBase64 } from '../../lib/base64.ts'
import { utf8 } from '../../lib/bytes.ts'

/** The code of 10 random bytes: 23 characters in four groups of five. */
export function createActivationCode(random: Uint8Array): string {
  const bytes = Buffer.concat([random, Buffer.alloc(2)])
  bytes.writeUInt16BE(crc16(random), random.length)
  return encodeBase32(bytes).match(/.{5}/g)?.join('-') ?? ''
}

/** The 10 random bytes of a code; undefined when the form or the checksum is wrong. Lower case and blanks are wrong. */
export function parseActivationCode(code: string): Uint8Array | undefined {
  if (!FORM.test(code)) return undefined
  const bytes = decodeBase32(code.replaceAll('-', ''))
  const random = bytes.subarray(0, 10)
  return bytes.readUInt16BE(10) === crc16(random) ? random : undefined
}

/** b64(ECDSA) over the code with its dashes. */
export const signActivationCode = (code: string, masterPrivateKey: KeyObject): string =>
  toBase64(ecdsaSign(masterPrivateKey, utf8(code)))

/** The same on P-384 (v4 §8.3). */
export const signActivationCodeP384 = async (code: string, masterPrivateKey: KeyObject): Promise<string> =>
  toBase64(await inThread('ecdsaSignP384', masterPrivateKey, utf8(code)))

/** code ‖ "#" ‖ signature: what the QR code shows. */
export const composeActivationQrText = (code: string, signature: string): string => `${code}#${signature}`

/** Its two parts. */
export function splitActivationQrText(text: string): { readonly activationCode: string; readonly activationSignature: string } {
  const [activationCode = '', activationSignature = ''] = text.split('#')
  return { activationCode, activationSignature }
}

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

/** 12 bytes of 20 characters. The four filler bits are ignored, as the published library does (v3 §4.1). */
function decodeBase32(text: string): Buffer {
  let bits = 0n
  for (const character of text) bits = (bits << 5n) | BigInt(ALPHABET.indexOf(character))
  return Buffer.from((bits >> FILLER_BITS).toString(16).padStart(24, '0'), 'hex')
}

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
const CHARACTERS = 20
const FILLER_BITS = 4n
const FORM = /^[A-Z2-7]{5}(-[A-Z2-7]{5}){3}$/
