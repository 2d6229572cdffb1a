// Replaces two modules by the network of the simulation: the sender of phones and bank, and the sender of webhooks.
import { vi } from 'vitest'
import type * as PhoneHttp from '../../phone/http.ts'
import type * as Outbound from '../../src/lib/outbound.ts'
import type * as Batcher from '../../src/storage/database/request-batcher.ts'
import { theNetwork } from './network.ts'

vi.mock('../../phone/http.ts', async (importOriginal) => {
  const original = await importOriginal<typeof PhoneHttp>()
  return {
    ...original,
    send: (url: string, request: PhoneHttp.HttpRequest) => theNetwork().send(url, request),
    sendJson: (url: string, method: string, path: string, json?: unknown, headers: Record<string, string> = {}) => {
      const body = json === undefined ? original.NO_BODY : Buffer.from(JSON.stringify(json))
      const type = json === undefined ? {} : { 'Content-Type': 'application/json' }
      return theNetwork().send(url, { method, path, headers: { ...type, ...headers }, body })
    },
  }
})

vi.mock('../../src/lib/outbound.ts', async (importOriginal) => ({
  ...(await importOriginal<typeof Outbound>()),
  sendOutbound: (...args: Parameters<ReturnType<typeof theNetwork>['sendOutbound']>) => theNetwork().sendOutbound(...args),
}))

// Servers share failures at times that do not depend on the seed. The limits are out of reach here anyway (server.ts).
vi.mock('../../src/domain/limits/shared-failures.ts', () => ({
  createSharedFailures: () => ({ tell: () => undefined, ask: () => Promise.resolve(undefined) }),
}))

// A batch is late after some real milliseconds. On a busy machine they would pass in one run and not in its replay.
vi.mock('../../src/storage/database/request-batcher.ts', async (importOriginal) => {
  const { createRequestBatcher } = await importOriginal<typeof Batcher>()
  const neverLate: typeof createRequestBatcher = (run, options) => createRequestBatcher(run, { ...options, lateMs: DAY_MS })
  return { createRequestBatcher: neverLate }
})
const DAY_MS = 86_400_000
