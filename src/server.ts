// Starts and stops one server: its context and its listeners.
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { buildApp, type Surface } from './app.ts'
import type { Secrets } from './config/secrets.ts'
import type { Config } from './config/config.ts'
import { type Context, createContext } from './context.ts'
import { formatListenerUrl } from './http/connections.ts'
import { type TlsFiles, tlsFilesOf } from './http/internal-tls.ts'
import { openWaitingRoom } from './http/health.ts'
import type { Log } from './log/log.ts'
import { systemPlatform } from './lib/platform.ts'
import type { Tracer } from './lib/trace.ts'
import type { Peers } from './metrics/metrics.ts'
import { findDefaultApplicationId } from './storage/application/applications.ts'
import { findCredential } from './storage/credential/credentials.ts'

/** How long answers carry `Connection: close` before the server closes. */
const FAREWELL_MS = 1_000
const DATABASE_CLOSE_MS = 1_000
/** The default of Node. */
const BACKLOG_MIN = 511
/** How long the collector may take for the last spans. */
const TRACES_CLOSE_MS = 1_000

export interface Server {
  /** Tells the operator where the server listens and who may call it. */
  readonly startText: string
  /** Drains, then closes the listeners and the database. Resolves when the process may end. */
  readonly stop: (signal: NodeJS.Signals) => Promise<void>
}

/** The parts of a server that the process provides. */
interface Brought {
  readonly log: Log
  /** Makes the traces of requests; undefined without traces. */
  readonly tracer: Tracer | undefined
  /** The other processes that listen on the same port. */
  readonly peers?: Peers
  /** True if some of these processes serve already. They answer health while this one starts. */
  readonly isBeside?: boolean
  /** Interrupts a start that waits. The start then throws the reason of the signal. */
  readonly signal: AbortSignal
}

/**
 * Opens the database, makes the administrator of a first start, and listens. While a start takes long, a waiting room answers health. Throws
 * StartError, or the reason of `signal` when that aborts.
 */
export async function startServer(config: Config, secrets: Secrets, { signal, ...brought }: Brought): Promise<Server> {
  const context = await createContextInView(config, secrets, { signal, ...brought })
  const running = await listen(context)
  const hasApplication = (await findDefaultApplicationId(context.db)) !== undefined
  // Comes last: if the start failed afterwards, nobody would have seen the password.
  const password = await context.createFirstAdmin()
  const isAdminThere = password !== undefined || (await findCredential(context.db, config.adminUser)) !== undefined
  const startText = renderStartText(running, context, { password, isAdminThere, hasApplication })
  if (config.publicUrl === undefined) context.events.publicUrlMissing()
  return { startText, stop: (signal) => stop(running, context, signal) }
}

async function createContextInView(
  config: Config,
  secrets: Secrets,
  { signal, isBeside = false, ...brought }: Brought,
): Promise<Context> {
  let reason = 'the server starts'
  const onDelay = (delay: string): void => void (reason = delay)
  const onOpen = (address: string): void => brought.log.debug({ address }, 'the start takes long, health is answered meanwhile')
  // Every process that listens gets connections. A waiting room here would refuse callers whom the other processes can serve.
  const leave = isBeside ? async () => undefined : openWaitingRoom({ ...config, reason: () => reason, onOpen })
  try {
    return await createContext(config, secrets, { platform: systemPlatform, ...brought, starting: { onDelay, signal } })
  } finally {
    await leave()
  }
}

/** The first listener serves phones. The second exists if the bank's API has a listener of its own. */
type Running = readonly [FastifyInstance, FastifyInstance?]

/** Opens the listeners. If one fails, closes the context and throws. */
async function listen(context: Context): Promise<Running> {
  const { host, port, internalHost, internalPort } = context.settings
  try {
    if (internalPort === undefined) return [await openListener(context, 'everything', host, port)]
    const internal = await openListener(context, 'internal', internalHost, internalPort, tlsFilesOf(context.settings))
    return [await openListener(context, 'public', host, port), internal]
  } catch (error) {
    await context.close()
    throw error
  }
}

async function openListener(context: Context, surface: Surface, host: string, port: number, tls?: TlsFiles) {
  const app = await buildApp(context, surface, tls)
  // As many connections may queue as the server takes. The system drops connections beyond the queue, and a caller then retries a second later.
  await app.listen({ host, port, backlog: Math.max(BACKLOG_MIN, context.settings.connectionsMax) })
  return app
}

/**
 * Answers readiness with 503 until balancers have noticed, gives connections back, takes no new ones, lets running requests finish until the time
 * limit, and closes the database.
 */
async function stop(running: Running, context: Context, signal: NodeJS.Signals): Promise<void> {
  const { settings, log } = context
  const apps = running.filter((app) => app !== undefined)
  const { drainSeconds } = settings
  log.info({ signal, drainSeconds }, 'stopping')
  if (drainSeconds > 0) {
    context.serviceState.phase = 'draining'
    await sleep(drainSeconds * 1000)
    context.serviceState.phase = 'closing'
    await sleep(FAREWELL_MS)
  }
  const closed = Promise.all(apps.map((app) => app.close())).then(() => true)
  const isClosedWithin = (seconds: number) => Promise.race([closed, sleep(seconds * 1000, false, { ref: false })])
  if (!(await isClosedWithin(settings.shutdownTimeoutSeconds))) {
    log.warn('requests were still running at the time limit, their connections are cut')
    for (const app of apps) app.server.closeAllConnections()
    await closed
  }
  // Closing a database that no longer answers would never end. The database then sees a lost connection.
  const isDatabaseClosed = Promise.race([context.close(), sleep(DATABASE_CLOSE_MS)])
  await Promise.all([isDatabaseClosed, Promise.race([context.tracer?.close(), sleep(TRACES_CLOSE_MS)])])
}

/** `password`: of the administrator that this start made. The configured one may be gone. The last line says that the server is ready. */
function renderStartText(
  [first, internal]: Running,
  { settings, dataLocation }: Context,
  {
    password,
    isAdminThere,
    hasApplication,
  }: { readonly password: string | undefined; readonly isAdminThere: boolean; readonly hasApplication: boolean },
): string {
  const address = formatUrl(first)
  const internalAddress = internal && formatUrl(internal)
  const bankUrl = internalAddress ?? settings.publicUrl ?? address
  const user = settings.adminUser
  const credential = password === undefined ? user : `${user}:${password}`
  // Whoever calls a listener with TLS shows a certificate.
  const tls = internalAddress?.startsWith('https:') ? '--cacert AUTHORITY --cert CERTIFICATE --key KEY ' : ''
  const create = `curl -w '\\n' ${tls}-u '${credential}' -H 'Content-Type: application/json' -d '{"id":"my-app"}' ${bankUrl}/admin/application`
  return `pawl listens on ${address}
${internalAddress ? `Cloud API and administration, never for phones: ${internalAddress}\n` : ''}API description: ${bankUrl}/swagger-ui.html
${settings.console ? `Console: ${bankUrl}/console/\n` : ''}Data: ${dataLocation}
${isAdminThere ? `Administrator: ${user}${password === undefined ? '' : `, password: ${password} (shown only now)`}\n` : ''}${
  isAdminThere && !hasApplication ? `Create an application: ${create}\n` : ''
}Ready.
`
}

function formatUrl({ server }: FastifyInstance): string {
  return formatListenerUrl(server.address() as AddressInfo, 'setSecureContext' in server ? 'https' : 'http')
}
