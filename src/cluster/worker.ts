// The side of a worker: what it tells the process that started it, and asks of the others through it, and the messages between both.
import { BEAT_MS } from './heartbeat.ts'

/** From a worker to its primary. */
export type WorkerMessage =
  /** The worker listens; `startText` is for the operator, once. */
  | { readonly kind: 'ready'; readonly startText: string }
  /** Its event loop goes round. */
  | { readonly kind: 'alive' }
  /** Asks for a text of every worker. */
  | { readonly kind: 'collect'; readonly id: number }
  /** The text that was asked for. */
  | { readonly kind: 'text'; readonly round: number; readonly text: string }

/** From the primary to a worker. */
export type PrimaryMessage =
  | { readonly kind: 'tell'; readonly round: number }
  /** Answers `collect` with the texts of the workers that sent theirs in time. */
  | { readonly kind: 'collected'; readonly id: number; readonly texts: readonly string[] }

export interface Primary {
  readonly tellReady: (startText: string) => void
  /** The texts of all workers, its own included. A worker that does not answer in time is missing. */
  readonly collect: () => Promise<readonly string[]>
  /** What this worker answers when a text is collected; before that it is not asked. */
  readonly onAsked: (tell: () => Promise<string>) => void
}

/** Only in a worker of node:cluster, and early: from now on its primary hears each second that it lives. When the primary is gone, Node ends the worker: nobody hands it connections any more. */
export function joinPrimary(): Primary {
  const waiting = new Map<number, (texts: readonly string[]) => void>()
  let next = 0
  let tell = async (): Promise<string> => ''

  process.on('message', (message: PrimaryMessage) => {
    if (message.kind === 'collected') {
      waiting.get(message.id)?.(message.texts)
      waiting.delete(message.id)
      return
    }
    const { round } = message
    void tell().then((text) => send({ kind: 'text', round, text }))
  })
  send({ kind: 'alive' })
  setInterval(() => send({ kind: 'alive' }), BEAT_MS).unref()
  return {
    tellReady: (startText) => send({ kind: 'ready', startText }),
    collect: () =>
      new Promise((resolve) => {
        next += 1
        waiting.set(next, resolve)
        send({ kind: 'collect', id: next })
      }),
    onAsked: (given) => {
      tell = given
    },
  }
}

// A closed channel means that the first process has ended, and so will this one. It is no failure of the message.
const send = (message: WorkerMessage): void => void process.send?.(message, undefined, undefined, () => undefined)
