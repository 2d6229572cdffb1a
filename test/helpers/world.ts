// Opens a world for tests of the phones' APIs: a listening server, one application, its bank, and phones in any state.
import type { MasterKeys } from '../../src/domain/secrets/record-keys.ts'
import { createPostgresDatabase, startTestServer, type TestServer, type TestServerOptions } from './app.ts'
import type { Bank } from './bank.ts'
import { createBank, readApplication, readQrCode } from './bank.ts'
import type { HttpReply } from '../../phone/http.ts'
import { member } from '../../phone/http.ts'
import type { PhoneVersion } from '../../phone/v3/crypto.ts'
import { random } from '../../phone/v3/crypto.ts'
import type { AppConfiguration, PhoneOptions } from '../../phone/v3/state.ts'
import type { ActivationOptions, VirtualPhone } from '../../phone/v3/virtual-phone.ts'
import { createPhone } from '../../phone/v3/virtual-phone.ts'

/** A phone with its user. */
export interface Bound {
  readonly userId: string
  readonly phone: VirtualPhone
}

export interface World {
  /** Addresses of the server's processes; one for a single process. */
  readonly urls: readonly string[]
  readonly url: string
  /** The administrator, who acts on the default application. */
  readonly bank: Bank
  readonly app: AppConfiguration
  readonly applicationId: string
  /** Moves the server's clock. */
  readonly advance: (milliseconds: number) => void | Promise<void>
  readonly newUser: () => string
  readonly newPhone: (version: PhoneVersion, options?: Partial<PhoneOptions>) => VirtualPhone
  /** Registers a user, by default a new one, and returns the activation code with its signature. */
  readonly register: (userId?: string) => Promise<{ userId: string; code: string; signature: Uint8Array }>
  /** Makes a phone that has exchanged its keys and waits for the commit. */
  readonly pendingPhone: (version: PhoneVersion, options?: Partial<PhoneOptions>, request?: ActivationOptions) => Promise<Bound>
  /** Makes a phone with an active activation. */
  readonly activePhone: (version: PhoneVersion, options?: Partial<PhoneOptions>, request?: ActivationOptions) => Promise<Bound>
  readonly close: () => Promise<void>
}

/** The parts of a running server that a world needs. */
export interface Server {
  readonly urls: readonly string[]
  /** `user:password` of the administrator. */
  readonly admin: string
  readonly advance: (milliseconds: number) => void | Promise<void>
  readonly close: () => Promise<void>
}

/** Starts a server and opens a world on it. */
export const startWorld = async (): Promise<World> => openWorldOn(await startTestServer())

/** Starts a server with settings and opens a world on it, for tests that also look at its log and database. */
export async function startServerWithWorld(options: TestServerOptions): Promise<{ server: TestServer; world: World }> {
  const server = await startTestServer(options)
  return { server, world: await openWorldOn(server) }
}

/** Opens a world on a server of the caller. */
export const openWorldOn = (server: TestServer): Promise<World> =>
  openWorld({
    urls: [server.url],
    admin: `${server.admin.user}:${server.admin.password}`,
    advance: (milliseconds) => server.clock.advance(milliseconds),
    close: () => server.close(),
  })

/** Starts two servers on one PostgreSQL database, with one master key and clocks that move together. */
export async function startSharedWorld(): Promise<World> {
  const { databaseUrl, drop } = await createPostgresDatabase()
  const masterKeys: MasterKeys = [random(32)]
  // Requests under way at one server may exceed a limit that the other has used up, so that the next right code would be refused.
  const env = { PAWL_CODE_FAILURES_PER_MINUTE: '1000' }
  const first = await startTestServer({ databaseUrl, masterKeys, env })
  const second = await startTestServer({ databaseUrl, masterKeys, env })
  return openWorld({
    urls: [first.url, second.url],
    admin: `${first.admin.user}:${first.admin.password}`,
    advance: (milliseconds) => {
      first.clock.advance(milliseconds)
      second.clock.advance(milliseconds)
    },
    close: async () => {
      await first.close()
      await second.close()
      await drop()
    },
  })
}

/** Opens a world on a running server. Its default application is `test-app`, which is created if it is missing. */
export async function openWorld(server: Server, applicationId = 'test-app'): Promise<World> {
  const [url = ''] = server.urls
  const bank = createBank(url, server.admin)
  const existing = await bank.call('GET', `/admin/application?id=${applicationId}`)
  const app = readApplication(existing.status === 200 ? existing : await bank.createApplication(applicationId))
  const run = Buffer.from(random(4)).toString('hex')
  let users = 0
  const newUser = (): string => `user-${run}-${++users}`
  const newPhone: World['newPhone'] = (version, options) => createPhone({ url, app, version, ...options })
  const register: World['register'] = async (userId = newUser()) => ({ userId, ...readQrCode(await bank.register(userId)) })
  const pendingPhone: World['pendingPhone'] = async (version, options, request) => {
    const { userId, code } = await register()
    const phone = newPhone(version, options)
    await phone.activate(code, request)
    return { userId, phone }
  }
  const activePhone: World['activePhone'] = async (version, options, request) => {
    const bound = await pendingPhone(version, options, request)
    expectOk(await bank.commit(bound.userId))
    return bound
  }
  const { urls, advance, close } = server
  return { urls, url, bank, app, applicationId, advance, newUser, newPhone, register, pendingPhone, activePhone, close }
}

/** Throws unless the answer is 200. */
export function expectOk(reply: HttpReply): HttpReply {
  if (reply.status !== 200) throw new Error(`HTTP ${reply.status} ${reply.text}`)
  return reply
}

/** The state of a user's registration: NONE, CREATED, PENDING_COMMIT, ACTIVE or BLOCKED. */
export const registrationOf = async (world: Pick<World, 'bank'>, userId: string): Promise<unknown> =>
  member(expectOk(await world.bank.view(userId)).json, 'registration')
