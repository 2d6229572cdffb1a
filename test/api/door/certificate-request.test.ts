// POST /verification/certificate-request: requests that phones of every kind make with their device keys (cloud §14.2).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { certificateRequest, type CertificateRequestOptions } from '../../../phone/device-signature.ts'
import type { HttpReply } from '../../../phone/http.ts'
import { member } from '../../../phone/http.ts'
import type { Bank } from '../../helpers/bank.ts'
import { type DoorWorld, expectVerdict, type SigningPhone, signerOf, startDoorWorld } from '../../helpers/door-world.ts'
import { expectError } from '../../helpers/expectations.ts'
import { expectOk } from '../../helpers/world.ts'

let world: DoorWorld
beforeAll(async () => {
  world = await startDoorWorld()
})
afterAll(() => world.close())

const PATH = '/verification/certificate-request'
const ask = ({ activationId }: Pick<SigningPhone, 'activationId'>, pem: unknown, bank: Bank = world.bank): Promise<HttpReply> =>
  bank.call('POST', PATH, { activationId, pem })
const requestOf = (phone: SigningPhone, place = 0, options?: CertificateRequestOptions): string =>
  certificateRequest(signerOf(phone, place), options)
const own = ({ activationId, userId }: SigningPhone) => ({ activationId, userId, state: 'ACTIVE' })
const UNKNOWN = { isValid: false, reason: 'UNKNOWN' }
const FORM = { isValid: false, reason: 'FORM' }

test.each([
  ['EC_P256', ['ES256']],
  ['EC_P384', ['ES384']],
  ['EC_P384_ML_L3', ['ES384', 'ML-DSA-65']],
  ['EC_P384_ML_L5', ['ES384', 'ML-DSA-87']],
] as const)('a phone of %s makes one with each of its keys', async (algorithm, names) => {
  const phone = await world.signingPhone(algorithm)
  for (const [i, name] of names.entries()) {
    const subject = { CN: 'alice', O: 'Bank, a.s.', C: 'CZ' }
    const verdict = { isValid: true, ...own(phone), subject: 'C=CZ,O=Bank\\, a.s.,CN=alice', algorithm: name }
    const pem = requestOf(phone, i, { subject })
    expectVerdict(await ask(phone, pem), verdict)
    expectVerdict(await ask(phone, pem.replaceAll('\n', '\r\n')), verdict)
  }
  expect((await world.auditOf(phone.activationId)).map(([type, data]) => [type, data.split('\n')[0]])).toEqual(
    names.flatMap((name) => Array.from({ length: 2 }, () => ['device_signature_ok', `PKCS10 ${name}`])),
  )
})

test('a request with the key of another phone, signed by that phone or not, is none of this one', async () => {
  const [phone, other] = [await world.signingPhone('EC_P384_ML_L3'), await world.signingPhone('EC_P384_ML_L3')]
  const missing = { isValid: false, reason: 'KEYS_MISSING', ...own(phone) }
  const wrong = { isValid: false, reason: 'SIGNATURE_WRONG', ...own(phone) }
  expectVerdict(await ask(phone, requestOf(other)), missing)
  expectVerdict(await ask(phone, requestOf(other, 1)), missing)
  expectVerdict(await ask(phone, requestOf(phone, 0, { spki: signerOf(other).spki })), missing)
  expectVerdict(await ask(phone, requestOf(other, 0, { spki: signerOf(phone).spki })), wrong)
  expectVerdict(await ask(phone, requestOf(other, 1, { spki: signerOf(phone, 1).spki })), wrong)
  // The key of one algorithm and a signature that says it is of the other.
  expectVerdict(await ask(phone, requestOf(phone, 0, { spki: signerOf(phone, 1).spki })), missing)
  expectVerdict(await ask(phone, requestOf(phone, 1, { spki: signerOf(phone).spki })), missing)
})

test('a request whose subject was changed is not signed', async () => {
  const phone = await world.signingPhone('EC_P256')
  const der = Buffer.from(requestOf(phone, 0, { subject: { CN: 'alice' } }).replaceAll(/-----.*-----|\n/g, ''), 'base64')
  const changed = Buffer.from(der.toString('latin1').replace('alice', 'mallo'), 'latin1').toString('base64')
  const pem = `-----BEGIN CERTIFICATE REQUEST-----\n${changed}\n-----END CERTIFICATE REQUEST-----\n`
  expectVerdict(await ask(phone, pem), { isValid: false, reason: 'SIGNATURE_WRONG', ...own(phone) })
})

test('what is no request cannot be read, and nothing is looked up for it', async () => {
  const phone = await world.signingPhone('EC_P256')
  const pem = requestOf(phone)
  for (const text of [
    'x',
    pem + pem,
    `${pem}x`,
    pem.replaceAll('CERTIFICATE REQUEST', 'CERTIFICATE'),
    pem.replaceAll('CERTIFICATE REQUEST', 'NEW CERTIFICATE REQUEST'),
    '-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----',
    '-----BEGIN CERTIFICATE REQUEST-----\nMAA=\n-----END CERTIFICATE REQUEST-----',
  ]) {
    expectVerdict(await ask(phone, text), FORM)
  }
  expect(await world.auditOf(phone.activationId)).toEqual([])
})

test('only an activation that is ACTIVE, of this application, makes one', async () => {
  const foreign = await world.foreignPhone()
  expect(member((await ask(foreign, requestOf(foreign), foreign.bank)).json, 'isValid')).toBe(true)
  expectVerdict(await ask(foreign, requestOf(foreign)), UNKNOWN)
  const phone = await world.signingPhone('EC_P384_ML_L5')
  expectVerdict(await ask({ activationId: '3f2504e0-4f89-41d3-9a0c-0305e82c3301' }, requestOf(phone, 1)), UNKNOWN)
  expectVerdict(await ask(phone, requestOf(phone), foreign.bank), UNKNOWN)
  expectOk(await world.bank.change(phone.userId, 'BLOCK'))
  expectVerdict(await ask(phone, requestOf(phone)), { isValid: false, reason: 'STATE', ...own(phone), state: 'BLOCKED' })
})

describe('what the bank composes wrongly is an error', () => {
  test.each([undefined, 7, null, '', 'x'.repeat(65_537)])('the text %j', async (pem) => {
    expectError(await ask({ activationId: 'x' }, pem), 400, 'ERROR_REQUEST')
  })
})

test('callers are integration and admin', async () => {
  const phone = await world.signingPhone('EC_P256')
  const integration = await world.openBank('integration', world.world.applicationId)
  expect(member((await ask(phone, requestOf(phone), integration)).json, 'isValid')).toBe(true)
  for (const role of ['read-only', 'internal'])
    expectError(await ask(phone, requestOf(phone), await world.openBank(role)), 403, 'HTTP_403')
  expectError(await ask(phone, requestOf(phone), world.bank.as(undefined)), 401, 'HTTP_401')
})
