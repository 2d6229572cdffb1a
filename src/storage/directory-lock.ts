// One process a data directory: a Unix socket that lives as long as its process. The embedded database has no lock of its own;
// two processes on one directory would both succeed and lose rows.
import { closeSync, openSync, statSync, unlinkSync } from 'node:fs'
import { type Server, connect, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { StartError } from '../lib/errors.ts'

/** Takes the lock of `directory` and returns the function that gives it back. Throws StartError when another process holds it. */
export async function lockDirectory(directory: string): Promise<() => Promise<void>> {
  const path = join(directory, 'pawl.lock')
  const { address, done } = socketAddress(directory, path)
  try {
    const server = (await listen(address)) ?? (await replaceStale(address, path, directory))
    const own = statSync(path).ino
    // Two starts may find the same stale socket; the one whose file was replaced meanwhile has lost.
    await sleep(20)
    if (inodeOf(path) !== own) throw inUse(directory)
    server.unref()
    return () => new Promise<void>((resolve) => server.close(() => resolve())).finally(done)
  } catch (error) {
    done()
    throw error
  }
}

async function replaceStale(address: string, path: string, directory: string): Promise<Server> {
  if (await isAlive(address)) throw inUse(directory)
  unlinkSync(path)
  const server = await listen(address)
  if (server === undefined) throw inUse(directory)
  return server
}

function listen(address: string): Promise<Server | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy())
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

// Socket addresses hold about 107 bytes; a longer path is reached through the descriptor of its directory.
function socketAddress(directory: string, path: string): { address: string; done: () => void } {
  if (Buffer.byteLength(path) < 100) return { address: path, done: () => undefined }
  const descriptor = openSync(directory, 'r')
  return { address: `/proc/self/fd/${descriptor}/pawl.lock`, done: () => closeSync(descriptor) }
}

function inodeOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.ino
}

const inUse = (directory: string): StartError =>
  new StartError(`the data directory ${directory} is in use by another pawl process; stop it or choose another PAWL_DATA_DIR`)
