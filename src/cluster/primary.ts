// Runs several processes behind one port. This process accepts connections, hands each to a worker in turn and starts an ended worker again. It
// ends when all workers have ended (docs/decisions/0017-processes.md). It opens no database, and its only secrets are those of its environment.
import cluster, { type Worker } from 'node:cluster'
import type { LineSink } from '../log/line-sink.ts'
import type { Log } from '../log/log.ts'
import { createHeartbeat } from './heartbeat.ts'
import type { PrimaryMessage, WorkerMessage } from './worker.ts'

interface PrimaryOptions {
  readonly processes: number
  /** Environment variable that tells a worker its number, from 1. */
  readonly nameOfNumber: string
  /** Environment variable that tells a worker that others serve already. */
  readonly nameOfBeside: string
  /** After this time a worker that was told to stop is killed. */
  readonly stopMs: number
  readonly log: Log
  /** Takes whole lines of all workers. A pipe that several processes write to would mix them. */
  readonly output: Pick<LineSink, 'write'>
}

interface End {
  readonly code: number | null
  readonly signal: string | null
}

interface Workers {
  readonly stop: (signal: NodeJS.Signals) => void
  /**
   * Becomes true when the last worker has ended as it was told, false when the first one could not start. A worker that cannot start prints the
   * reason.
   */
  readonly ended: Promise<boolean>
}

/**
 * Starts worker 1, and the others once it listens: worker 1 alone migrates the database and makes the first administrator. A worker that ends
 * without being told, or that the system could not start, is started again after a second, and later each time it ends soon again. A worker that
 * hangs is killed.
 */
export function startPrimary({ processes, nameOfNumber, nameOfBeside, stopMs, log, output }: PrimaryOptions): Workers {
  const { promise: ended, resolve } = Promise.withResolvers<boolean>()
  const collection = createCollection()
  const running = new Map<Worker, number>()
  const serving = new Set<Worker>()
  const nextWait = createWaits()
  const heartbeat = createHeartbeat((worker, seconds) => {
    log.error({ worker: String(running.get(worker)), seconds }, 'a worker hangs, it is killed')
    worker.process.kill('SIGKILL')
  })
  let isStopping = false
  let hasStarted = false
  let hasEndedWell = true

  const start = (number: number): void => {
    if (isStopping) return
    const begin = performance.now()
    const env = { [nameOfNumber]: String(number), ...(serving.size > 0 && { [nameOfBeside]: 'true' }) }
    const worker = fork(env, output, (err) => {
      log.error({ worker: String(number), err }, 'the system could not start a worker')
      goOn(number, begin, { code: null, signal: null })
    })
    if (worker === undefined) return
    running.set(worker, number)
    heartbeat.add(worker)
    worker.on('message', (message: WorkerMessage) => {
      heartbeat.hear(worker)
      if (message.kind === 'alive') return
      if (message.kind !== 'ready') return collection.take(worker, message)
      heartbeat.serve(worker)
      serving.add(worker)
      collection.add(worker)
      if (!hasStarted) {
        hasStarted = true
        output.write(message.startText)
        for (let other = 2; other <= processes; other += 1) start(other)
      }
    })
    worker.on('exit', (code: number | null, signal: string | null) => {
      running.delete(worker)
      serving.delete(worker)
      heartbeat.remove(worker)
      collection.remove(worker)
      goOn(number, begin, { code, signal })
    })
  }

  /** Called after the end of a worker, or when the system could not start it. */
  const goOn = (number: number, begin: number, how: End): void => {
    if (!isStopping && hasStarted) {
      const wait = nextWait(number, performance.now() - begin)
      log.error({ worker: String(number), ...how, afterSeconds: wait / 1000 }, 'a worker ended, it is started again')
      setTimeout(() => start(number), wait)
    } else hasEndedWell &&= how.code === 0 || (isStopping && how.signal !== null && how.signal !== 'SIGKILL')
    if (running.size === 0 && (isStopping || !hasStarted)) resolve(hasEndedWell)
  }

  /** SIGKILL also ends a worker that SIGSTOP has stopped, which no other signal does. */
  const killAll = (): void => {
    for (const [worker, number] of running) {
      log.error({ worker: String(number), seconds: stopMs / 1000 }, 'a worker did not end in time, it is killed')
      worker.process.kill('SIGKILL')
    }
  }

  start(1)
  return {
    ended,
    stop: (signal) => {
      isStopping = true
      for (const worker of running.keys()) worker.process.kill(signal)
      setTimeout(killAll, stopMs).unref()
      if (running.size === 0) resolve(hasEndedWell)
    },
  }
}

/**
 * Forks a worker whose lines go to `output`. Returns undefined when the system cannot start it: too many processes run, memory is short, or the
 * file of Node is being replaced. Such a worker has no event `exit`, so `onFailed` is called.
 */
