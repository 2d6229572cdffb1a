// Runs the process: environment, start, signals, exit code. No other file reads process.env or sets an exit code.
import cluster from 'node:cluster'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { ConfigError, parseConfig } from './config/parser.ts'
import type { Config } from './config/config.ts'
import type { Secrets } from './config/secrets.ts'
import { fromUtf8 } from './lib/bytes.ts'
import { MORE_FILES, StartError } from './lib/errors.ts'
import { openLineSink } from './log/line-sink.ts'
import { createLog, type Log } from './log/log.ts'
import { systemPlatform } from './lib/platform.ts'
import type { Tracer } from './lib/trace.ts'
import { releaseStartMemory } from './start-memory.ts'
import type { Server } from './server.ts'
import { areTracesWanted } from './tracing/settings.ts'

const OUTPUT_CLOSE_MS = 500
/** The time that a stop may take in addition to both settings: farewell, database and log (docs/CONFIG.md, PAWL_SHUTDOWN_TIMEOUT_SECONDS). */
const STOP_REST_MS = 3_000
/** Variables in the environment of a worker. The second one is set if other workers serve already when it starts. */
const WORKER_NUMBER = 'WORKER_NUMBER'
const WORKER_BESIDE = 'WORKER_BESIDE'
const isDebugging = ['debug', 'trace'].includes(process.env['PAWL_LOG_LEVEL'] ?? '')

// Installed before anything is opened. The first signal during the start interrupts a wait of the start, or stops the server after the start. A
// second signal changes nothing. SIGHUP comes from a terminal that is closed, or from somebody who takes it for the signal to read settings again:
// by default it would cut all requests.
const stopRequested = Promise.withResolvers<NodeJS.Signals>()
const stopping = new AbortController()
for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const)
  process.on(name, () => {
    stopRequested.resolve(name)
    stopping.abort(new Error(`${name} came before the start was done`))
  })

// Also writes the start text, because process.stdout throws when the disk is full, and blocks when nobody reads.
const output = openLineSink(1)

try {
  const { config, secrets } = parseConfig(process.env, (path) => fromUtf8(readFileSync(path)))
  if (config.processes === 1) await serveAlone(config, secrets)
  else if (cluster.isWorker) await serveAsWorker(config, secrets)
  else await superviseWorkers(config)
} catch (error) {
  // A start that a signal interrupted has not failed.
  if (stopping.signal.aborted && error === stopping.signal.reason) await end(0)
  refuseStart(error)
}

/** Opens the log on stdout. Uncaught exceptions are logged there, too, and how many lines nobody took. */
function openLog({ logLevel }: Config, fields?: Readonly<Record<string, unknown>>): Log {
  const log = createLog(logLevel, output, fields)
  output.onRecovered((dropped) => log.error({ dropped }, 'log lines were dropped, because nobody took them'))
  process.on('uncaughtException', (error) => die(log, error))
  return log
}

/** Starts traces if the environment asks for them. Other servers never load the SDK of OpenTelemetry. */
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

/** Serves as one of the processes that superviseWorkers starts. Its log lines and metrics have its number. */
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

/** Hands connections to workers, and starts a worker again when it ends. This process serves no request itself. */
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

/** Ends the process once the log is written, or after OUTPUT_CLOSE_MS. */
async function end(code: 0 | 1): Promise<void> {
  await Promise.race([output.flushed(), sleep(OUTPUT_CLOSE_MS)])
  process.exit(code)
}

/** Logs an exception that nobody caught, and ends the process, because its state is unknown. Unhandled rejections arrive here as well. */
function die(log: Log, error: unknown): void {
  log.fatal({ err: error }, 'unexpected failure')
  output.flushNow()
  process.exit(1)
}

function refuseStart(error: unknown): void {
  // bin/pawl.mjs reports a missing package, whichever module imports it.
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
  if (code === 'EMFILE' || code === 'ENFILE') return [`too many files are open (${code}); ${MORE_FILES}`]
  if (code === 'EADDRINUSE')
    return [`${place} is in use by another program or by the other listener; choose another port (PAWL_PORT, PAWL_INTERNAL_PORT)`]
  if (code === 'EADDRNOTAVAIL')
    return [`${address} is not an address of this machine; choose another (PAWL_HOST, PAWL_INTERNAL_HOST)`]
  if (code === 'EACCES' && port !== undefined)
    return [`listening on ${place} is not permitted; choose a port from 1024 on (PAWL_PORT, PAWL_INTERNAL_PORT)`]
  if (syscall === 'getaddrinfo')
    return [`${hostname} cannot be resolved (${code}); give an address of this machine (PAWL_HOST, PAWL_INTERNAL_HOST)`]
  return [`${inOneLine(error.message)}; nobody foresaw this, PAWL_LOG_LEVEL=debug shows where it comes from`]
}

// These are functions with names and not constants, because a start may be refused before the constants of this file have values.

/** The stack of an error, and the stacks of its causes. Shown when the log level asks for details. */
function stacksOf(error: unknown): readonly string[] {
  return error instanceof Error ? [error.stack ?? error.message, ...stacksOf(error.cause)] : []
}

function inOneLine(text: string): string {
  return text.trim().replace(/\s*\n\s*/g, ' ')
}
