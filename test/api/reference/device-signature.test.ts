// signature/ecdsa/verify, dsa/verify and jwt/verify of the reference's back-end API (cloud §15.3).
import { afterAll, beforeAll, expect, test } from 'vitest'
import { compactJws, generalJws } from '../../../phone/device-signature.ts'
import type { Bank } from '../../helpers/bank.ts'
import { startDoorWorld, type DoorWorld, type SigningPhone } from '../../helpers/door-world.ts'
import { expectError } from '../../helpers/expectations.ts'
import { askReference, callReference } from '../../helpers/reference.ts'
import { expectOk } from '../../helpers/world.ts'

let world: DoorWorld
let bank: Bank
beforeAll(async () => {
  world = await startDoorWorld({ env: { PAWL_REFERENCE_API: 'true' } })
  bank = await world.openBank('verification', world.world.applicationId)
})
afterAll(() => world.close())

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64')
const data = Buffer.from('pay 100 EUR')
const other = base64(Buffer.from('pay 900 EUR'))
const anId = '3f2504e0-4f89-41d3-9a0c-0305e82c3301'
const VALID = { signatureValid: true }
const INVALID = { signatureValid: false }

/** A signer of a phone: the first is of ECDSA, the second of ML-DSA. */
function signerOf({ signers }: SigningPhone, position: 0 | 1) {
  const signer = signers[position]
  if (signer === undefined) throw new Error('no such key')
  return signer
}

test('of 1.x: an ECDSA signature in DER or JOSE', async () => {
  const phone = await world.signingPhone('EC_P256')
  const signer = signerOf(phone, 0)
  const asked = {
    activationId: phone.activationId,
    data: base64(data),
    signature: base64(signer.signDer(data)),
    signatureFormat: null,
  }
  const verify = (more: object = {}) => askReference(bank, 'v3', 'signature/ecdsa/verify', { ...asked, ...more })
  expect(await verify()).toEqual(VALID)
  expect(await verify({ signatureFormat: 'DER' })).toEqual(VALID)
  expect(await verify({ signatureFormat: 'JOSE', signature: base64(signer.sign(data)) })).toEqual(VALID)
  for (const more of [{ data: other }, { signatureFormat: 'JOSE' }, { signature: '*' }, { activationId: anId }])
    expect(await verify(more)).toEqual(INVALID)
  expectError(await callReference(bank, 'v3', 'signature/ecdsa/verify', { ...asked, data: '*' }), 400, 'ERR0024')
  expectError(await callReference(bank, 'v3', 'signature/ecdsa/verify', { ...asked, signatureFormat: 'PEM' }), 400, 'ERR0024')
  expect(await askReference((await world.foreignPhone()).bank, 'v3', 'signature/ecdsa/verify', asked)).toEqual(INVALID)
  expectOk(await world.bank.change(phone.userId, 'BLOCK'))
  expect(await verify()).toEqual(INVALID)
})

test.each(['EC_P384', 'EC_P384_ML_L3', 'EC_P384_ML_L5'] as const)('of 2.x: a signature of one key of %s', async (algorithm) => {
  const phone = await world.signingPhone(algorithm)
  const verify = (more: object) =>
    askReference(bank, 'v4', 'dsa/verify', { activationId: phone.activationId, data: base64(data), ...more })
  const ecdsa = { signature: base64(signerOf(phone, 0).signDer(data)), signatureType: 'ECDSA', signatureFormat: 'DER' }
  expect(await verify(ecdsa)).toEqual(VALID)
  expect(await verify({ ...ecdsa, data: other })).toEqual(INVALID)
  expect(await verify({ ...ecdsa, signatureType: 'MLDSA' })).toEqual(INVALID)
  if (algorithm === 'EC_P384') return
  const mldsa = { signature: base64(signerOf(phone, 1).sign(data)), signatureType: 'MLDSA', signatureFormat: 'DER' }
  expect(await verify(mldsa)).toEqual(VALID)
  expect(await verify({ ...mldsa, data: other })).toEqual(INVALID)
  expect(await verify({ ...mldsa, signatureType: 'ECDSA' })).toEqual(INVALID)
})

test('of 2.x: a JWS needs a signature of each key of the phone', async () => {
  const phone = await world.signingPhone('EC_P384_ML_L3')
  const verify = (signedData: string, activationId = phone.activationId) =>
    askReference(bank, 'v4', 'jwt/verify', { activationId, signedData, signatureFormat: 'JWS_JSON' })
  const whole = generalJws(phone.signers, data)
  expect(await verify(whole)).toEqual(VALID)
  expect(await verify(whole, anId)).toEqual(INVALID)
  expect(await verify(generalJws(phone.signers.slice(0, 1), data))).toEqual(INVALID)
  expect(await verify(compactJws(signerOf(phone, 0), data))).toEqual(INVALID)
  const single = await world.signingPhone('EC_P384')
  expect(await verify(compactJws(signerOf(single, 0), data), single.activationId)).toEqual(VALID)
  expect(await verify('x.y.z', single.activationId)).toEqual(INVALID)
})