function fork(
  env: Record<string, string>,
  output: Pick<LineSink, 'write'>,
  onFailed: (err: unknown) => void,
): Worker | undefined {
  // These options hold for every worker, however this process was started. The worker never opens an inspector (bin/pawl.mjs). Its old generation
  // grows by less between two collections (docs/decisions/0014-memory.md).
  const execArgv = [...process.execArgv, '--disable-sigusr1', '--heap-growing-percent=30']
  cluster.setupPrimary({ execArgv, stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
  let worker: Worker
  try {
    worker = cluster.fork(env)
  } catch (error) {
    // Node throws other failures than a missing file and too many processes: short memory, or its own file being written.
    onFailed(error)
    return undefined
  }
  const hasBegun = worker.process.pid !== undefined
  // A channel breaks during a message when the worker has ended. The event `exit` reports that.
  worker.on('error', hasBegun ? () => undefined : onFailed)
  if (!hasBegun) return undefined
  endWithWorker(worker)
  passLinesOn(worker, output)
  return worker
}

/** Returns the milliseconds until the worker of a number is started again, from the milliseconds that the last one ran. */
function createWaits(): (number: number, livedMs: number) => number {
  const waits = new Map<number, number>()
  return (number, livedMs) => {
    const wait = livedMs > LONG_LIFE_MS ? WAIT_MS : Math.min((waits.get(number) ?? WAIT_MS / 2) * 2, WAIT_MAX_MS)
    waits.set(number, wait)
    return wait
  }
}

/** Passes the output of a worker on in whole lines. An unfinished last line gets its newline when the worker ends. */
function passLinesOn({ process: { stdout } }: Worker, output: Pick<LineSink, 'write'>): void {
  let unfinished = ''
  stdout?.setEncoding('utf8').on('data', (text: string) => {
    const end = text.lastIndexOf('\n') + 1
    if (end === 0) {
      unfinished += text
      return
    }
    output.write(unfinished + text.slice(0, end))
    unfinished = text.slice(end)
  })
  stdout?.once('end', () => {
    if (unfinished !== '') output.write(`${unfinished}\n`)
  })
}

const WAIT_MS = 1_000
const WAIT_MAX_MS = 30_000
const LONG_LIFE_MS = 60_000

interface Collection {
  /** Each later round asks this worker too. */
  readonly add: (worker: Worker) => void
  readonly remove: (worker: Worker) => void
  readonly take: (worker: Worker, message: Exclude<WorkerMessage, { kind: 'ready' | 'alive' }>) => void
}

interface Round {
  readonly waitingFor: Set<Worker>
  readonly texts: string[]
  readonly finish: () => void
}

/** Collects a text from every worker for the worker that asks. It waits for the others for a second at most. */
function createCollection(): Collection {
  const workers = new Set<Worker>()
  const rounds = new Map<number, Round>()
  let last = 0

  const begin = (asker: Worker, id: number): void => {
    last += 1
    const number = last
    const texts: string[] = []
    const finish = (): void => {
      clearTimeout(timer)
      rounds.delete(number)
      send(asker, { kind: 'collected', id, texts })
    }
    const timer = setTimeout(finish, PATIENCE_MS)
    rounds.set(number, { waitingFor: new Set(workers), texts, finish })
    for (const worker of workers) send(worker, { kind: 'tell', round: number })
  }
  const settle = (round: Round, worker: Worker): void => {
    if (round.waitingFor.delete(worker) && round.waitingFor.size === 0) round.finish()
  }
  return {
    add: (worker) => void workers.add(worker),
    remove: (worker) => {
      workers.delete(worker)
      for (const round of rounds.values()) settle(round, worker)
    },
    take: (worker, message) => {
      if (message.kind === 'collect') return begin(worker, message.id)
      const round = rounds.get(message.round)
      if (round === undefined) return
      round.texts.push(message.text)
      settle(round, worker)
    },
  }
}

const send = (worker: Worker, message: PrimaryMessage): void => {
  if (worker.isConnected()) worker.send(message, undefined, () => undefined)
}

const PATIENCE_MS = 1_000

/** A message between node:cluster and a worker, with the members that concern connections. */
interface OwnMessage {
  readonly cmd?: string
  readonly act?: string
  readonly seq?: number
  /** In an answer: the `seq` of the message that it answers. */
  readonly ack?: number
}

interface Handle {
  readonly close?: () => void
}

/**
 * Ends connections that were handed to the worker and that it had not taken when it ended. node:cluster would keep them for ever, and nobody would
 * answer or end them. Call this before the worker gets its first connection.
 */
function endWithWorker(worker: Worker): void {
  const untaken = new Map<number, Handle>()
  // The published types allow only sockets as handles.
  const channel = worker.process as unknown as { send: (message: OwnMessage, handle?: Handle, ...rest: unknown[]) => boolean }
  const send = channel.send.bind(worker.process)
  channel.send = (message, handle, ...rest) => {
    if (message.cmd === OWN && message.act === 'newconn' && message.seq !== undefined && handle) untaken.set(message.seq, handle)
    return send(message, handle, ...rest)
  }
  worker.process.on('internalMessage', ({ cmd, ack }: OwnMessage) => {
    if (cmd === OWN && ack !== undefined) untaken.delete(ack)
  })
  const end = (): void => {
    for (const handle of untaken.values()) handle.close?.()
    untaken.clear()
  }
  worker.process.once('exit', () => setTimeout(end, READ_MS))
}

const OWN = 'NODE_CLUSTER'
/** After the end of a worker, its last messages are read within this time. They name connections that it took or gave back. */
const READ_MS = 500
