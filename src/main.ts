// The process: environment, start, signals, exit code. The only file that reads process.env or sets an exit code.
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { buildApp, type Surface } from './app.ts'
import { ConfigError, parseConfig } from './config-parser.ts'
import { createContext } from './context.ts'
import type { Context } from './context.ts'
import { followConnections } from './http/connections.ts'
import { formatListenerUrl } from './http/listener-url.ts'
import { StartError } from './lib/errors.ts'
import { openLineSink } from './lib/line-sink.ts'
import { createProcessLog } from './lib/log.ts'
import type { Log } from './lib/log.ts'
import { systemPlatform } from './lib/platform.ts'
import { releaseStartMemory } from './lib/start-memory.ts'

/** How long answers say that their connection ends, before it is ended. */
const FAREWELL_MS = 1_000
const DATABASE_CLOSE_MS = 1_000
const OUTPUT_CLOSE_MS = 500

// Installed before anything is opened. A signal during the start takes effect when the start is done; a second one changes nothing.
const stopRequested = Promise.withResolvers<NodeJS.Signals>()
process.on('SIGTERM', stopRequested.resolve)
process.on('SIGINT', stopRequested.resolve)

// Also of the start text: process.stdout throws when the disk is full, and waits when nobody reads.
const output = openLineSink(1)

try {
  const { config, secrets } = parseConfig(process.env, (path) => readFileSync(path, 'utf8'))
  const log = createProcessLog(config.logLevel, output)
  process.on('uncaughtException', (error) => die(log, error))
  const context = await createContext(config, secrets, { platform: systemPlatform, log })
  const running = await listen(context)
  output.write(renderStartText(running, context, await context.createFirstAdmin()))
  releaseStartMemory()
  if (config.publicUrl === undefined) context.events.publicUrlMissing()
  void stopRequested.promise.then((signal) => stop(running, context, signal))
} catch (error) {
  refuseStart(error)
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
    const internal = await openListener(context, 'internal', internalHost, internalPort)
    return [await openListener(context, 'public', host, port), internal]
  } catch (error) {
    await context.close()
    throw error
  }
}

async function openListener(context: Context, surface: Surface, host: string, port: number): Promise<Listener> {
  const app = await buildApp(context, surface)
  const connections = followConnections(app.server)
  await app.listen({ host, port })
  return { app, connections }
}

/**
 * Tells balancers for as long as they need to notice, gives connections back, takes no new ones, lets running requests finish until the time
 * limit, closes the database, ends the process.
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
  await Promise.race([context.close(), sleep(DATABASE_CLOSE_MS)])
  await Promise.race([output.flushed(), sleep(OUTPUT_CLOSE_MS)])
  process.exit(0)
}

/** State after an exception that nobody caught is unknown: say so and end. An unhandled rejection arrives here as well. */
function die(log: Log, error: unknown): void {
  log.fatal({ err: error }, 'unexpected failure')
  output.flushNow()
  process.exit(1)
}

function refuseStart(error: unknown): void {
  output.flushNow()
  for (const line of explain(error)) process.stderr.write(`pawl cannot start: ${line}\n`)
  process.exit(1)
}

function explain(error: unknown): readonly string[] {
  if (error instanceof ConfigError) return error.problems
  if (error instanceof StartError) return [error.message]
  if (!(error instanceof Error)) return [String(error)]
  const { code, syscall, address, port } = error as NodeJS.ErrnoException & { address?: string; port?: number }
  const place = `${address}:${port}`
  if (code === 'EADDRINUSE')
    return [`${place} is in use by another program; stop it or choose another port (PAWL_PORT, PAWL_INTERNAL_PORT)`]
  if (code === 'EADDRNOTAVAIL')
    return [`${address} is not an address of this machine; choose another (PAWL_HOST, PAWL_INTERNAL_HOST)`]
  if (code === 'EACCES' && port !== undefined) return [`listening on ${place} is not permitted; choose another port`]
  if (syscall !== undefined) return [error.message]
  // Not foreseen: the stack is worth more than brevity.
  return [error.stack ?? error.message]
}

/** `password`: of the administrator that this start made. */
function renderStartText([first, internal]: Running, { settings, dataLocation }: Context, password: string | undefined): string {
  const address = formatUrl(first.app)
  const internalAddress = internal && formatUrl(internal.app)
  const bankUrl = internalAddress ?? settings.publicUrl ?? address
  const user = settings.adminUser
  const credential = password === undefined ? user : `${user}:${password}`
  return `pawl listens on ${address}
${internalAddress ? `Cloud API and administration, never for phones: ${internalAddress}\n` : ''}API description: ${bankUrl}/swagger-ui.html
${settings.console ? `Console: ${bankUrl}/console/\n` : ''}Data: ${dataLocation}
Administrator: ${user}${password === undefined ? '' : `, password: ${password} (shown only now)`}
Create an application: curl -w '\\n' -u '${credential}' -H 'Content-Type: application/json' -d '{"id":"my-app"}' ${bankUrl}/admin/application
`
}

function formatUrl({ server }: FastifyInstance): string {
  return formatListenerUrl(server.address() as AddressInfo)
}
