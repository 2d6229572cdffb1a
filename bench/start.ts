// What a start costs with a warm compile cache, from the sources and from the bundle of the image, and what memory it leaves: npm run bench -- start.
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { startPostgres } from './http/postgres.ts'
import { startTarget } from './http/target.ts'
import { median } from './http/window.ts'

const checkout = fileURLToPath(new URL('..', import.meta.url))
const STARTS = 7
const IDLE_MS = 3_000
/** Every start opens what the first one wrote. */
const MASTER_KEY = randomBytes(32).toString('base64')

interface Start {
  /** Seconds of processor time until it is ready, threads included. */
  readonly processor: number
  readonly seconds: number
  /** MiB, a while after it was ready. */
  readonly resident: number
}

async function startOnce(databaseUrl: string | undefined): Promise<Start> {
  const begin = performance.now()
  const env = databaseUrl === undefined ? {} : { PAWL_MASTER_KEY: MASTER_KEY }
  const target = await startTarget({ name: 'this', checkout, databaseUrl, databasePid: undefined, env })
  const seconds = (performance.now() - begin) / 1000
  const processor = target.usage().node / 1e6
  await sleep(IDLE_MS)
  const { resident } = target.usage()
  await target.close()
  return { processor, seconds, resident }
}

/** The first start migrates and fills the compile cache: it is not counted. */
async function measureStarts(name: string, databaseUrl: string | undefined): Promise<void> {
  await startOnce(databaseUrl)
  const starts: Start[] = []
  for (let i = 0; i < STARTS; i += 1) starts.push(await startOnce(databaseUrl))
  const of = (pick: (start: Start) => number): readonly number[] => starts.map(pick)
  const processor = of((start) => start.processor)
  const text = [
    `${median(processor).toFixed(2)} s CPU (least ${Math.min(...processor).toFixed(2)})`,
    `${median(of((start) => start.seconds)).toFixed(2)} s`,
    `${median(of((start) => start.resident)).toFixed(0)} MiB idle`,
  ]
  process.stdout.write(`${name.padEnd(22)} ${text.join(', ')}\n`)
}

const postgres = await startPostgres()
const removeBundle = (): void => rmSync(`${checkout}/dist`, { recursive: true, force: true })
try {
  removeBundle()
  const databaseUrl = postgres.createDatabase('bench_start')
  await measureStarts('PostgreSQL, sources', databaseUrl)
  await measureStarts('embedded, sources', undefined)
  execFileSync(process.execPath, ['scripts/bundle.ts'], { cwd: checkout })
  await measureStarts('PostgreSQL, bundle', databaseUrl)
  await measureStarts('embedded, bundle', undefined)
} finally {
  removeBundle()
  await postgres.close()
}
