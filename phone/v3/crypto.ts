// The cryptography of a phone of protocol 3, written from the specification without code of the server (v3 §2 to §4, §7 to §11).
import {
  createCipheriv,
  createDecipheriv,
  createECDH,
  createHash,
  createHmac,
  createPrivateKey,
  createPublicKey,
  ECDH,
  randomBytes,
  sign,
  verify,
} from 'node:crypto'

export type PhoneVersion = '3.0' | '3.1' | '3.2' | '3.3'

/** The features that a version adds to the one before (v3 §6). */
export const hasNonce = (version: PhoneVersion): boolean => version !== '3.0'
export const hasTimestamp = (version: PhoneVersion): boolean => version === '3.2' || version === '3.3'
export const hasTemporaryKeys = (version: PhoneVersion): boolean => version === '3.3'

export interface PhoneKeyPair {
  /** 32-byte big-endian scalar. */
  readonly privateKey: Uint8Array
  /** 65 bytes. */
  readonly uncompressed: Uint8Array
  /** 33 bytes. */
  readonly compressed: Uint8Array
}

/** All keys of one activation, 16 bytes each (v3 §3.2). */
export interface PhoneKeys {
  readonly masterSecret: Uint8Array
  readonly possession: Uint8Array
  readonly knowledge: Uint8Array
  readonly biometry: Uint8Array
  readonly transport: Uint8Array
  readonly transportIv: Uint8Array
  readonly transportCtr: Uint8Array
  readonly vault: Uint8Array
}

export const random = (length: number): Uint8Array => randomBytes(length)
/** Standard Base64 with padding. */
export const b64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64')
export const unb64 = (text: string): Uint8Array => Buffer.from(text, 'base64')
export const bytesOf = (text: string | Uint8Array): Uint8Array => (typeof text === 'string' ? Buffer.from(text, 'utf8') : text)
export const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8')
/** a ‖ b ‖ ... */
export const join = (...parts: readonly Uint8Array[]): Uint8Array => Buffer.concat(parts)
export const sha256 = (bytes: Uint8Array): Uint8Array => createHash('sha256').update(bytes).digest()
/** HMAC-SHA256, 32 bytes. */
export const hmac = (key: Uint8Array, bytes: Uint8Array): Uint8Array => createHmac('sha256', key).update(bytes).digest()

/** Unsigned big-endian integer of 4 or 8 bytes. */
export function bigEndian(value: number, length: 4 | 8): Uint8Array {
  const out = Buffer.alloc(8)
  out.writeBigUInt64BE(BigInt(value))
  return out.subarray(8 - length)
}

/** 32 bytes to 16: out[i] = x[i] XOR x[i+16] (v3 §2.1). */
const reduce = (x: Uint8Array): Uint8Array => x.subarray(0, 16).map((byte, i) => byte ^ (x[i + 16] ?? 0))

/** KDF(K, index): one AES block of eight zero bytes and the index (v3 §2.2). */
function kdf(key: Uint8Array, index: number): Uint8Array {
  const cipher = createCipheriv('aes-128-ecb', key, null).setAutoPadding(false)
  return join(cipher.update(join(new Uint8Array(8), bigEndian(index, 8))), cipher.final())
}

/** KDF_INTERNAL(K, data), 16 bytes (v3 §2.2). */
export const kdfInternal = (key: Uint8Array, data: Uint8Array): Uint8Array => reduce(hmac(key, data))

/** X963(Z, info, n) (v3 §2.2). */
export function x963(secret: Uint8Array, info: Uint8Array, length: number): Uint8Array {
  const blocks: Uint8Array[] = []
  for (let i = 1; (i - 1) * 32 < length; i++) blocks.push(sha256(join(secret, bigEndian(i, 4), info)))
  return join(...blocks).subarray(0, length)
}

/** SIZED(p1, p2, ...); null counts as empty (v3 §2.2). */
export const sized = (...parts: readonly (Uint8Array | null)[]): Uint8Array =>
  join(...parts.flatMap((part) => [bigEndian(part?.length ?? 0, 4), part ?? new Uint8Array(0)]))

