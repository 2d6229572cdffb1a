// A backup of the embedded database out of the process that has it: who connects to the lock of its directory and asks gets one.
import type { Socket } from 'node:net'
import { visitHolder } from './directory-lock.ts'

/** Answers a visitor of the lock, who may also look only whether somebody is there. `copy` gives undefined before the database is open. */
export function serveBackup(socket: Socket, copy: () => Promise<Uint8Array | undefined>): void {
  socket.unref()
  socket.setTimeout(QUESTION_MS, () => socket.destroy())
  socket.on('error', () => socket.destroy())
  socket.once('data', (question) => {
    socket.setTimeout(0)
    const answer = question.toString('latin1') === QUESTION ? copy() : undefined
    Promise.resolve(answer).then(
      (bytes) => (bytes === undefined ? socket.destroy() : send(socket, bytes)),
      () => socket.destroy(),
    )
  })
}

function send(socket: Socket, bytes: Uint8Array): void {
  const length = Buffer.alloc(LENGTH_BYTES)
  length.writeUIntBE(bytes.length, 0, LENGTH_BYTES)
  socket.write(length)
  socket.end(bytes)
}

/** A backup out of the process that has `dataDir`; undefined when there is none. Throws when it gives none, or not all of it. */
export async function fetchBackup(dataDir: string): Promise<Uint8Array | undefined> {
  const socket = await visitHolder(dataDir)
  if (socket === undefined) return undefined
  socket.write(QUESTION)
  const parts: Buffer[] = []
  for await (const part of socket) parts.push(part as Buffer)
  const [all, length] = [Buffer.concat(parts), Buffer.concat(parts).subarray(0, LENGTH_BYTES)]
  const bytes = all.subarray(LENGTH_BYTES)
  if (length.length < LENGTH_BYTES || bytes.length !== length.readUIntBE(0, LENGTH_BYTES))
    throw new Error('the server that has the database gave no backup; its log may say why')
  return bytes
}

const QUESTION = 'backup\n'
const QUESTION_MS = 1_000
const LENGTH_BYTES = 6
