// Slow work that all callers share: one who asks for more than the queue holds has nobody else refused.
import { generateKeySync } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { recogniseUser } from '../../../src/domain/activation/direct.ts'
import { createActivationOtps } from '../../../src/domain/activation/otp.ts'
import { createHttpProvider } from '../../../src/domain/user-info/http-provider.ts'
import { readUserInfo } from '../../../src/domain/user-info/user-info.ts'
import type { PawlError } from '../../../src/lib/errors.ts'
import { systemPlatform as platform } from '../../../src/lib/platform.ts'
import { type Provider, startProvider } from '../../helpers/provider.ts'

/** More than run and wait at once. */
const TOO_MANY = 400

let server: Provider
beforeAll(async () => {
  server = await startProvider()
})
afterAll(() => server.close())

/** Starts work of one caller, more than there is room for. Gives how many pieces are refused. */
async function flood(work: () => Promise<unknown>): Promise<number> {
  const results = await Promise.allSettled(Array.from({ length: TOO_MANY }, work))
  return results.filter((result) => result.status === 'rejected' && (result.reason as PawlError).code === 'UNAVAILABLE').length
}

test('OTPs of one application do not have those of another refused', async () => {
  const otps = createActivationOtps(generateKeySync('hmac', { length: 256 }), platform)
  const stored = await otps.hash('other', 'right')
  const refused = flood(() => otps.hash('greedy', 'x'))
  const others = [otps.isRight('other', 'right', stored), otps.isRight('other', 'wrong', stored)]
  expect(await Promise.all(others)).toEqual([true, false])
  expect(await refused).toBeGreaterThan(0)
})

test('questions for one asker do not have those for another refused', async () => {
  const settings = { setting: 'PAWL_USER_INFO', url: server.url, timeoutMs: 500, authorization: undefined }
  const ask = createHttpProvider(settings)
  server.answerWith(() => undefined)
  const refused = flood(() => ask('greedy', {}))
  const other = ask('other', { of: 'other' })
  server.answerWith(({ json }) => ({ body: json }))
  expect(await other).toEqual({ of: 'other' })
  expect(await refused).toBeGreaterThan(0)
})

test('a phone asks for its own claims, and a source for the user of a phone that is not bound', async () => {
  const askers: string[] = []
  const provider = async (asker: string) => {
    askers.push(asker)
    return { userId: 'alice' }
  }
  const subject = { applicationId: 'app', userId: 'alice', activationId: 'phone-1', storedClaims: null }
  await readUserInfo({ platform, userInfoProvider: provider } as unknown as Parameters<typeof readUserInfo>[0], subject)
  const request = {
    applicationId: 'app',
    type: 'CUSTOM',
    identityAttributes: {},
    customAttributes: {},
    protocolVersion: '3.3',
  } as const
  const parts = { events: {} } as unknown as Parameters<typeof recogniseUser>[1]
  for (const ip of ['192.0.2.7', '2001:db8:1:2::9']) await recogniseUser(provider, parts, ip, request)
  expect(askers).toEqual(['phone-1', '192.0.2.7', '2001:db8:1:2::/64'])
})