/** A new key pair, or the one of a given scalar. On P-384 the lengths are 48, 97 and 49 bytes. */
export function newKeyPair(privateKey?: Uint8Array, curve: keyof typeof CURVES = 'P-256'): PhoneKeyPair {
  const { name, bytes } = CURVES[curve]
  const pair = createECDH(name)
  if (privateKey) pair.setPrivateKey(privateKey)
  else pair.generateKeys()
  const scalar = privateKey ?? pair.getPrivateKey()
  return {
    privateKey: join(new Uint8Array(bytes - scalar.length), scalar),
    uncompressed: pair.getPublicKey(),
    compressed: pair.getPublicKey(null, 'compressed'),
  }
}

/** X coordinate of the ECDH point, 32 bytes with leading zeros (v3 §2.2). */
export function dh32(privateKey: Uint8Array, publicKey: Uint8Array): Uint8Array {
  const pair = createECDH('prime256v1')
  pair.setPrivateKey(privateKey)
  return pair.computeSecret(publicKey)
}

/** KEY_MASTER_SECRET and everything derived from it (v3 §3.2). */
export function deriveKeys(devicePrivateKey: Uint8Array, serverPublicKey: Uint8Array): PhoneKeys {
  const masterSecret = reduce(dh32(devicePrivateKey, serverPublicKey))
  const transport = kdf(masterSecret, 1000)
  return {
    masterSecret,
    possession: kdf(masterSecret, 1),
    knowledge: kdf(masterSecret, 2),
    biometry: kdf(masterSecret, 3),
    transport,
    transportIv: kdf(transport, 3000),
    transportCtr: kdf(transport, 4000),
    vault: kdf(masterSecret, 2000),
  }
}

/** next(c): the counter value after c (v3 §9.1). */
export const nextCtrData = (ctrData: Uint8Array): Uint8Array => reduce(sha256(ctrData))

/** A signature of one to three factors, decimal in 3.0 and Base64 from 3.1 on (v3 §10.3). */
export function computeSignature(
  version: PhoneVersion,
  keys: readonly Uint8Array[],
  ctrData: Uint8Array,
  signed: Uint8Array,
): string {
  const components = keys.map((key, i) => {
    let derived = hmac(key, ctrData)
    for (let j = 0; j < i; j++) derived = hmac(hmac(keys[j + 1] ?? key, ctrData), derived)
    return Buffer.from(hmac(derived, signed))
  })
  if (version !== '3.0') return b64(join(...components.map((component) => component.subarray(16))))
  const decimal = (component: Buffer): string => String((component.readUInt32BE(28) & 0x7fffffff) % 1e8).padStart(8, '0')
  return components.map(decimal).join('-')
}

/** The bytes that a signature covers: METHOD & uriId & nonce & body & APP_SECRET (v3 §10.1). */
export function signedData(
  method: string,
  resourceId: string,
  nonce: Uint8Array,
  body: Uint8Array,
  applicationSecret: string,
): Uint8Array {
  return bytesOf([method, b64(bytesOf(resourceId)), b64(nonce), b64(body), applicationSecret].join('&'))
}

/** The query of a GET request as it enters the signature (v3 §10.4); `query` without the question mark. */
export function canonicalQuery(query: string): string {
  const decode = (text: string): string => decodeURIComponent(text.replaceAll('+', ' '))
  const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
  return query
    .split('&')
    .filter((pair) => pair.includes('='))
    .map((pair) => [decode(pair.slice(0, pair.indexOf('='))), decode(pair.slice(pair.indexOf('=') + 1))] as const)
    .sort((a, b) => byText(a[0], b[0]) || byText(a[1], b[1]))
    .map(([key, value]) => `${encodeForm(key)}=${encodeForm(value)}`)
    .join('&')
}

