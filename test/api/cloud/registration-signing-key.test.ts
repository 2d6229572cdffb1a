// Which master key signs the code of a registration: on P-256 where the application admits protocol 3, else on P-384 (v3 §8.2).
import { afterAll, beforeAll, expect, test } from 'vitest'
import { expectOk, startServerWithWorld, type World } from '../../helpers/world.ts'

let world: World
beforeAll(async () => {
  ;({ world } = await startServerWithWorld({}))
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
