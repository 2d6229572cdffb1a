// Tests certificate requests: requests of OpenSSL, the text of subjects, and bytes that are refused (RFC 2986, RFC 4514).
import { execFileSync } from 'node:child_process'
import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto'
import { mkdtempDisposableSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { der } from '../../phone/der.ts'
import { certificateRequest, v3DeviceSigners } from '../../phone/device-signature.ts'
import { newKeyPair } from '../../phone/v3/crypto.ts'
import { parseCertificateRequestPem } from '../lib/pem.ts'
import { parseCertificateRequest, readDerInside, readDerValues } from './certificate-request.ts'

const [signer] = v3DeviceSigners(newKeyPair()) as [never]
const PEM_OF_PHONE = certificateRequest(signer)
const DER_OF_PHONE = parseCertificateRequestPem(PEM_OF_PHONE) ?? new Uint8Array(0)

const openssl = (...options: readonly string[]): string => execFileSync('openssl', options, { encoding: 'utf8', stdio: 'pipe' })

describe('a request of OpenSSL', () => {
  test.each([
    ['prime256v1', '-sha256', '/CN=alice'],
    ['secp384r1', '-sha384', '/C=CZ/ST=Praha/L=Praha 8/O=Bank, a.s./OU=Phones/UID=7/CN=Alice "A" <x>; y\\\\z'],
    ['secp384r1', '-sha256', '/DC=bank/DC=example/CN= leading and trailing '],
    ['prime256v1', '-sha512', '/O=#1/CN=příliš žluťoučký'],
    ['prime256v1', '-sha384', '/CN=a=b'],
  ])('on %s with %s of %s', (namedCurve, hash, subject) => {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'pawl-request-'))
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve })
    const [keyFile, requestFile] = [join(folder.path, 'key.pem'), join(folder.path, 'request.pem')]
    writeFileSync(keyFile, privateKey.export({ format: 'pem', type: 'pkcs8' }))
    const more = ['-utf8', '-addext', 'subjectAltName=DNS:test.example.com,IP:192.0.2.1']
    const pem = openssl('req', '-new', '-key', keyFile, hash, '-subj', subject, ...more)
    const request = parseCertificateRequest(parseCertificateRequestPem(pem) ?? new Uint8Array(0))
    if (request === undefined) throw new Error('not a request')
    expect(request.signedWith).toBe(hash.slice(1))
    expect(createPublicKey({ key: Buffer.from(request.publicKey), format: 'der', type: 'spki' }).equals(publicKey)).toBe(true)
    expect(verify(request.signedWith, request.covered, publicKey, request.signature)).toBe(true)
    writeFileSync(requestFile, pem)
    const shown = openssl('req', '-in', requestFile, '-noout', '-subject', '-nameopt', 'RFC2253,-esc_msb,utf8')
    expect(`subject=${request.subject}\n`).toBe(shown)
  })
})

test('a type without a name is shown by its number', () => {
  const pem = certificateRequest(signer, { subject: { C: 'CZ', emailAddress: 'a@b.c', CN: 'x' } })
  const request = parseCertificateRequest(parseCertificateRequestPem(pem) ?? new Uint8Array(0))
  expect(request?.subject).toBe('CN=x,1.2.840.113549.1.9.1=#0c056140622e63,C=CZ')
})

test('characters that nobody sees are written out', () => {
  const pem = certificateRequest(signer, { subject: { CN: 'a\0b\nc\x7f\x85', O: ' ' } })
  expect(parseCertificateRequest(parseCertificateRequestPem(pem) ?? new Uint8Array(0))?.subject).toBe(
    'O=\\ ,CN=a\\00b\\0ac\\7f\\c2\\85',
  )
})

