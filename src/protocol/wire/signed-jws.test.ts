// Tests which texts count as a JWS of a phone: both serialisations, and no text that different readers could read differently (RFC 7515).
import { describe, expect, test } from 'vitest'
import {
  compactJws,
  generalJws,
  type JwsHeader,
  signJwsPart,
  v3DeviceSigners,
  v4DeviceSigners,
} from '../../../phone/device-signature.ts'
import { newKeyPair } from '../../../phone/v3/crypto.ts'
import { newSigningPair } from '../../../phone/v4/crypto.ts'
import { parseSignedJws } from './signed-jws.ts'

const [es256] = v3DeviceSigners(newKeyPair()) as [never]
const [es384, mlDsa65] = v4DeviceSigners('EC_P384_ML_L3', newSigningPair('EC_P384_ML_L3')) as [never, never]
const [, mlDsa87] = v4DeviceSigners('EC_P384_ML_L5', newSigningPair('EC_P384_ML_L5')) as [never, never]
const PAYLOAD = Buffer.from('{"pay":"100 EUR"}')
const base64Url = (text: string | Uint8Array): string => Buffer.from(text).toString('base64url')

/** A valid compact JWS of which `change` has changed header, payload or signature. */
function compact(change: (parts: [header: string, payload: string, signature: string]) => readonly string[]): string {
  return change(compactJws(es256, PAYLOAD).split('.') as [string, string, string]).join('.')
}
/** A valid JSON serialisation with two signatures, whose object `change` has changed. */
const general = (change: (jws: Record<string, unknown> & { signatures: Record<string, unknown>[] }) => unknown): string =>
  JSON.stringify(change(JSON.parse(generalJws([es384, mlDsa65], PAYLOAD)) as never))
/** A compact JWS with this text as its header. */
const withHeaderText = (text: string): string => compact(([, payload, signature]) => [base64Url(text), payload, signature])
const withHeader = (header: object): string => compactJws(es256, PAYLOAD, () => ({ alg: 'ES256', ...header }))

test('a compact JWS of a phone of 3.x, whose header is always the same', () => {
  const text = compactJws(es256, PAYLOAD)
  expect(text).toMatch(/^eyJhbGciOiJFUzI1NiIsInR5cCI6IkpXVCJ9\./)
  const parsed = parseSignedJws(text)
  expect(parsed?.payload).toEqual(PAYLOAD)
  expect(parsed?.signatures.map(({ algorithm, signature }) => [algorithm, signature.length])).toEqual([['ES256', 64]])
  expect(Buffer.from(parsed?.signatures[0]?.covered ?? []).toString()).toBe(text.slice(0, text.lastIndexOf('.')))
})

test('a signature of each key in JSON, each over its own header', () => {
  const parsed = parseSignedJws(
    generalJws([es384, mlDsa87], PAYLOAD, ({ alg }) => ({ typ: 'application/x', alg, kid: '7', x: 1 })),
  )
  expect(parsed?.payload).toEqual(PAYLOAD)
  expect(parsed?.signatures.map(({ algorithm, signature }) => [algorithm, signature.length])).toEqual([
    ['ES384', 96],
    ['ML-DSA-87', 4627],
  ])
  const headers = parsed?.signatures.map(({ covered }) => String(Buffer.from(covered)).split('.')[0] ?? '')
  expect(headers?.map((header) => JSON.parse(String(Buffer.from(header, 'base64url'))) as unknown)).toEqual([
    { typ: 'application/x', alg: 'ES384', kid: '7', x: 1 },
    { typ: 'application/x', alg: 'ML-DSA-87', kid: '7', x: 1 },
  ])
})

test('white space in JSON, another order, and one signature in its list', () => {
  const { payload, signatures } = JSON.parse(generalJws([es384], PAYLOAD)) as Record<string, unknown>
  expect(parseSignedJws(` ${JSON.stringify({ signatures, payload }, undefined, 2)}\n`)?.signatures).toHaveLength(1)
})

test('192 KiB are read in less than a second', () => {
  const before = process.threadCpuUsage()
  const payload = new Uint8Array(130_000)
  expect(parseSignedJws(generalJws([es384], payload))?.payload).toHaveLength(130_000)
  expect(parseSignedJws(`{"payload":"${'\\"'.repeat(90_000)}","signatures":[]}`)).toBeUndefined()
  expect(parseSignedJws(`{"payload":"","signatures":[${'{},'.repeat(60_000)}{}]}`)).toBeUndefined()
  expect(parseSignedJws('{"a":'.repeat(39_000))).toBeUndefined()
  expect(parseSignedJws(`${'['.repeat(98_000)}{}${']'.repeat(98_000)}`)).toBeUndefined()
  // Measures processor time, which does not include other work on the machine.
  const { user, system } = process.threadCpuUsage(before)
  expect((user + system) / 1_000).toBeLessThan(1_000)
})

