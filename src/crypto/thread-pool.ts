// Runs long computations in threads, so that the event loop answers other requests meanwhile.
import { constants, getPriority, setPriority } from 'node:os'
import { parentPort, Worker, type WorkerOptions } from 'node:worker_threads'
import { ownAllBytes } from '../lib/bytes.ts'
import { PawlError } from '../lib/errors.ts'

/** Operations by name. Their arguments and results are copied between threads: byte strings, plain objects, KeyObjects. */
type Operations = Readonly<Record<string, (...given: never[]) => unknown>>

interface ThreadOptions {
  readonly name: string
  /** The largest number of threads. A thread is started when a job finds no idle one. */
  readonly threadsMax: number
  /** The largest number of jobs that wait or run. */
  readonly jobsMax: number
  readonly resourceLimits?: WorkerOptions['resourceLimits']
}

/**
 * Returns a function that computes an operation in a thread. Its promise rejects with the error of the operation, and with UNAVAILABLE when too
 * many jobs wait or the thread ends. `file` is the module of a thread, which calls `answerJobs`.
 */
export function createThreads<Table extends Operations>(file: URL, { name, threadsMax, jobsMax, resourceLimits }: ThreadOptions) {
  let threads: readonly Thread[] = []
  let lastId = 0

  /** An idle thread; else a new one, up to `threadsMax`; else the one with the fewest jobs. */
  const pickThread = (): Thread => {
    const [least] = threads.toSorted((one, other) => one.jobs.size - other.jobs.size)
    if (least !== undefined && (least.jobs.size === 0 || threads.length >= threadsMax)) return least
    const thread = startThread()
    threads = [...threads, thread]
    return thread
  }

  const startThread = (): Thread => {
    // The environment is not copied, because it has settings and secrets.
    const worker = new Worker(file, { name, env: {}, execArgv: [], ...(resourceLimits && { resourceLimits }) })
    const jobs: Thread['jobs'] = new Map()
    worker.on('message', (outcome: Outcome) => {
      const job = jobs.get(outcome.id)
      jobs.delete(outcome.id)
      if (jobs.size === 0) worker.unref()
      if ('error' in outcome) job?.reject(outcome.error)
      else job?.resolve(outcome.result)
    })
    const end = (detail: string): void => {
      threads = threads.filter((thread) => thread.worker !== worker)
      for (const job of jobs.values()) job.reject(unavailable(detail))
      jobs.clear()
    }
    worker.on('error', (error) => end(`a thread of ${name} failed: ${String(error)}`))
    worker.on('exit', () => end(`a thread of ${name} has ended`))
    return { worker, jobs }
  }

  return async <Name extends keyof Table & string>(
    operation: Name,
    ...given: Parameters<Table[Name]>
  ): Promise<ReturnType<Table[Name]>> => {
    if (threads.reduce((sum, { jobs }) => sum + jobs.size, 0) >= jobsMax) throw unavailable('queue full')
    const { worker, jobs } = pickThread()
    lastId += 1
    worker.postMessage({ id: lastId, name: operation, given: given.map(ownAllBytes) } satisfies Job)
    const job = Promise.withResolvers<unknown>()
    jobs.set(lastId, job)
    // A waiting job keeps the process alive, which may be a command; an idle thread does not.
    worker.ref()
    return (await job.promise) as ReturnType<Table[Name]>
  }
}

/**
 * Computes the jobs of this thread one after the other. A thread calls it once. The thread gets a lower priority than the event loop, for the case
 * that both need the same core.
 */
export function answerJobs(operations: Operations): void {
  lowerPriority()
  parentPort?.on('message', (job: Job) => parentPort?.postMessage(computeJob(operations, job)))
}

/** On Linux a priority belongs to the thread that sets it, elsewhere to the whole process. */
function lowerPriority(): void {
  if (process.platform !== 'linux') return
  try {
    setPriority(Math.min(constants.priority.PRIORITY_LOW, getPriority() + NICE_STEP))
  } catch {
    // If the system does not allow that, requests wait a few milliseconds longer under load.
  }
}

function computeJob(operations: Operations, { id, name, given }: Job): Outcome {
  try {
    const operation = operations[name] as ((...given: readonly unknown[]) => unknown) | undefined
    if (operation === undefined) throw new TypeError(`no operation ${name}`)
    return { id, result: ownAllBytes(operation(...given)) }
  } catch (error) {
    return { id, error }
  }
}

interface Job {
  readonly id: number
  readonly name: string
  readonly given: readonly unknown[]
}

/** The result of an operation, or the error that it threw. */
type Outcome = { readonly id: number } & ({ readonly result: unknown } | { readonly error: unknown })

interface Thread {
  readonly worker: Worker
  readonly jobs: Map<number, PromiseWithResolvers<unknown>>
}

// Ten steps of nice give a thread a tenth of the event loop's weight when both want one core.
const NICE_STEP = 10

const unavailable = (detail: string): PawlError => new PawlError('UNAVAILABLE', { detail, retryAfterSeconds: 1 })
