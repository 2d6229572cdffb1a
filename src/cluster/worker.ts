// Connects a worker with the process that started it, and defines the messages between both.
import { BEAT_MS } from './heartbeat.ts'

export type WorkerMessage =
  /** The worker listens. The primary prints the `startText` of the first worker for the operator. */
  | { readonly kind: 'ready'; readonly startText: string }
  /** The event loop of the worker runs. */
  | { readonly kind: 'alive' }
  /** Asks for a text of every worker. */
  | { readonly kind: 'collect'; readonly id: number }
  /** The text that `tell` asked for. */
  | { readonly kind: 'text'; readonly round: number; readonly text: string }

export type PrimaryMessage =
  | { readonly kind: 'tell'; readonly round: number }
  /** Answers `collect` with the texts of the workers that sent theirs in time. */
  | { readonly kind: 'collected'; readonly id: number; readonly texts: readonly string[] }

export interface Primary {
  readonly tellReady: (startText: string) => void
  /** Returns the texts of all workers, also of this one. The text of a worker that does not answer in time is missing. */
  readonly collect: () => Promise<readonly string[]>
  /** Sets the function that makes the text of this worker. The primary asks for it only after `ready`. */
  readonly onAsked: (tell: () => Promise<string>) => void
}

/**
 * Connects this process with its primary and begins to send `alive` every second. Call it only in a worker of node:cluster, and early. When the
 * primary ends, Node ends the worker, because nobody hands it connections any more.
 */
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

// The channel is closed when the primary has ended. This worker then ends too, so a lost message is no failure.
const send = (message: WorkerMessage): void => void process.send?.(message, undefined, undefined, () => undefined)