const encodeForm = (text: string): string =>
  Array.from(bytesOf(text), (byte) => {
    const char = String.fromCharCode(byte)
    if (/[A-Za-z0-9.*_-]/.test(char)) return char
    return byte === 0x20 ? '+' : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
  }).join('')

/** Digest of a token header, 32 bytes (v3 §11.2). */
export function tokenDigest(version: PhoneVersion, secret: Uint8Array, nonce: Uint8Array, timestamp: string): Uint8Array {
  const parts = [nonce, bytesOf(`&${timestamp}`)]
  if (hasTimestamp(version)) parts.push(bytesOf(`&${version}`))
  return hmac(secret, join(...parts))
}

/** Fields of a decrypted status blob (v3 §9.3). */
export interface StatusBlob {
  readonly state: number
  readonly currentVersion: number
  readonly upgradeVersion: number
  readonly ctrByte: number
  readonly failedAttempts: number
  readonly maxFailedAttempts: number
  readonly lookAhead: number
  readonly ctrDataHash: Uint8Array
}

/** Decrypts a status blob, in the 3.0 form when there is no challenge; undefined when the magic value is not there (v3 §9.4). */
export function openStatusBlob(
  keys: Pick<PhoneKeys, 'transport' | 'transportIv'>,
  blob: Uint8Array,
  challenge?: Uint8Array,
  nonce?: Uint8Array,
): StatusBlob | undefined {
  const iv = challenge && nonce ? kdfInternal(keys.transportIv, join(challenge, nonce)) : new Uint8Array(16)
  const decipher = createDecipheriv('aes-128-cbc', keys.transport, iv).setAutoPadding(false)
  const plain = Buffer.concat([decipher.update(blob), decipher.final()])
  if (plain.length !== 32 || plain.readUInt32BE(0) !== 0xdec0ded1) return undefined
  return {
    state: plain.readUInt8(4),
    currentVersion: plain.readUInt8(5),
    upgradeVersion: plain.readUInt8(6),
    ctrByte: plain.readUInt8(12),
    failedAttempts: plain.readUInt8(13),
    maxFailedAttempts: plain.readUInt8(14),
    lookAhead: plain.readUInt8(15),
    ctrDataHash: plain.subarray(16),
  }
}

/** CTR_DATA_HASH of a counter value (v3 §9.3). */
export const ctrDataHash = (keys: Pick<PhoneKeys, 'transportCtr'>, ctrData: Uint8Array): Uint8Array =>
  kdfInternal(keys.transportCtr, ctrData)

/** Eight digits that phone and bank show (v3 §4.3). Any point encoding. */
export function fingerprint(devicePublicKey: Uint8Array, activationId: string, serverPublicKey: Uint8Array): string {
  const digest = Buffer.from(sha256(join(minimalX(devicePublicKey), bytesOf(activationId), minimalX(serverPublicKey))))
  return String((digest.readUInt32BE(28) & 0x7fffffff) % 1e8).padStart(8, '0')
}

function minimalX(publicKey: Uint8Array): Uint8Array {
  const x = publicKey.subarray(1, 33)
  const start = x.findIndex((byte) => byte !== 0)
  return x.subarray(start < 0 ? 32 : start)
}

/** Whether an activation code has the right form and checksum (v3 §4.1). */
export function isActivationCode(code: string): boolean {
  if (!/^[A-Z2-7]{5}(-[A-Z2-7]{5}){3}$/.test(code)) return false
  const digits = Array.from(code.replaceAll('-', ''), (char) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(char))
  const bits = digits.map((digit) => digit.toString(2).padStart(5, '0')).join('')
  const bytes = Buffer.from(Array.from({ length: 12 }, (_, i) => Number.parseInt(bits.slice(8 * i, 8 * i + 8), 2)))
  return crc16(bytes.subarray(0, 10)) === bytes.readUInt16BE(10)
}

/** CRC-16/ARC (v3 §2.4). */
function crc16(bytes: Uint8Array): number {
  let crc = 0
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xa001 : crc >>> 1
  }
  return crc
}

