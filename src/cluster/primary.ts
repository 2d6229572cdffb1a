// Several processes behind one port: this one accepts connections and hands each to a worker in turn, starts a worker again that ended,
// and ends when all have ended (docs/decisions/0017-processes.md). It opens no database and knows no secret but its environment.
import cluster, { type Worker } from 'node:cluster'
import type { LineSink } from '../log/line-sink.ts'
import type { Log } from '../log/log.ts'
import { createHeartbeat } from './heartbeat.ts'
import type { PrimaryMessage, WorkerMessage } from './worker.ts'

interface PrimaryOptions {
  readonly processes: number
  /** Variable in the environment of a worker that has its number, from 1. */
  readonly nameOfNumber: string
  /** Variable in the environment of a worker that is started while others serve. */
  readonly nameOfBeside: string
  /** How long a worker that is told to stop may take at most. */
  readonly stopMs: number
  readonly log: Log
  /** Takes the lines of all workers whole: a pipe that several processes write to would mix them. */
  readonly output: Pick<LineSink, 'write'>
}

interface End {
  readonly code: number | null
  readonly signal: string | null
}

interface Workers {
  readonly stop: (signal: NodeJS.Signals) => void
  /** True when the last worker has ended as it was told; false when the first one could not start, which it has said itself. */
  readonly ended: Promise<boolean>
}

/**
 * Starts one worker, and the others when it listens: it alone migrates the database and makes the first administrator. A worker that ends
 * without being told, or that the system could not start, is started again after a second, and later each time it ends soon again. One that
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

  /** After the end of a worker, or when it did not begin. */
  const goOn = (number: number, begin: number, how: End): void => {
    if (!isStopping && hasStarted) {
      const wait = nextWait(number, performance.now() - begin)
      log.error({ worker: String(number), ...how, afterSeconds: wait / 1000 }, 'a worker ended, it is started again')
      setTimeout(() => start(number), wait)
    } else hasEndedWell &&= how.code === 0 || (isStopping && how.signal !== null && how.signal !== 'SIGKILL')
    if (running.size === 0 && (isStopping || !hasStarted)) resolve(hasEndedWell)
  }

  /** Also one that was stopped, which no other signal reaches. */
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
 * Forks a worker whose lines go to `output`. Undefined when the system starts none, for want of processes or because Node is being replaced:
 * such a worker has no `exit`, and `onFailed` is called.
 */
function fork(env: Record<string, string>, output: Pick<LineSink, 'write'>, onFailed: (err: Error) => void): Worker | undefined {
  // However this process was started: a worker opens no inspector from its first moment on (bin/pawl.mjs), and its old generation grows by less
  // between two collections (docs/decisions/0014-memory.md).
  const execArgv = [...process.execArgv, '--disable-sigusr1', '--heap-growing-percent=30']
  cluster.setupPrimary({ execArgv, stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
  const worker = cluster.fork(env)
  const hasBegun = worker.process.pid !== undefined
  // A channel that breaks while something is sent is the end of a worker, which `exit` tells.
  worker.on('error', hasBegun ? () => undefined : onFailed)
  if (!hasBegun) return undefined
  endWithWorker(worker)
  passLinesOn(worker, output)
  return worker
}

/** Gives the milliseconds until a worker of a number is started again, by how long the last one lived. */
function createWaits(): (number: number, livedMs: number) => number {
  const waits = new Map<number, number>()
  return (number, livedMs) => {
    const wait = livedMs > LONG_LIFE_MS ? WAIT_MS : Math.min((waits.get(number) ?? WAIT_MS / 2) * 2, WAIT_MAX_MS)
    waits.set(number, wait)
    return wait
  }
}

/** Hands what a worker prints on in whole lines; what it did not finish gets an end when it ends. */
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
  /** From now on this worker is asked. */
  readonly add: (worker: Worker) => void
  readonly remove: (worker: Worker) => void
  readonly take: (worker: Worker, message: Exclude<WorkerMessage, { kind: 'ready' | 'alive' }>) => void
}

interface Round {
  readonly waitingFor: Set<Worker>
  readonly texts: string[]
  readonly finish: () => void
}

/** Collects a text of every worker for one of them that asks, which waits a second at most for the others. */
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

/** What node:cluster writes to a worker and reads of it, as far as it is about a connection. */
interface OwnMessage {
  readonly cmd?: string
  readonly act?: string
  readonly seq?: number
  /** The `seq` of what is answered. */
  readonly ack?: number
}

interface Handle {
  readonly close?: () => void
}

/**
 * Ends connections that the worker was handed and had not taken when it ended: node:cluster would keep them for ever, and nobody would answer or
 * end them. To be called before it has any.
 */
function endWithWorker(worker: Worker): void {
  const untaken = new Map<number, Handle>()
  // The types know of no handle that is not a socket.
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
/** How long it takes at most to read what a worker said before it ended: what it took, and what it gave back. */
const READ_MS = 500
