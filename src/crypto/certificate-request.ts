// Reads a certificate request, PKCS#10 (RFC 2986 §4): subject, public key, and the parts of its signature. The signature is not verified here. The
// functions that read DER (ITU-T X.690) are at the end.
import { parseUtf8, toHex } from '../lib/bytes.ts'
import type { EcdsaForm } from './ecdsa.ts'
import type { MlDsa } from './mldsa.ts'

interface CertificateRequest {
  /** CertificationRequestInfo in DER: the bytes that the signature covers. */
  readonly covered: Uint8Array
  /** The subject as text (RFC 4514 §2). */
  readonly subject: string
  /** SubjectPublicKeyInfo, DER. */
  readonly publicKey: Uint8Array
  /** The parameter set of ML-DSA, or the hash of ECDSA. */
  readonly signedWith: MlDsa | NonNullable<EcdsaForm['hash']>
  /** The signature: ECDSA in DER, ML-DSA as raw bytes. */
  readonly signature: Uint8Array
}

/**
 * Parses a request in DER. Undefined for other bytes, for bytes after the request, and for signatures other than ECDSA with SHA-2 or ML-DSA.
 */
export function parseCertificateRequest(der: Uint8Array): CertificateRequest | undefined {
  const [info, algorithm, bits, ...more] = readDerInside(der, DER.sequence) ?? []
  if (info?.tag !== DER.sequence || algorithm === undefined || bits === undefined || more.length > 0) return undefined
  const signedWith = SIGNATURES.get(toHex(algorithm.whole))
  const signature = readBitString(bits)
  const [version, subject, publicKey, attributes, ...rest] = readDerValues(info.content) ?? []
  if (version === undefined || subject === undefined || publicKey === undefined) return undefined
  const isRequest =
    toHex(version.whole) === VERSION_1 && publicKey.tag === DER.sequence && attributes?.tag === ATTRIBUTES && rest.length === 0
  const subjectText = renderName(subject)
  if (!isRequest || signedWith === undefined || signature === undefined || subjectText === undefined) return undefined
  return { covered: info.whole, subject: subjectText, publicKey: publicKey.whole, signedWith, signature }
}

/** The text of a Name, its last part first (RFC 4514 §2.1); undefined for other values. */
function renderName(name: DerValue): string | undefined {
  const parts = name.tag === DER.sequence ? readDerValues(name.content) : undefined
  const texts = parts?.map(renderPart)
  return texts?.every((text) => text !== undefined) ? texts.toReversed().join(',') : undefined
}

function renderPart({ tag, content }: DerValue): string | undefined {
  const pairs = tag === DER.set ? readDerValues(content) : undefined
  const texts = pairs?.map(renderPair)
  return texts?.length && texts.every((text) => text !== undefined) ? texts.join('+') : undefined
}

/**
 * One attribute as text, for example `CN=Alice`. A type or value without text form is written as its number and in hexadecimal (RFC 4514 §2.4).
 */
function renderPair({ tag, content }: DerValue): string | undefined {
  const [type, value, ...rest] = (tag === DER.sequence ? readDerValues(content) : undefined) ?? []
  if (type?.tag !== DER.oid || value === undefined || rest.length > 0) return undefined
  const oid = readOid(type.content)
  if (oid === undefined) return undefined
  const name = ATTRIBUTE_NAMES.get(oid)
  const text = name === undefined ? undefined : readText(value)
  return text === undefined ? `${oid}=#${toHex(value.whole)}` : `${name}=${escapeText(text)}`
}

/** An object identifier as text, for example `2.5.4.3`. Undefined when a number is cut off, too long, or not in its shortest form. */
function readOid(content: Uint8Array): string | undefined {
  const numbers: number[] = []
  let number = 0
  for (const [i, byte] of content.entries()) {
    const isFirst = i === 0 || (content[i - 1] ?? 0) < 0x80
    if (isFirst && byte === 0x80) return undefined
    number = (isFirst ? 0 : number) * 128 + (byte & 0x7f)
    if (number > Number.MAX_SAFE_INTEGER) return undefined
    if (byte < 0x80) numbers.push(number)
  }
  const [first, ...others] = numbers
  if (first === undefined || (content.at(-1) ?? 0) >= 0x80) return undefined
  const root = Math.min(Math.floor(first / 40), 2)
  return [root, first - 40 * root, ...others].join('.')
}

/** The text of a UTF8String, PrintableString or IA5String; undefined for other kinds and for wrong encodings. */
function readText({ tag, content }: DerValue): string | undefined {
  return !TEXTS.has(tag) || (tag !== UTF8_STRING && content.some((byte) => byte >= 0x80)) ? undefined : parseUtf8(content)
}

