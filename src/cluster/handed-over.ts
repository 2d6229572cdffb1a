// Connections on their way to a worker. node:cluster keeps one open until its worker has taken it, and for ever where the worker ends before:
// nobody would answer it, or end it.
import type { Worker } from 'node:cluster'

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

/** Ends connections that the worker was handed and had not taken when it ended. To be called before it has any. */
export function endWithWorker(worker: Worker): void {
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
