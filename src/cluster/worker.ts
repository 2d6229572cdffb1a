// The side of a worker: what it tells the process that started it, and asks of the others through it.
import { BEAT_MS } from './heartbeat.ts'
import type { PrimaryMessage, WorkerMessage } from './messages.ts'

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