describe('no request is', () => {
  const [outer] = readDerValues(DER_OF_PHONE) ?? []
  const [info, algorithm, bits] = (readDerInside(DER_OF_PHONE, 0x30) ?? []).map(({ whole }) => whole) as [
    Uint8Array,
    Uint8Array,
    Uint8Array,
  ]
  const [version, subject, spki, attributes] = (readDerInside(info, 0x30) ?? []).map(({ whole }) => whole) as [
    Uint8Array,
    Uint8Array,
    Uint8Array,
    Uint8Array,
  ]
  const withInfo = (...parts: readonly Uint8Array[]): Uint8Array => der(0x30, der(0x30, ...parts), algorithm, bits)
  const withName = (...parts: readonly Uint8Array[]): Uint8Array => withInfo(version, der(0x30, ...parts), spki, attributes)
  const commonName = (value: Uint8Array): Uint8Array => der(0x30, Buffer.from('0603550403', 'hex'), value)
  const utf8 = der(0x0c, Buffer.from('x'))

  test('whereas the same put together again is one', () => {
    expect(outer?.whole).toEqual(DER_OF_PHONE)
    expect(parseCertificateRequest(withInfo(version, subject, spki, attributes))).toEqual(parseCertificateRequest(DER_OF_PHONE))
    expect(parseCertificateRequest(withName(der(0x31, commonName(utf8))))?.subject).toBe('CN=x')
    expect(parseCertificateRequest(withName())?.subject).toBe('')
  })

  test.each<[string, Uint8Array]>([
    ['nothing', new Uint8Array(0)],
    ['a byte behind it', Buffer.concat([DER_OF_PHONE, Buffer.of(0)])],
    ['one that is cut', DER_OF_PHONE.subarray(0, -1)],
    ['two of them', Buffer.concat([DER_OF_PHONE, DER_OF_PHONE])],
    ['a fourth member', der(0x30, info, algorithm, bits, bits)],
    ['a signature that is missing', der(0x30, info, algorithm)],
    ['a set in place of the sequence', der(0x31, info, algorithm, bits)],
    ['a signature with unused bits', der(0x30, info, algorithm, der(0x03, Uint8Array.of(1), Uint8Array.of(2)))],
    ['a signature in an octet string', der(0x30, info, algorithm, der(0x04, bits.subarray(2)))],
    ['RSA with SHA-256', der(0x30, info, der(0x30, Buffer.from('06092a864886f70d01010b0500', 'hex')), bits)],
    ['ECDSA with SHA-1', der(0x30, info, der(0x30, Buffer.from('06072a8648ce3d0401', 'hex')), bits)],
    ['ECDSA with parameters', der(0x30, info, der(0x30, Buffer.from('06082a8648ce3d0403020500', 'hex')), bits)],
    ['another version', withInfo(Uint8Array.of(2, 1, 1), subject, spki, attributes)],
    ['a version in two bytes', withInfo(Uint8Array.of(2, 2, 0, 0), subject, spki, attributes)],
    ['attributes that are missing', withInfo(version, subject, spki)],
    ['attributes of another tag', withInfo(version, subject, spki, der(0x30))],
    ['attributes twice', withInfo(version, subject, spki, attributes, attributes)],
    ['a key that is no sequence', withInfo(version, subject, der(0x04), attributes)],
    ['a subject that is a set', withInfo(version, der(0x31), spki, attributes)],
    ['a name that is no set', withName(der(0x30, commonName(utf8)))],
    ['a name without any part', withName(der(0x31))],
    ['a part that is no sequence', withName(der(0x31, der(0x31, Buffer.from('0603550403', 'hex'), utf8)))],
    ['a part with a third member', withName(der(0x31, der(0x30, Buffer.from('0603550403', 'hex'), utf8, utf8)))],
    ['a part without a type', withName(der(0x31, der(0x30, utf8, utf8)))],
    ['a type that is cut off', withName(der(0x31, der(0x30, der(0x06, Uint8Array.of(0x55, 0x84)), utf8)))],
    ['a type that is empty', withName(der(0x31, der(0x30, der(0x06), utf8)))],
    ['a type that begins with a zero', withName(der(0x31, der(0x30, der(0x06, Uint8Array.of(0x55, 0x80, 0x04)), utf8)))],
    ['a type with a number beyond 2^53', withName(der(0x31, der(0x30, der(0x06, new Uint8Array(9).fill(0xff, 0, 8)), utf8)))],
  ])('%s', (_, bytes) => {
    expect(parseCertificateRequest(bytes)).toBeUndefined()
  })

  test('a part may have several types, one of them a street', () => {
    const street = der(0x30, Buffer.from('0603550409', 'hex'), der(0x0c, Buffer.from('Main 1')))
    expect(parseCertificateRequest(withName(der(0x31, commonName(utf8), street)))?.subject).toBe('CN=x+STREET=Main 1')
  })

  test('any text is shown as text, anything else in hexadecimal', () => {
    const subjectOf = (value: Uint8Array) => parseCertificateRequest(withName(der(0x31, commonName(value))))?.subject
    expect(subjectOf(der(0x13, Buffer.from('x')))).toBe('CN=x')
    expect(subjectOf(der(0x16, Buffer.from('x@y')))).toBe('CN=x@y')
    expect(subjectOf(der(0x16, Buffer.of(0xe9)))).toBe('2.5.4.3=#1601e9')
    expect(subjectOf(der(0x0c, Buffer.of(0xff)))).toBe('2.5.4.3=#0c01ff')
    expect(subjectOf(der(0x1e, Buffer.of(0, 0x78)))).toBe('2.5.4.3=#1e020078')
  })
})

describe('a text holds no request', () => {
  const good = PEM_OF_PHONE
  test.each<[string, string]>([
    ['when it is empty', ''],
    ['when it holds two', good + good],
    ['when there is text before it', `x\n${good}`],
    ['when there is text behind it', `${good}x`],
    ['when it is a certificate', good.replaceAll('CERTIFICATE REQUEST', 'CERTIFICATE')],
    ['when it has headers', good.replace('\n', '\nProc-Type: 4\n\n')],
    ['when its Base64 has other characters', good.replace('\n', '\n*')],
    ['when its end is missing', good.slice(0, -20)],
  ])('%s', (_, text) => {
    expect(parseCertificateRequestPem(text)).toBeUndefined()
  })

  test('whereas white space around it and other line breaks are none of it', () => {
    expect(parseCertificateRequestPem(`\n ${good.replaceAll('\n', '\r\n')}\t`)).toEqual(DER_OF_PHONE)
  })
})
