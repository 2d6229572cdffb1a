// Starts one server of a simulation in this process, on a database that the simulation controls.
import type { FastifyInstance } from 'fastify'
import { buildApp } from '../../src/app.ts'
import { parseConfig } from '../../src/config/parser.ts'
import { type Context, createContext } from '../../src/context.ts'
import { createLog } from '../../src/log/log.ts'
import type { Platform } from '../../src/lib/platform.ts'
import type { Database } from '../../src/storage/database/database.ts'
import type { Chance } from './chance.ts'

export interface Server {
  readonly app: FastifyInstance
  readonly context: Context
}

/** Starts a server without background work, which the schedule calls. Limits that a simulation would reach only by its speed are raised. */
export async function startServer(
  database: Database,
  { masterKey, platform }: { readonly masterKey: Uint8Array; readonly platform: Platform },
): Promise<Server> {
  const { config, secrets } = parseConfig(SETTINGS, () => '')
  const context = await createContext(
    config,
    { ...secrets, masterKeys: [masterKey] },
    { platform, log: createLog('silent', { write: () => undefined }), database, worksInBackground: false },
  )
  return { app: await buildApp(context), context }
}

/** Makes ids and random bytes from the chance of the seed, so that a replay has the same ones. */
export const createIds = (chance: Chance): Pick<Platform, 'randomBytes' | 'uuid'> => ({
  randomBytes: (length) => Buffer.from(chance.bytes(length)),
  uuid: () => {
    const bytes = chance.bytes(16)
    bytes[6] = (Number(bytes[6]) & 0x0f) | 0x40
    bytes[8] = (Number(bytes[8]) & 0x3f) | 0x80
    const hex = Buffer.from(bytes).toString('hex')
    return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
  },
})

/** The time for which a server keeps an answer of a door, by its own clock. */
export const VERDICT_KEPT_MS = 600_000

const SETTINGS = {
  PAWL_PORT: '0',
  PAWL_CONSOLE: 'false',
  PAWL_METRICS: 'off',
  PAWL_SOURCE_FAILURES_PER_MINUTE: '1000000',
  PAWL_CODE_FAILURES_PER_MINUTE: '100000',
  PAWL_CREDENTIAL_FAILURES_PER_MINUTE: '100000',
  PAWL_TEMPORARY_KEYS_PER_MINUTE: '1000000',
  PAWL_MOBILE_READS_PER_MINUTE: '100000',
  PAWL_OTP_ATTEMPTS_PER_MINUTE: '100000',
  PAWL_TEMPORARY_BLOCK_SECONDS: '60',
  // Longer than the greatest difference between the clocks of two servers.
  PAWL_DOOR_IDEMPOTENCY_SECONDS: String(VERDICT_KEPT_MS / 1000),
}
