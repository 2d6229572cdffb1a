// The documents that begin with a command, as their readers follow them: every block in its order, on a fresh data directory.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test, vi } from 'vitest'
import { findMissing, openReader, type Reader, readBlocks } from '../helpers/document.ts'
import { findQuietPort } from '../helpers/ports.ts'

// A start from nothing and several command lines, while other test files run.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 240_000 })

const directory = mkdtempSync(join(tmpdir(), 'pawl-readme-'))
const readers: Reader[] = []
afterAll(async () => {
  for (const { close } of readers) await close()
  rmSync(directory, { recursive: true, force: true })
})

/** A reader with nothing yet, at a server of one listener or of two. */
async function sit(name: string, hasTwoListeners: boolean, ...more: (readonly [string, string])[]): Promise<Reader> {
  const { PATH = '' } = process.env
  const example = String(await findQuietPort())
  const [port, internalPort] = [String(await findQuietPort()), String(await findQuietPort())]
  const phonesPort = String(await findQuietPort())
  const home = join(directory, name)
  const env = {
    PATH,
    HOME: home,
    XDG_DATA_HOME: home,
    XDG_CONFIG_HOME: home,
    PAWL_DATA_DIR: join(home, 'data'),
    PAWL_PORT: port,
    BANK_PORT: example,
    ...(hasTwoListeners && { PAWL_INTERNAL_PORT: internalPort }),
  }
  const bank = `http://127.0.0.1:${hasTwoListeners ? internalPort : port}`
  const reader = openReader({
    env,
    typed: new Map([
      ['pawl listens on http://127.0.0.1:8080', `pawl listens on http://127.0.0.1:${port}`],
      ['http://127.0.0.1:8080', bank],
      ['http://127.0.0.1:8090', `http://127.0.0.1:${example}`],
      ['DATA=./data', `DATA=${env.PAWL_DATA_DIR}`],
      // Nothing of a test listens where others reach it.
      ['npm start -- --phone', `npm start -- --phone --phone-host 127.0.0.1 --phone-port ${phonesPort}`],
      ['https://192.168.1.5:8443', `https://127.0.0.1:${phonesPort}`],
      ['data/phone-tls/', `${env.PAWL_DATA_DIR}/phone-tls/`],
      ...more,
    ]),
  })
  readers.push(reader)
  return reader
}

const MINUTE_MS = 60_000

test.each([
  ['one listener', false],
  ['two listeners', true],
])(
  'README.md leads to an approved operation in three commands and three minutes, and goes on: %s',
  async (name, hasTwoListeners) => {
    const first = readBlocks('README.md').slice(0, 2)
    expect(first.flatMap(({ commands }) => commands)).toEqual(['npm start', 'npx pawl login', 'npm run demo'])
    expect(first.flatMap(({ shown }) => shown).join('\n')).toContain('"status":"APPROVED"')
    const reader = await sit(name, hasTwoListeners)
    const start = performance.now()
    await reader.follow('README.md', (_, index) => index < 2)
    expect(performance.now() - start).toBeLessThan(3 * MINUTE_MS)
    expect(await reader.follow('README.md', (_, index) => index >= 2)).toBeGreaterThan(3)
    await reader.close()
  },
)

test('every block of docs/start works in its order behind the three commands, and prints what it shows', async () => {
  // That npx finds it, and what npm runs, is shown by README.md; here both would take half of the time. npm run demo makes a second database.
  const reader = await sit('start', false, ['npx pawl ', 'node bin/pawl.mjs '], ['npm run demo', 'node bin/pawl.mjs demo'])
  await reader.follow('README.md', (_, index) => index < 2)
  for (const page of ['bank-developer', 'app-developer', 'operator'])
    expect(await reader.follow(`docs/start/${page}.md`), page).toBeGreaterThan(10)
  await reader.close()
})

test('docs/WEBHOOKS.md is tried on this machine: what it says comes to its receiver', async () => {
  const receiver = String(await findQuietPort())
  const reader = await sit('webhooks', false, ['npx pawl ', 'node bin/pawl.mjs '], ['8092', receiver])
  const blocks = readBlocks('docs/WEBHOOKS.md')
  const from = blocks.findIndex(({ commands }) => commands.some((command) => command.endsWith('npm start')))
  expect(from).toBeGreaterThan(0)
  expect(await reader.follow('docs/WEBHOOKS.md', (_, index) => index >= from && index < from + 3)).toBe(9)
  const [, told = ''] = /has printed:\n\n```text\n(.*?)\n```/s.exec(readFileSync('docs/WEBHOOKS.md', 'utf8')) ?? []
  expect(told.split('\n')).toHaveLength(3)
  await expect.poll(() => findMissing(told.split('\n'), reader.running())).toEqual([])
  expect(reader.running()).not.toContain('FORGED')
  await reader.close()
  // The function that the page shows is the one that its receiver has.
  const [, shown = ''] = /```js\n(.*?)```/s.exec(readFileSync('docs/WEBHOOKS.md', 'utf8')) ?? []
  expect(shown).toContain('isGenuine')
  expect(readFileSync('examples/webhook/receiver.mjs', 'utf8')).toContain(shown)
})

test('the receiver of docs/WEBHOOKS.md goes on when a caller breaks off', async () => {
  const port = await findQuietPort()
  const child = spawn(process.execPath, ['examples/webhook/receiver.mjs', String(port), `whsec_${btoa('secret')}`], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    await once(child.stdout, 'data')
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{')
    socket.resetAndDestroy()
    await once(socket, 'close')
    const replies = [1, 2].map(() => fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: '{}' }))
    expect((await Promise.all(replies)).map(({ status }) => status)).toEqual([400, 400])
  } finally {
    child.kill()
  }
})

test('no page of docs/start is left out', () => {
  // production.md has a test of its own (production.test.ts).
  expect(globSync('docs/start/*.md').toSorted()).toEqual(
    ['app-developer', 'bank-developer', 'operator', 'production'].map((page) => `docs/start/${page}.md`),
  )
})
