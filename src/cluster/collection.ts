// A text of every worker for one of them that asks.
import type { Worker } from 'node:cluster'
import type { PrimaryMessage, WorkerMessage } from './worker.ts'

export interface Collection {
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

/** Whoever asks waits a second at most for the others. */
export function createCollection(): Collection {
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