/** Escapes a value for the text of a subject (RFC 4514 §2.4). */
const escapeText = (text: string): string =>
  text
    .replaceAll(/^[ #]| $|["+,;<>\\]/g, '\\$&')
    // U+0000 must be escaped, and invisible characters may be.
    .replaceAll(/\p{Cc}/gu, (char) => Buffer.from(char).toString('hex').replaceAll(/../g, '\\$&'))

/** INTEGER 0. */
const VERSION_1 = '020100'
/** Tag [0]: the attributes, which may be empty but are always there. */
const ATTRIBUTES = 0xa0
const UTF8_STRING = 0x0c
/** UTF8String, PrintableString, IA5String. */
const TEXTS: ReadonlySet<number> = new Set([UTF8_STRING, 0x13, 0x16])

/** Algorithms by their AlgorithmIdentifier in hexadecimal. It has no parameters for these algorithms (RFC 5758 §3.2, RFC 9881 §2). */
const SIGNATURES: ReadonlyMap<string, CertificateRequest['signedWith']> = new Map([
  ['300a06082a8648ce3d040302', 'sha256'],
  ['300a06082a8648ce3d040303', 'sha384'],
  ['300a06082a8648ce3d040304', 'sha512'],
  ['300b0609608648016503040312', 'ML-DSA-65'],
  ['300b0609608648016503040313', 'ML-DSA-87'],
])

/** One value with its tag. */
interface DerValue {
  /** The identifier byte: class, whether the value contains others, and a number up to 30. */
  readonly tag: number
  /** The bytes of the value without tag and length. */
  readonly content: Uint8Array
  /** The same with tag and length. */
  readonly whole: Uint8Array
}

/** Tags of the universal class; those of SEQUENCE and SET have the bit for values that contain others. */
const DER = { integer: 0x02, bitString: 0x03, oid: 0x06, sequence: 0x30, set: 0x31 } as const

/**
 * Splits `bytes` into values that follow each other; undefined when the bytes are not such values. A length in a longer form than necessary is
 * refused.
 */
export function readDerValues(bytes: Uint8Array): readonly DerValue[] | undefined {
  const values: DerValue[] = []
  for (let at = 0; at < bytes.length; ) {
    const value = readAt(bytes, at)
    if (value === undefined) return undefined
    values.push(value)
    at += value.whole.length
  }
  return values
}

/** The values inside of one value with this tag. Undefined when `bytes` are not exactly one such value. */
export function readDerInside(bytes: Uint8Array, tag: number): readonly DerValue[] | undefined {
  const [value, ...rest] = readDerValues(bytes) ?? []
  return value?.tag === tag && rest.length === 0 ? readDerValues(value.content) : undefined
}

/** The content of a BIT STRING; undefined for one with unused bits. */
export const readBitString = ({ tag, content }: DerValue): Uint8Array | undefined =>
  tag === DER.bitString && content[0] === 0 ? content.subarray(1) : undefined

function readAt(bytes: Uint8Array, start: number): DerValue | undefined {
  const tag = bytes[start]
  const first = bytes[start + 1]
  // Tags of several bytes and indefinite lengths are refused: certificate requests and signatures have neither.
  if (tag === undefined || (tag & 0x1f) === 0x1f || first === undefined || first === 0x80) return undefined
  const size = first < 0x80 ? 0 : first & 0x7f
  const lengthBytes = bytes.subarray(start + 2, start + 2 + size)
  if (size > LENGTH_BYTES_MAX || lengthBytes.length < size) return undefined
  const length = size === 0 ? first : lengthBytes.reduce((sum, byte) => sum * 256 + byte, 0)
  // DER allows a length only in its shortest form.
  if (size > 0 && (length < 0x80 || lengthBytes[0] === 0)) return undefined
  const from = start + 2 + size
  if (from + length > bytes.length) return undefined
  return { tag, content: bytes.subarray(from, from + length), whole: bytes.subarray(start, from + length) }
}

/** The names of RFC 4514 §3. */
const ATTRIBUTE_NAMES: ReadonlyMap<string, string> = new Map([
  ['2.5.4.3', 'CN'],
  ['2.5.4.7', 'L'],
  ['2.5.4.8', 'ST'],
  ['2.5.4.10', 'O'],
  ['2.5.4.11', 'OU'],
  ['2.5.4.6', 'C'],
  ['2.5.4.9', 'STREET'],
  ['0.9.2342.19200300.100.1.25', 'DC'],
  ['0.9.2342.19200300.100.1.1', 'UID'],
])
const LENGTH_BYTES_MAX = 4
