// Measures the processor time and the latency of each kind of request over real HTTP: npm run bench. Bounded in units and time.
// bench/run.ts, which runs it, explains its options. The client shares the machine with the server, so compare processor time,
// and only within one run.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { closeAtEnd } from './http/closing.ts'
import { type Postgres, startPostgres } from './http/postgres.ts'
import { startTarget, type Target } from './http/target.ts'
import { print, readWorks } from './http/terminal.ts'
import { compare, header, type Measured, measureInTurns, row } from './http/turns.ts'
import { openWorks } from './http/works.ts'

const { values } = parseArgs({
  options: {
    embedded: { type: 'boolean', default: false },
    works: { type: 'string', default: '' },
    pair: { type: 'string' },
    phones: { type: 'string', default: '1000' },
    clients: { type: 'string', default: '16' },
    windows: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '2' },
    'warm-up': { type: 'string', default: '1' },
    json: { type: 'string' },
  },
})
const root = fileURLToPath(new URL('..', import.meta.url))
const clients = readCount('clients', values.clients, 256)
const windows = readCount('windows', values.windows, 101)
const seconds = readCount('seconds', values.seconds, 60)
const warmUp = readCount('warm-up', values['warm-up'], 101)
const phones = Math.max(clients, readCount('phones', values.phones, 100_000))
const isWanted = readWorks(values.works)

async function main(): Promise<void> {
  const targets = await startTargets()
  const opened = await Promise.all(targets.map(async (target) => ({ target, works: await openWorks(target, phones, isWanted) })))
  const [first] = opened
  const all: Measured[] = []
  print(header())
  for (const { name } of first?.works ?? []) {
    const pairs = opened.map(({ target, works }) => ({ target, work: works.find((work) => work.name === name) }))
    const measured = await measureInTurns(
      name,
      pairs.flatMap(({ target, work }) => (work ? [{ target, work }] : [])),
      { clients, windows, seconds, warmUp },
    )
    for (const one of measured) print(row(values.pair === undefined ? name : `${name} (${one.target})`, one))
    const [own, other] = measured
    if (own && other) print(compare(own, other))
    all.push(...measured)
  }
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify({ clients, phones, works: all }, undefined, 2)}\n`)
}

/** Starts a server of this checkout, and with --pair a server of another revision, each on a database of its own. */
async function startTargets(): Promise<Target[]> {
  const postgres = values.embedded || process.env['DATABASE_URL'] !== undefined ? undefined : await startPostgres()
  const checkouts = [{ name: 'this', checkout: root }]
  if (values.pair !== undefined)
    checkouts.push({ name: values.pair, checkout: isCheckout(values.pair) ? values.pair : checkOut(values.pair) })
  const targets: Target[] = []
  for (const { name, checkout } of checkouts) {
    const databaseUrl = values.embedded ? undefined : (databaseOf(postgres, targets.length) ?? process.env['DATABASE_URL'])
    targets.push(await startTarget({ name, checkout, databaseUrl, databasePid: postgres?.pid }))
  }
  if (postgres === undefined && !values.embedded && targets.length > 1)
    throw new Error('--pair needs a database for each of two servers: not with DATABASE_URL')
  return targets
}

const databaseOf = (postgres: Postgres | undefined, index: number): string | undefined =>
  postgres?.createDatabase(`bench_${index}`)

/** Whether a name is a folder with a checkout and its packages, which may stand for a revision. */
const isCheckout = (named: string): boolean => existsSync(join(named, 'bin/pawl.mjs'))

/** Makes a worktree of the revision, with the packages of its own lock file. */
function checkOut(revision: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-bench-checkout-'))
  const git = (...args: string[]): void => void execFileSync('git', args, { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] })
  git('worktree', 'add', '--detach', '--force', folder, revision)
  closeAtEnd(() => {
    git('worktree', 'remove', '--force', folder)
    rmSync(folder, { recursive: true, force: true })
  })
  execFileSync('npm', ['ci'], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
  return folder
}

function readCount(name: string, text: string, max: number): number {
  const count = Number(text)
  if (Number.isInteger(count) && count >= 1 && count <= max) return count
  throw new Error(`--${name} is not an integer from 1 to ${max}`)
}

await main()