/** Whether `signature` (ASN.1 DER) is SHA-256 with ECDSA over `message`. Malformed signatures give false. */
export const isEcdsa = (publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean =>
  holdsEcdsa('P-256', publicKey, message, signature, 'der')

/**
 * Whether an ECDSA signature holds under a point of the curve, compressed or not, with the hash that goes with the curve. Malformed ones give
 * false. By OpenSSL: other implementations of the curves take ten times as long, and src/crypto is checked against one.
 */
export function holdsEcdsa(
  curve: keyof typeof CURVES,
  point: Uint8Array,
  message: Uint8Array,
  signature: Uint8Array,
  dsaEncoding: 'der' | 'ieee-p1363',
): boolean {
  const { name, hash } = CURVES[curve]
  try {
    const uncompressed = Buffer.from(ECDH.convertKey(point, name, undefined, undefined, 'uncompressed') as Buffer)
    const key = createPublicKey({ format: 'jwk', key: jwkOf(curve, uncompressed) })
    return verify(hash, message, { key, dsaEncoding }, signature)
  } catch {
    return false
  }
}

/** Signs with ECDSA and the hash that goes with the curve. `scalar` has 32 or 48 bytes, `point` is its public key without compression. */
export function signEcdsa(
  curve: keyof typeof CURVES,
  { scalar, point }: { readonly scalar: Uint8Array; readonly point: Uint8Array },
  message: Uint8Array,
  dsaEncoding: 'der' | 'ieee-p1363',
): Uint8Array {
  const d = Buffer.from(scalar).toString('base64url')
  const key = createPrivateKey({ format: 'jwk', key: { ...jwkOf(curve, Buffer.from(point)), d } })
  return sign(CURVES[curve].hash, message, { key, dsaEncoding })
}

const CURVES = {
  'P-256': { name: 'prime256v1', bytes: 32, hash: 'sha256' },
  'P-384': { name: 'secp384r1', bytes: 48, hash: 'sha384' },
} as const

/** The public key of an uncompressed point as a JWK. */
function jwkOf(crv: keyof typeof CURVES, point: Buffer) {
  const end = (point.length + 1) / 2
  return { kty: 'EC', crv, x: point.subarray(1, end).toString('base64url'), y: point.subarray(end).toString('base64url') }
}

/** Opens `encryptedVaultEncryptionKey`: AES-CBC under KEY_TRANSPORT with a zero IV, 16 bytes (v3 §12). */
export function openVaultKey(keyTransport: Uint8Array, encrypted: Uint8Array): Uint8Array {
  const decipher = createDecipheriv('aes-128-cbc', keyTransport, new Uint8Array(16))
  return join(decipher.update(encrypted), decipher.final())
}

/** A compact JWS with HS256 or whatever the header says, always signed with HMAC-SHA256 (v3 §7.1). */
export function hs256Jwt(claims: unknown, key: Uint8Array, header: unknown = { alg: 'HS256', typ: 'JWT' }): string {
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const input = `${part(header)}.${part(claims)}`
  return `${input}.${Buffer.from(hmac(key, bytesOf(input))).toString('base64url')}`
}

/** Header and claims of an ES256 JWS whose signature holds under `publicKey`; throws otherwise (v3 §7.2). */
export function openEs256Jwt(jwt: string, publicKey: Uint8Array): { header: unknown; claims: Record<string, unknown> } {
  const parts = jwt.split('.')
  const [header = '', claims = '', signature = ''] = parts
  const raw = Buffer.from(signature, 'base64url')
  if (parts.length !== 3 || raw.length !== 64) throw new Error('the answer is not a compact JWS with a signature of 64 bytes')
  if (!holdsEcdsa('P-256', publicKey, bytesOf(`${header}.${claims}`), raw, 'ieee-p1363')) {
    throw new Error('the signature of the temporary key does not hold')
  }
  const parse = (part: string): unknown => JSON.parse(Buffer.from(part, 'base64url').toString('utf8'))
  return { header: parse(header), claims: parse(claims) as Record<string, unknown> }
}
