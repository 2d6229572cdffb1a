// The lock of a data directory, after the end of a process that could not release it: of several processes one takes it.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, expect, test } from 'vitest'
import { killScripts, startScript } from '../helpers/script-process.ts'

const directories: string[] = []
afterAll(async () => {
  await killScripts()
  for (const directory of directories) rmSync(directory, { recursive: true })
})

function makeDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'pawl-lock-'))
  directories.push(directory)
  return directory
}

/**
 * Starts a process that locks the directory, and prints `took` or the reason why not. A slow one prints `asked` when it hears whether another process
 * holds a lock, and goes on at the next line.
 */
function startLocking(directory: string, isSlow = false) {
  const script = `
    const { default: net } = await import('node:net')
    const { syncBuiltinESMExports } = await import('node:module')
    const { createInterface } = await import('node:readline')
    const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
    const { connect } = net
    const connectSlowly = (...given) => {
      const socket = connect(...given)
      const once = socket.once.bind(socket)
      socket.once = (name, hear) => once(name, async (...told) => {
        console.log('asked')
        await lines.next()
        hear(...told)
      })
      return socket
    }
    if (process.env.IS_SLOW) net.connect = connectSlowly
    syncBuiltinESMExports()
    const { lockDirectory } = await import(process.env.LOCK)
    await lockDirectory(process.env.DIRECTORY).then(() => console.log('took'), (error) => console.log(error.message))
    await lines.next()`
  return startScript(script, {
    DIRECTORY: directory,
    LOCK: pathToFileURL('src/storage/database/directory-lock.ts').href,
    ...(isSlow && { IS_SLOW: 'true' }),
  })
}

test('a process that hears late that the lock is of nobody does not take it from one that took it meanwhile', async () => {
  const directory = makeDirectory()
  const ended = startLocking(directory)
  expect(await ended.read()).toBe('took')
  await ended.kill()
  const slow = startLocking(directory, true)
  expect(await slow.read()).toBe('asked')
  const quick = startLocking(directory)
  expect(await quick.read()).toBe('took')
  let said: string | undefined = 'asked'
  while (said === 'asked') {
    slow.goOn()
    said = await slow.read()
  }
  expect(said).toContain(`${directory} is in use by another pawl process`)
  expect(readdirSync(directory)).toEqual(['pawl.lock'])
})

test('a process that was killed while it removed a lock holds nobody up', async () => {
  const directory = makeDirectory()
  const ended = startLocking(directory)
  expect(await ended.read()).toBe('took')
  await ended.kill()
  const killed = startLocking(directory, true)
  // It hears that nobody holds the lock, and then, with the second lock, once more.
  for (let i = 0; i < 2; i += 1) {
    expect(await killed.read()).toBe('asked')
    if (i === 0) killed.goOn()
  }
  expect(readdirSync(directory).toSorted()).toEqual(['pawl.lock', 'pawl.lock.removal'])
  await killed.kill()
  expect(await startLocking(directory).read()).toBe('took')
  expect(readdirSync(directory)).toEqual(['pawl.lock'])
})
