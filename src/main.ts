// The process: environment, start, signals, exit code. The only file that reads process.env or sets an exit code.
import cluster from 'node:cluster'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { ConfigError, parseConfig } from './config/parser.ts'
import type { Config } from './config/config.ts'
import type { Secrets } from './config/secrets.ts'
import { StartError } from './lib/errors.ts'
import { openLineSink } from './log/line-sink.ts'
import { createProcessLog, type Log } from './log/log.ts'
import { systemPlatform } from './lib/platform.ts'
import type { Tracer } from './lib/trace.ts'
import { releaseStartMemory } from './start-memory.ts'
import type { Server } from './server.ts'
import { areTracesWanted } from './tracing/settings.ts'

const OUTPUT_CLOSE_MS = 500
/** What a stop takes beside both settings: a farewell, the database, the log (docs/CONFIG.md, PAWL_SHUTDOWN_TIMEOUT_SECONDS), and no more. */
const STOP_REST_MS = 3_000
/** In the environment of a worker; the second one where it is started while others serve. */
const WORKER_NUMBER = 'WORKER_NUMBER'
const WORKER_BESIDE = 'WORKER_BESIDE'
const isDebugging = ['debug', 'trace'].includes(process.env['PAWL_LOG_LEVEL'] ?? '')

// Installed before anything is opened. A signal during the start ends what it waits for, or takes effect when it is done; a second one changes
// nothing.
const stopRequested = Promise.withResolvers<NodeJS.Signals>()
const stopping = new AbortController()
for (const name of ['SIGTERM', 'SIGINT'] as const)
  process.on(name, () => {
    stopRequested.resolve(name)
    stopping.abort(new Error(`${name} came before the start was done`))
  })

// Also of the start text: process.stdout throws when the disk is full, and waits when nobody reads.
const output = openLineSink(1)

try {
  const { config, secrets } = parseConfig(process.env, (path) => readFileSync(path, 'utf8'))
  if (config.processes === 1) await serveAlone(config, secrets)
  else if (cluster.isWorker) await serveAsWorker(config, secrets)
  else await superviseWorkers(config)
} catch (error) {
  // Nothing is wrong with a start that was told to stop.
  if (stopping.signal.aborted && error === stopping.signal.reason) await end(0)
  refuseStart(error)
}

/** The log on stdout, which also says what an exception was that nobody caught. */
function openLog({ logLevel }: Config, fields?: Readonly<Record<string, unknown>>): Log {
  const log = createProcessLog(logLevel, output, fields)
  process.on('uncaughtException', (error) => die(log, error))
  return log
}

/** Where the environment asks for traces; the SDK of OpenTelemetry is code that a server without them never runs. */
async function loadTracer(log: Log): Promise<Tracer | undefined> {
  if (!areTracesWanted(process.env)) return undefined
  const { startTracing } = await import('./tracing/otlp.ts')
  return startTracing(process.env, systemPlatform, log)
}

async function serveAlone(config: Config, secrets: Secrets): Promise<void> {
  const { startServer } = await import('./server.ts')
  const log = openLog(config)
  const server = await startServer(config, secrets, { log, tracer: await loadTracer(log), signal: stopping.signal })
  output.write(server.startText)
  void stopWhenAsked(server)
}

async function stopWhenAsked(server: Server): Promise<void> {
  await releaseStartMemory()
  await server.stop(await stopRequested.promise)
  await end(0)
}

/** One of the processes that superviseWorkers starts; its number is on its log lines and metrics. */
async function serveAsWorker(config: Config, secrets: Secrets): Promise<void> {
  const { joinPrimary } = await import('./cluster/worker.ts')
  const primary = joinPrimary()
  const { startServer } = await import('./server.ts')
  const number = process.env[WORKER_NUMBER] ?? ''
  const log = openLog(config, { worker: number })
  const peers = { worker: number, collect: primary.collect, onAsked: primary.onAsked }
  const isBeside = process.env[WORKER_BESIDE] !== undefined
  const server = await startServer(config, secrets, {
    log,
    tracer: await loadTracer(log),
    peers,
    isBeside,
    signal: stopping.signal,
  })
  primary.tellReady(server.startText)
  void stopWhenAsked(server)
}

/** The process that serves nothing itself: it hands connections to its workers, and starts those again that end. */
async function superviseWorkers(config: Config): Promise<void> {
  const { startPrimary } = await import('./cluster/primary.ts')
  const log = openLog(config)
  const { processes, drainSeconds, shutdownTimeoutSeconds } = config
  const stopMs = (drainSeconds + shutdownTimeoutSeconds) * 1000 + STOP_REST_MS
  const primary = startPrimary({ processes, nameOfNumber: WORKER_NUMBER, nameOfBeside: WORKER_BESIDE, stopMs, log, output })
  void stopRequested.promise.then(primary.stop)
  await releaseStartMemory()
  const haveEndedWell = await primary.ended
  await end(haveEndedWell ? 0 : 1)
}

/** Ends the process when the log has been taken, or nobody takes it. */
async function end(code: 0 | 1): Promise<void> {
  await Promise.race([output.flushed(), sleep(OUTPUT_CLOSE_MS)])
  process.exit(code)
}

/** State after an exception that nobody caught is unknown: say so and end. An unhandled rejection arrives here as well. */
function die(log: Log, error: unknown): void {
  log.fatal({ err: error }, 'unexpected failure')
  output.flushNow()
  process.exit(1)
}

function refuseStart(error: unknown): void {
  // A package that is missing is told by bin/pawl.mjs, whatever asks for it.
  if (error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND') throw error
  output.flushNow()
  for (const line of explain(error)) process.stderr.write(`pawl cannot start: ${line}\n`)
  if (isDebugging) for (const stack of stacksOf(error)) process.stderr.write(`${stack}\n`)
  process.exit(1)
}

type SystemError = NodeJS.ErrnoException & { readonly address?: string; readonly port?: number; readonly hostname?: string }

function explain(error: unknown): readonly string[] {
  if (error instanceof ConfigError) return error.problems
  if (error instanceof StartError) return [error.message]
  if (!(error instanceof Error)) return [inOneLine(String(error))]
  const { code, syscall, address, port, hostname } = error as SystemError
  const place = `${address}:${port}`
  if (code === 'EADDRINUSE')
    return [`${place} is in use by another program; stop it or choose another port (PAWL_PORT, PAWL_INTERNAL_PORT)`]
  if (code === 'EADDRNOTAVAIL')
    return [`${address} is not an address of this machine; choose another (PAWL_HOST, PAWL_INTERNAL_HOST)`]
  if (code === 'EACCES' && port !== undefined)
    return [`listening on ${place} is not permitted; choose a port from 1024 on (PAWL_PORT, PAWL_INTERNAL_PORT)`]
  if (syscall === 'getaddrinfo')
    return [`${hostname} cannot be resolved (${code}); give an address of this machine (PAWL_HOST, PAWL_INTERNAL_HOST)`]
  return [`${inOneLine(error.message)}; nobody foresaw this, PAWL_LOG_LEVEL=debug shows where it comes from`]
}

// Functions of their own names: a start is refused before the constants of this file are there.

/** Where an error comes from and what caused it, for those who have asked to see everything. */
function stacksOf(error: unknown): readonly string[] {
  return error instanceof Error ? [error.stack ?? error.message, ...stacksOf(error.cause)] : []
}

function inOneLine(text: string): string {
  return text.trim().replace(/\s*\n\s*/g, ' ')
}
