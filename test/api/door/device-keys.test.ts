// GET /v2/registrations/{id}/device-keys: public keys as PEM and as JWK, with which others verify what the phone signs (cloud §14.3).
import { createPublicKey } from 'node:crypto'
import { compactVerify, importJWK, importSPKI } from 'jose'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { compactJws } from '../../../phone/device-signature.ts'
import type { HttpReply } from '../../../phone/http.ts'
import { member } from '../../../phone/http.ts'
import type { Bank } from '../../helpers/bank.ts'
import { type DoorWorld, signerOf, startDoorWorld } from '../../helpers/door-world.ts'
import { expectError } from '../../helpers/expectations.ts'
import { expectOk } from '../../helpers/world.ts'

let world: DoorWorld
beforeAll(async () => {
  world = await startDoorWorld()
})
afterAll(() => world.close())

const read = (id: string, bank: Bank = world.bank): Promise<HttpReply> => bank.call('GET', `/v2/registrations/${id}/device-keys`)

test.each([
  ['EC_P256', ['ES256']],
  ['EC_P384', ['ES384']],
  ['EC_P384_ML_L3', ['ES384', 'ML-DSA-65']],
  ['EC_P384_ML_L5', ['ES384', 'ML-DSA-87']],
] as const)('those of a phone of %s', async (algorithm, names) => {
  const phone = await world.signingPhone(algorithm)
  const { keys, ...rest } = expectOk(await read(phone.activationId)).json as {
    keys: { algorithm: string; pem: string; jwk: Record<string, string> }[]
  }
  expect(rest).toEqual({ activationId: phone.activationId, userId: phone.userId, state: 'ACTIVE' })
  expect(keys.map((key) => key.algorithm)).toEqual(names)
  for (const [i, { algorithm: alg, pem, jwk }] of keys.entries()) {
    const signer = signerOf(phone, i)
    expect(createPublicKey(pem).export({ format: 'der', type: 'spki' })).toEqual(Buffer.from(signer.spki))
    expect(Object.keys(jwk)).not.toContain('d')
    expect(Object.keys(jwk)).not.toContain('priv')
    for (const key of [await importSPKI(pem, alg), await importJWK(jwk, alg)])
      expect((await compactVerify(compactJws(signer, Buffer.from('x')), key)).protectedHeader.alg).toBe(alg)
  }
})

test('there are none before the key exchange, and they stay when the activation is removed', async () => {
  const { userId, phone } = await world.world.pendingPhone('3.3')
  expect(member(expectOk(await read(phone.state.activationId)).json, 'state')).toBe('PENDING_COMMIT')
  expectOk(await world.bank.remove(userId))
  const removed = expectOk(await read(phone.state.activationId)).json
  expect([member(removed, 'state'), (member(removed, 'keys') as unknown[]).length]).toEqual(['REMOVED', 1])
  const waiting = expectOk(await read((await world.createdRegistration()).activationId)).json
  expect([member(waiting, 'state'), member(waiting, 'keys')]).toEqual(['CREATED', []])
})

test('an activation that is unknown or of another application is not found', async () => {
  const foreign = await world.foreignPhone()
  expectOk(await read(foreign.activationId, foreign.bank))
  expectError(await read(foreign.activationId), 400, 'ERROR_REGISTRATION_NOT_FOUND')
  expectError(await read('3f2504e0-4f89-41d3-9a0c-0305e82c3301'), 400, 'ERROR_REGISTRATION_NOT_FOUND')
  expectError(await read('x%0Ay'), 400, 'ERROR_REQUEST')
})

test('callers are integration, admin, and who only reads in this application', async () => {
  const { activationId } = await world.signingPhone('EC_P256')
  expectOk(await read(activationId, await world.openBank('integration', world.world.applicationId)))
  expectOk(await read(activationId, await world.openBank('read-only', world.world.applicationId)))
  expectError(await read(activationId, await world.openBank('read-only')), 400, 'ERROR_REGISTRATION_NOT_FOUND')
  expectError(await read(activationId, await world.openBank('internal')), 403, 'HTTP_403')
  expectError(await read(activationId, world.bank.as(undefined)), 401, 'HTTP_401')
})
