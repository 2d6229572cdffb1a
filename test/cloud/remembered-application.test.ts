// What a process remembers of an application decides no registration: the statement that stores one asks whether it still is so
// (docs/decisions/0011-remembered-applications.md).
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createRegistration } from '../../src/domain/activation/registration.ts'
import type { TestServer } from '../helpers/app.ts'
import { expectOk, startServerWithWorld, type World } from '../helpers/world.ts'

let server: TestServer
let world: World
beforeAll(async () => {
  const started = await startServerWithWorld({})
  server = started.server
  world = started.world
})
afterAll(() => world.close())

/** DER of a signature on P-256 has up to 72 bytes, on P-384 at least 96. */
const curveOf = ({ signature }: { readonly signature: Uint8Array }): 'P-256' | 'P-384' =>
  signature.length > 80 ? 'P-384' : 'P-256'

test('a code is signed by the key that phones verify by now', async () => {
  const path = `/admin/applications/${world.applicationId}`
  expect(curveOf(await world.register())).toBe('P-256')
  expect(curveOf(await world.register())).toBe('P-256')
  expectOk(await world.bank.call('PATCH', path, { isProtocol3Admitted: false }))
  expect(curveOf(await world.register())).toBe('P-384')
  expect(curveOf(await world.register())).toBe('P-384')
  expectOk(await world.bank.call('PATCH', path, { isProtocol3Admitted: true }))
  expect(curveOf(await world.register())).toBe('P-256')
})

test('a key that is not of the application any more is not used', async () => {
  const { applicationId } = world
  const owner = (userId: string) => ({ applicationId, userId })
  const { context } = server
  expect(await createRegistration(context, owner('before'))).toBeDefined()
  const remembered = context.registrationBases.recall(applicationId)
  if (remembered === undefined) throw new TypeError('nothing is remembered')
  expectOk(await world.bank.createApplication('other'))
  const other = { applicationId: 'other', userId: 'u' }
  expect(await createRegistration(context, other)).toBeDefined()
  const foreign = context.registrationBases.recall('other')
  if (foreign === undefined) throw new TypeError('nothing is remembered')
  context.registrationBases.remember(applicationId, { ...remembered, signingKey: foreign.signingKey })
  expect(await createRegistration(context, owner('after'))).toBeDefined()
  expect(context.registrationBases.recall(applicationId)).toEqual(remembered)
})

test('an application that is remembered and gone is not there', async () => {
  const { context } = server
  const { applicationId } = world
  const basis = context.registrationBases.recall(applicationId)
  if (basis === undefined) throw new TypeError('nothing is remembered')
  context.registrationBases.remember('gone', { ...basis, applicationId: 'gone' })
  expect(await createRegistration(context, { applicationId: 'gone', userId: 'u' })).toBeUndefined()
})
