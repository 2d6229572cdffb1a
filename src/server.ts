// One server: its context and its listeners, from the start to the end of a stop.
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { buildApp, type Surface } from './app.ts'
import type { Secrets } from './config/secrets.ts'
import type { Config } from './config/config.ts'
import { type Context, createContext } from './context.ts'
import { followConnections, formatListenerUrl } from './http/connections.ts'
import type { TlsFiles } from './http/internal-tls.ts'
import { openWaitingRoom } from './http/health.ts'
import type { Log } from './log/log.ts'
import { systemPlatform } from './lib/platform.ts'
import type { Tracer } from './lib/trace.ts'
import type { Peers } from './metrics/metrics.ts'
import { findDefaultApplicationId } from './storage/application/applications.ts'

/** How long answers say that their connection ends, before it is ended. */
const FAREWELL_MS = 1_000
const DATABASE_CLOSE_MS = 1_000
/** What Node has without being told. */
const BACKLOG_MIN = 511
/** How long the last spans may take to their collector. */
const TRACES_CLOSE_MS = 1_000

export interface Server {
  /** For the operator: where it listens and who may call it. */
  readonly startText: string
  /** Drains, closes the listeners and the database. Resolves when the process may end. */
  readonly stop: (signal: NodeJS.Signals) => Promise<void>
}

/** What the process brings. */
interface Brought {
  readonly log: Log
  /** Where requests have traces. */
  readonly tracer: Tracer | undefined
  /** The other processes behind the same port. */
  readonly peers?: Peers
  /** Whether some of them serve already: they answer for this start. */
  readonly isBeside?: boolean
  /** Ends a start that waits; its reason is thrown. */
  readonly signal: AbortSignal
}

/**
 * Opens the database, makes what a first start makes, and listens; a start that takes long answers health meanwhile. Throws StartError, and the
 * reason of `signal` when that aborts.
 */
export async function startServer(config: Config, secrets: Secrets, { signal, ...brought }: Brought): Promise<Server> {
  const context = await createContextInView(config, secrets, { signal, ...brought })
  const running = await listen(context)
  const hasApplication = (await findDefaultApplicationId(context.db)) !== undefined
  // Last: if the start failed after it, nobody would have seen the password.
  const password = await context.createFirstAdmin()
  const startText = renderStartText(running, context, { password, hasApplication })
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
  // Connections go to every process that listens: callers of those that serve would be turned away here.
  const leave = isBeside ? async () => undefined : openWaitingRoom({ ...config, reason: () => reason, onOpen })
  try {
    return await createContext(config, secrets, { platform: systemPlatform, ...brought, starting: { onDelay, signal } })
  } finally {
    await leave()
  }
}

interface Listener {
  readonly app: FastifyInstance
  readonly connections: ReturnType<typeof followConnections>
}

/** What phones call comes first; the second is there when the bank's API has a listener of its own. */
type Running = readonly [Listener, Listener?]

/** Serves, or closes what is open already and throws. */
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

/** Undefined where the listener speaks HTTP. */
function tlsFilesOf({ internalTlsCertificate: certificate, internalTlsKey: key, internalTlsClientCa: clientCa }: Config) {
  return certificate === undefined || key === undefined || clientCa === undefined ? undefined : { certificate, key, clientCa }
}

async function openListener(context: Context, surface: Surface, host: string, port: number, tls?: TlsFiles): Promise<Listener> {
  const app = await buildApp(context, surface, tls)
  const connections = followConnections(app.server)
  // As many as are taken may wait to be: the system throws away what is beyond it, and a caller tries again a second later.
  await app.listen({ host, port, backlog: Math.max(BACKLOG_MIN, context.settings.connectionsMax) })
  return { app, connections }
}

/**
 * Tells balancers for as long as they need to notice, gives connections back, takes no new ones, lets running requests finish until the time
 * limit, closes the database.
 */
async function stop(running: Running, context: Context, signal: NodeJS.Signals): Promise<void> {
  const { settings, log } = context
  const listeners = running.filter((listener) => listener !== undefined)
  const { drainSeconds } = settings
  log.info({ signal, drainSeconds }, 'stopping')
  if (drainSeconds > 0) {
    context.serviceState.phase = 'draining'
    await sleep(drainSeconds * 1000)
    context.serviceState.phase = 'closing'
    await sleep(FAREWELL_MS)
  }
  const closed = Promise.all(listeners.map(({ app }) => app.close())).then(() => true)
  const isClosedWithin = (seconds: number) => Promise.race([closed, sleep(seconds * 1000, false, { ref: false })])
  // A request on its way has a second to arrive; what has not run by then may be sent again elsewhere.
  if (!(await isClosedWithin(1))) for (const { connections } of listeners) connections.cutWaiting()
  if (!(await isClosedWithin(settings.shutdownTimeoutSeconds - 1))) {
    log.warn('requests were still running at the time limit, their connections are cut')
    for (const { app } of listeners) app.server.closeAllConnections()
    await closed
  }
  // A database that no longer answers would never be closed; to it, this end is a lost connection.
  const isDatabaseClosed = Promise.race([context.close(), sleep(DATABASE_CLOSE_MS)])
  await Promise.all([isDatabaseClosed, Promise.race([context.tracer?.close(), sleep(TRACES_CLOSE_MS)])])
}

/** `password`: of the administrator that this start made. The last line says that all is there. */
function renderStartText(
  [first, internal]: Running,
  { settings, dataLocation }: Context,
  { password, hasApplication }: { readonly password: string | undefined; readonly hasApplication: boolean },
): string {
  const address = formatUrl(first.app)
  const internalAddress = internal && formatUrl(internal.app)
  const bankUrl = internalAddress ?? settings.publicUrl ?? address
  const user = settings.adminUser
  const credential = password === undefined ? user : `${user}:${password}`
  const create = `curl -w '\\n' -u '${credential}' -H 'Content-Type: application/json' -d '{"id":"my-app"}' ${bankUrl}/admin/application`
  return `pawl listens on ${address}
${internalAddress ? `Cloud API and administration, never for phones: ${internalAddress}\n` : ''}API description: ${bankUrl}/swagger-ui.html
${settings.console ? `Console: ${bankUrl}/console/\n` : ''}Data: ${dataLocation}
Administrator: ${user}${password === undefined ? '' : `, password: ${password} (shown only now)`}
${hasApplication ? '' : `Create an application: ${create}\n`}Ready.
`
}

function formatUrl({ server }: FastifyInstance): string {
  return formatListenerUrl(server.address() as AddressInfo, undefined, 'setSecureContext' in server ? 'https' : 'http')
}
