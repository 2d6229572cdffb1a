// The log and the server when stdout is a pipe that nobody reads, a full disk, or closed.
import { spawnSync } from 'node:child_process'
import { closeSync, openSync, read } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { HttpReply } from '../../phone/http.ts'
import { NO_BODY, send } from '../../phone/http.ts'
import { basicAuthorization } from '../helpers/bank.ts'
import { findQuietPort } from '../helpers/ports.ts'
import type { Installation, PawlProcess } from '../helpers/process.ts'
import { ADMIN_PASSWORD, createInstallation, DATABASE_KIND, endEverything, SERVER, startNode } from '../helpers/process.ts'
import { PATIENCE_MS } from '../helpers/patience.ts'

const opened: number[] = []
afterEach(async () => {
  await endEverything()
  for (const fd of opened.splice(0)) closeSync(fd)
})

describe('a stdout that nobody reads', () => {
  test('does not stop the server, lines are dropped and counted, and the end comes in time', async () => {
    const fd = makePipe(await createInstallation(DATABASE_KIND))
    const startedAt = performance.now()
    const server = await startOn(fd)
    const startMs = performance.now() - startedAt
    // Far more than the pipe and the queue before it hold. The first ones find room, on this machine as it is now.
    const sent = 7_000
    const usual = await callHealth(server, 200)
    const slowest = await callHealth(server, sent - 200)
    expect(slowest, 'ms of the slowest answer').toBeLessThan(Math.max(2_000, 10 * usual))
    const text = await drain(fd, 'log lines were dropped')
    const lines = text.split('\n').filter((line) => line.startsWith('{'))
    const parsed = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
    const served = parsed.filter(({ msg, requestId }) => msg === 'request served' && requestId === CALLERS_ID).length
    const dropped = parsed.filter(({ msg }) => msg === 'log lines were dropped, because nobody took them')
    expect(dropped).toEqual([expect.objectContaining({ level: 'error', dropped: expect.any(Number) })])
    expect(Number(dropped[0]?.['dropped'])).toBeGreaterThan(1_000)
    // Each line was either taken or counted; those that are still on their way when this stops reading are the rest.
    expect(served + Number(dropped[0]?.['dropped'])).toBeLessThanOrEqual(sent + 1)
    await callHealth(server, sent)
    const since = performance.now()
    expect(await server.end('SIGTERM')).toMatchObject({ code: 0, stderr: '' })
    // A start has many times the work of an end.
    expect(performance.now() - since).toBeLessThan(Math.max(10_000, startMs))
  })
})

describe('a full disk', () => {
  test('leaves a wrong login a 401', async () => {
    const fd = openSync('/dev/full', 'w')
    opened.push(fd)
    const server = await startOn(fd)
    for (let i = 0; i < 3; i++) expect((await login(server, 'not the password')).status).toBe(401)
    expect((await login(server, ADMIN_PASSWORD)).status).toBe(200)
    expect(await server.end('SIGTERM')).toMatchObject({ code: 0, stderr: '' })
  })
})

describe('a reader that went away', () => {
  test('leaves the server serving', async () => {
    const { directory } = await createInstallation(DATABASE_KIND)
    const path = join(directory, 'stdout')
    spawnSync('/usr/bin/env', ['mkfifo', path])
    const reader = openSync(path, 'r+')
    const writer = openSync(path, 'w')
    const server = await startOn(writer)
    closeSync(reader)
    closeSync(writer)
    for (let i = 0; i < 3; i++) expect((await login(server, 'not the password')).status).toBe(401)
    expect(await server.end('SIGTERM')).toMatchObject({ code: 0, stderr: '' })
  })
})

const CALLERS_ID = 'a-caller.s:own/id'.padEnd(128, '=')

/** A pipe of its own, which takes 64 KiB when nobody reads it. */
function makePipe({ directory }: Installation): number {
  const path = join(directory, 'stdout')
  spawnSync('/usr/bin/env', ['mkfifo', path])
  // Both ends, so that neither waits for the other.
  const fd = openSync(path, 'r+')
  opened.push(fd)
  return fd
}

async function startOn(fd: number): Promise<Pick<PawlProcess, 'url' | 'end'>> {
  const { env } = await createInstallation(DATABASE_KIND)
  const port = await findQuietPort()
  const url = `http://127.0.0.1:${port}`
  const settings = { PAWL_PORT: String(port), PAWL_LOG_LEVEL: 'debug', PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD }
  const running = startNode([SERVER], { ...env, ...settings }, fd)
  // A start that takes a while answers /health/live before it serves.
  const ready = async () => send(url, { method: 'GET', path: '/health/ready', headers: {}, body: NO_BODY })
  await vi.waitFor(async () => expect((await ready()).status).toBe(200), { timeout: PATIENCE_MS, interval: 100 })
  return { url, end: running.end }
}

const health = (url: string): Promise<HttpReply> =>
  send(url, { method: 'GET', path: '/health/live', headers: { 'X-Request-Id': CALLERS_ID }, body: NO_BODY })

/** Returns the milliseconds of the slowest answer. */
async function callHealth({ url }: Pick<PawlProcess, 'url'>, count: number): Promise<number> {
  let slowest = 0
  const lane = async (): Promise<void> => {
    for (let i = 0; i < count / 20; i++) {
      const since = performance.now()
      expect((await health(url)).status).toBe(200)
      slowest = Math.max(slowest, performance.now() - since)
    }
  }
  await Promise.all(Array.from({ length: 20 }, lane))
  return slowest
}

const login = ({ url }: Pick<PawlProcess, 'url'>, password: string): Promise<HttpReply> =>
  send(url, { method: 'GET', path: '/admin/applications', headers: basicAuthorization(`admin:${password}`), body: NO_BODY })

/** Nothing while the pipe is empty: the server has made it one that says so instead of waiting. */
async function readSome(fd: number, buffer: Buffer): Promise<string> {
  try {
    const { bytesRead } = await promisify(read)(fd, buffer, 0, buffer.length, null)
    return buffer.toString('utf8', 0, bytesRead)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EAGAIN') return ''
    throw error
  }
}

/** Reads until the line with `wanted` is whole. */
async function drain(fd: number, wanted: string): Promise<string> {
  const buffer = Buffer.alloc(64 * 1024)
  let text = ''
  while (!text.slice(text.lastIndexOf(wanted)).includes('\n') || !text.includes(wanted)) {
    text += await readSome(fd, buffer)
    await sleep(0)
  }
  return text
}
