// Locks a data directory for one process, by a Unix socket that the process listens on. The embedded database has no lock of its own: two processes
// on one directory would both succeed and lose rows.
import { closeSync, openSync, rmSync, statSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { StartError } from '../../lib/errors.ts'

/**
 * Takes the lock of `directory` and returns the function that releases it. Throws DirectoryInUse when another process holds it. `onVisit` gets each
 * connection to the socket: it comes from a process of the same user, because nobody else may enter the directory.
 */
export const lockDirectory = (
  directory: string,
  onVisit: (socket: Socket) => void = (socket) => void socket.destroy(),
): Promise<() => Promise<void>> => lock(directory, join(directory, LOCK), onVisit)

async function lock(directory: string, path: string, onVisit: (socket: Socket) => void): Promise<() => Promise<void>> {
  const { address, done } = socketAddress(directory, path)
  try {
    const server = (await listen(address, onVisit)) ?? (await replaceStale(address, path, directory, onVisit))
    const own = statSync(path).ino
    // For a moment a new socket takes no connections yet, and looks stale. The process whose socket file was replaced meanwhile has lost.
    await sleep(20)
    if (inodeOf(path) !== own) throw new DirectoryInUse(directory)
    server.unref()
    const visitors = new Set<Socket>()
    server.on('connection', (socket) => {
      visitors.add(socket)
      socket.once('close', () => visitors.delete(socket))
    })
    const release = (): Promise<void> =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of visitors) socket.destroy()
      })
    return () => release().finally(done)
  } catch (error) {
    done()
    throw error
  }
}

/** Connects to the process that holds the lock of `directory`; undefined when there is none. */
export function visitHolder(directory: string): Promise<Socket | undefined> {
  const { address, done } = socketAddress(directory, join(directory, LOCK))
  return new Promise<Socket | undefined>((resolve) => {
    const socket = connect(address)
    socket.once('connect', () => resolve(socket))
    socket.once('error', () => resolve(undefined))
  }).finally(done)
}

async function replaceStale(
  address: string,
  path: string,
  directory: string,
  onVisit: (socket: Socket) => void,
): Promise<Server> {
  if (await isAlive(address)) throw new DirectoryInUse(directory)
  const stale = inodeOf(path)
  // Of two processes that find the same stale socket, the later one would otherwise remove the new socket of the earlier one. So a process removes a
  // socket only while it holds a second lock and listens on its own before it gives that back, and only the socket that it found.
  const release = await lock(directory, `${path}.removal`, (socket) => void socket.destroy())
  try {
    if (await isAlive(address)) throw new DirectoryInUse(directory)
    if (inodeOf(path) === stale) rmSync(path, { force: true })
    const server = await listen(address, onVisit)
    if (server === undefined) throw new DirectoryInUse(directory)
    return server
  } finally {
    await release()
  }
}

function listen(address: string, onVisit: (socket: Socket) => void): Promise<Server | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer(onVisit)
    server.once('error', (error: NodeJS.ErrnoException) => (error.code === 'EADDRINUSE' ? resolve(undefined) : reject(error)))
    server.listen(address, () => resolve(server))
  })
}

function isAlive(address: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(address)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}

// A socket address holds about 107 bytes. A longer path is reached through the descriptor of its directory.
function socketAddress(directory: string, path: string): { address: string; done: () => void } {
  if (Buffer.byteLength(path) < 100) return { address: path, done: () => undefined }
  const descriptor = openSync(directory, 'r')
  return { address: `/proc/self/fd/${descriptor}/${basename(path)}`, done: () => closeSync(descriptor) }
}

function inodeOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.ino
}

/** Another process holds the lock of a data directory. */
export class DirectoryInUse extends StartError {
  constructor(directory: string) {
    super(`the data directory ${directory} is in use by another pawl process; stop it or choose another PAWL_DATA_DIR`)
  }
}

const LOCK = 'pawl.lock'