const UNSIGNED = base64Url('{"alg":"none"}')

describe('no JWS of a phone is', () => {
  test.each<[string, string]>([
    ['an empty text', ''],
    ['two parts', compact(([header, payload]) => [header, payload])],
    ['four parts', compact((parts) => [...parts, ''])],
    ['a compact JWS without a header', compact(([, payload, signature]) => ['', payload, signature])],
    ['a compact JWS without a payload', compact(([header, , signature]) => [header, '', signature])],
    ['a compact JWS without a signature', compact(([header, payload]) => [header, payload, ''])],
    ['a compact JWS with a blank', ` ${compact((parts) => parts)}`],
    ['a compact JWS with a line break behind it', `${compact((parts) => parts)}\n`],
    ['a JWE', `${compact((parts) => parts)}.a.b`],
    ['alg none', compact(([, payload]) => [UNSIGNED, payload, ''])],
    ['alg none with the signature left', compact(([, payload, signature]) => [UNSIGNED, payload, signature])],
    ...['None', 'HS256', 'HS384', 'HS512', 'RS256', 'PS256', 'ES512', 'ES256K', 'EdDSA', 'es256', 'ML-DSA-44', '', 'ES256 '].map(
      (alg): [string, string] => [`alg ${alg}`, withHeader({ alg })],
    ),
    ...[undefined, null, 7, ['ES256'], { ES256: 1 }, true].map((alg): [string, string] => [
      `alg ${JSON.stringify(alg)}`,
      withHeader({ alg }),
    ]),
    ...Object.entries({ crit: [], b64: true, jwk: {}, jku: 'https://x', x5c: [], x5u: 'https://x' }).map(
      ([name, value]): [string, string] => [`a header with ${name}`, withHeader({ [name]: value })],
    ),
    ['crit as null', withHeader({ crit: null })],
    ['b64 that is off', withHeader({ b64: false })],
    ['a header with alg twice', withHeaderText('{"alg":"ES256","alg":"ES256"}')],
    ['a header with alg twice, once by an escape', withHeaderText('{"alg":"ES256","\\u0061lg":"none"}')],
    ['a header with another member twice', withHeaderText('{"alg":"ES256","typ":"a","typ":"b"}')],
    ['a header with a member within a member twice', withHeaderText('{"alg":"ES256","x":{"y":1,"y":2}}')],
    ['a header that is a list', withHeaderText('[{"alg":"ES256"}]')],
    ['a header that is a text', withHeaderText('"ES256"')],
    ['a header that is no JSON', withHeaderText('{"alg":"ES256"')],
    ['a header behind a byte order mark', withHeaderText('\uFEFF{"alg":"ES256"}')],
    [
      'a header that is no UTF-8',
      compact(([, ...rest]) => [base64Url(Buffer.from('7b22616c67223a224553323536ff227d', 'hex')), ...rest]),
    ],
    ['a header with padding', compact(([header, ...rest]) => [`${header}=`, ...rest])],
    ['a payload with padding', compact(([header, payload, signature]) => [header, `${payload}=`, signature])],
    ['a payload in standard Base64', compact(([header, , signature]) => [header, '+/+/', signature])],
    ['a payload with bits left', compact(([header, , signature]) => [header, 'YR', signature])],
    ['a payload of one character', compact(([header, , signature]) => [header, 'Y', signature])],
    [
      'a payload with a line break',
      compact(([header, payload, signature]) => [header, `${payload.slice(0, 4)}\n${payload.slice(4)}`, signature]),
    ],
    ['a signature with bits left', compact(([header, payload, signature]) => [header, payload, `${signature.slice(0, -1)}B`])],
    ['a signature with padding', compact(([header, payload, signature]) => [header, payload, `${signature}==`])],
    ['a signature of ES256 in DER', compact(([header, payload]) => [header, payload, base64Url(es256DER())])],
    ['a signature of 63 bytes', compact(([header, payload]) => [header, payload, base64Url(new Uint8Array(63))])],
    ['a signature of 65 bytes', compact(([header, payload]) => [header, payload, base64Url(new Uint8Array(65))])],
    ['a signature of P-384 under ES256', compactJws(es384, PAYLOAD, () => ({ alg: 'ES256' }))],
    ['a signature of P-256 under ES384', compactJws(es256, PAYLOAD, () => ({ alg: 'ES384' }))],
    ['a signature of ML-DSA-65 under ML-DSA-87', compactJws(mlDsa65, PAYLOAD, () => ({ alg: 'ML-DSA-87' }))],
  ])('%s', (_, text) => {
    expect(parseSignedJws(text)).toBeUndefined()
  })

  const twice = (name: string, text: string): string => text.replace(new RegExp(`"${name}":`), `"${name}":"eA","${name}":`)
  const crossed: JwsHeader = () => ({ alg: 'ES384' })

  test.each<[string, string]>([
    ['without signatures', general((jws) => ({ ...jws, signatures: [] }))],
    ['without a list', general(({ payload }) => ({ payload }))],
    ['with signatures that are no list', general((jws) => ({ ...jws, signatures: { 0: jws.signatures[0] } }))],
    ['with a list that holds null', general((jws) => ({ ...jws, signatures: [jws.signatures[0], null] }))],
    ['with a list in a list', general((jws) => ({ ...jws, signatures: [jws.signatures] }))],
    ['with one signature twice', general((jws) => ({ ...jws, signatures: [jws.signatures[0], jws.signatures[0]] }))],
    ['with two signatures by one algorithm', generalJws([es384, es384], PAYLOAD)],
    ['with two signatures by one key under the name of one algorithm', generalJws([es384, es384], PAYLOAD, crossed)],
    ['with three signatures', generalJws([es256, es384, mlDsa65], PAYLOAD)],
    ['with the signatures swapped', general((jws) => ({ ...jws, signatures: swapped(jws.signatures) }))],
    [
      'with one good signature and one of none',
      general((jws) => ({ ...jws, signatures: [jws.signatures[0], { protected: UNSIGNED, signature: '' }] })),
    ],
    ['without a payload', general(({ signatures }) => ({ signatures }))],
    ['with an empty payload', general((jws) => ({ ...jws, payload: '' }))],
    ['with a payload that is an object', general((jws) => ({ ...jws, payload: { pay: 1 } }))],
    ['with another member', general((jws) => ({ ...jws, extra: 1 }))],
    ['flattened', JSON.stringify({ payload: base64Url(PAYLOAD), ...signJwsPart(es256, PAYLOAD) })],
    ['flattened and general', general((jws) => ({ ...jws, ...signJwsPart(es256, PAYLOAD) }))],
    [
      'with a header that nothing covers',
      general((jws) => ({ ...jws, signatures: jws.signatures.map((one) => ({ ...one, header: { kid: '1' } })) })),
    ],
    [
      'with alg where nothing covers it',
      general((jws) => ({
        ...jws,
        signatures: jws.signatures.map(({ signature }) => ({ signature, header: { alg: 'ES384' } })),
      })),
    ],
    [
      'with a signature that has no header',
      general((jws) => ({ ...jws, signatures: [{ signature: jws.signatures[0]?.['signature'] }] })),
    ],
    [
      'with a header that is an object',
      general((jws) => ({ ...jws, signatures: [{ ...jws.signatures[0], protected: { alg: 'ES384' } }] })),
    ],
    [
      'with the payload twice',
      twice(
        'payload',
        general((jws) => jws),
      ),
    ],
    ['with the signatures twice', general((jws) => jws).replace('"signatures":', '"signatures":[],"signatures":')],
    [
      'with the signatures twice, once by an escape',
      general((jws) => jws).replace('"signatures":', '"\\u0073ignatures":[],"signatures":'),
    ],
    [
      'with a header twice',
      twice(
        'protected',
        general((jws) => jws),
      ),
    ],
    [
      'with a signature twice',
      twice(
        'signature',
        general((jws) => jws),
      ),
    ],
    ['in a list', `[${general((jws) => jws)}]`],
    ['and something else', `${general((jws) => jws)} x`],
    ['within a string', JSON.stringify(general((jws) => jws))],
    ['with a byte order mark', `\uFEFF${general((jws) => jws)}`],
  ])('JSON %s', (_, text) => {
    expect(parseSignedJws(text)).toBeUndefined()
  })
})

const swapped = ([first, second]: readonly Record<string, unknown>[]): unknown[] => [
  { ...first, signature: second?.['signature'] },
  { ...second, signature: first?.['signature'] },
]

function es256DER(): Uint8Array {
  const [signer] = v3DeviceSigners(newKeyPair())
  return signer?.signDer(PAYLOAD) ?? PAYLOAD
}
