// A signal of somebody else on the machine must not open Node's inspector, which shows the keys: SIGUSR1 does so by default. Nor does a signal cut
// requests that run: SIGHUP does so by default.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { afterAll, expect, test } from 'vitest'
import { serverUrl } from '../helpers/app.ts'
import { createInstallation, endEverything, SERVER, startNode, startPawl } from '../helpers/process.ts'

afterAll(endEverything)

/** Ports on which a process listens. */
function portsOf(pid: number): readonly string[] {
  const sockets = new Set(
    readdirSync(`/proc/${pid}/fd`).flatMap((name) => /^socket:\[(\d+)\]$/.exec(readlink(`/proc/${pid}/fd/${name}`))?.[1] ?? []),
  )
  const lines = ['tcp', 'tcp6'].flatMap((name) => readFileSync(`/proc/${pid}/net/${name}`, 'utf8').trim().split('\n').slice(1))
  return lines
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , , state, , , , , , inode = '']) => state === '0A' && sockets.has(inode))
    .map(([, address = '']) => address.split(':').at(-1) ?? '')
}
const readlink = (path: string): string => {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}
const workersOf = (pid: number): readonly number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number)
const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 500))

test.each([
  ['as it is started by hand', []],
  ['as the image starts it', ['--disable-sigusr1']],
])('a server %s goes on, and listens where it did', async (_, flags) => {
  const { env } = await createInstallation(serverUrl() === undefined ? 'embedded' : 'postgresql')
  const running = startNode([...flags, SERVER, 'serve'], { ...env, PAWL_PORT: '0' })
  await running.printed('Ready.')
  const before = portsOf(running.pid)
  expect(before).toHaveLength(1)
  for (let i = 0; i < 3; i += 1) {
    running.send('SIGUSR1')
    await pause()
  }
  expect(portsOf(running.pid)).toEqual(before)
  expect(running.output()).not.toContain('Debugger')
  const { code } = await running.end('SIGTERM')
  expect(code).toBe(0)
})

test.skipIf(serverUrl() === undefined)('SIGHUP stops workers as SIGTERM does, whoever of them gets it', async () => {
  const { env } = await createInstallation('postgresql')
  const pawl = await startPawl(env, { PAWL_PROCESSES: '2' })
  await pawl.printed('Ready.')
  const [worker = 0] = workersOf(pawl.pid)
  process.kill(worker, 'SIGHUP')
  await pawl.printed('"code":0,"signal":null,"afterSeconds":1,"msg":"a worker ended, it is started again"')
  expect(await pawl.end('SIGHUP')).toMatchObject({ code: 0, signal: null, stderr: '' })
})

test.skipIf(serverUrl() === undefined)('nor do its workers', async () => {
  const { env } = await createInstallation('postgresql')
  const pawl = await startPawl(env, { PAWL_PROCESSES: '2' })
  const all = [pawl.pid, ...workersOf(pawl.pid)]
  expect(all.length).toBeGreaterThan(1)
  const before = all.map(portsOf)
  for (const pid of all) process.kill(pid, 'SIGUSR1')
  await pause()
  expect(all.map(portsOf)).toEqual(before)
  expect(pawl.output()).not.toContain('Debugger')
  expect((await fetch(`${pawl.url}/health/live`)).status).toBe(200)
})
