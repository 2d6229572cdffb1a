// Reads a certificate request, PKCS#10 (RFC 2986 §4): subject, public key, and the parts of its signature. The signature is not verified here.
import { parseUtf8, toHex } from '../lib/bytes.ts'
import { DER, type DerValue, readBitString, readDerInside, readDerValues } from './der.ts'
import type { EcdsaForm } from './ecdsa.ts'
import type { MlDsa } from './mldsa.ts'

interface CertificateRequest {
  /** CertificationRequestInfo, DER: what the signature covers. */
  readonly covered: Uint8Array
  /** The subject as text (RFC 4514 §2). */
  readonly subject: string
  /** SubjectPublicKeyInfo, DER. */
  readonly publicKey: Uint8Array
  /** The parameter set of ML-DSA, or the hash of ECDSA. */
  readonly signedWith: MlDsa | NonNullable<EcdsaForm['hash']>
  /** ECDSA in DER. */
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

/** The text of a string in ASCII or UTF-8; undefined for other kinds. */
function readText({ tag, content }: DerValue): string | undefined {
  return !TEXTS.has(tag) || (tag !== UTF8_STRING && content.some((byte) => byte >= 0x80)) ? undefined : parseUtf8(content)
}

/** RFC 4514 §2.4. */
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

/** By AlgorithmIdentifier, which has no parameters for these algorithms (RFC 5758 §3.2, RFC 9881 §2). */
const SIGNATURES: ReadonlyMap<string, CertificateRequest['signedWith']> = new Map([
  ['300a06082a8648ce3d040302', 'sha256'],
  ['300a06082a8648ce3d040303', 'sha384'],
  ['300a06082a8648ce3d040304', 'sha512'],
  ['300b0609608648016503040312', 'ML-DSA-65'],
  ['300b0609608648016503040313', 'ML-DSA-87'],
])

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
