// What each kind of request costs over real HTTP, in processor time and in time: npm run bench. Bounded in units and time.
// Its options are explained in bench/run.ts, which runs it. The client shares the machine with the server, so compare processor time,
// and only within one run.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { type Postgres, startPostgres } from './http/postgres.ts'
import { startTarget, type Target } from './http/target.ts'
import { type Figures, median, runWindow } from './http/window.ts'
import { openWorks, type Work } from './http/works.ts'

const { values } = parseArgs({
  options: {
    embedded: { type: 'boolean', default: false },
    works: { type: 'string', default: '' },
    pair: { type: 'string' },
    phones: { type: 'string', default: '1000' },
    clients: { type: 'string', default: '16' },
    windows: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '2' },
    json: { type: 'string' },
  },
})
const root = fileURLToPath(new URL('..', import.meta.url))
const clients = readCount('clients', values.clients, 256)
const windows = readCount('windows', values.windows, 101)
const seconds = readCount('seconds', values.seconds, 60)
const phones = Math.max(clients, readCount('phones', values.phones, 100_000))
const words = values.works.split(',').filter(Boolean)
const closing: (() => Promise<void> | void)[] = []

interface Measured {
  readonly work: string
  readonly target: string
  readonly units: number
  readonly windows: readonly Figures[]
}

async function main(): Promise<void> {
  const targets = await startTargets()
  const opened = await Promise.all(targets.map(async (target) => ({ target, works: await openWorks(target, phones, isWanted) })))
  const [first] = opened
  const all: Measured[] = []
  print(header())
  for (const { name } of first?.works ?? []) {
    const pairs = opened.map(({ target, works }) => ({ target, work: works.find((work) => work.name === name) }))
    const measured = await measure(
      name,
      pairs.flatMap(({ target, work }) => (work ? [{ target, work }] : [])),
    )
    for (const one of measured) print(row(one))
    const [own, other] = measured
    if (own && other) print(compare(own, other))
    all.push(...measured)
  }
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify({ clients, phones, works: all }, undefined, 2)}\n`)
}

/** This checkout, and with --pair another revision beside it, each on a database of its own. */
async function startTargets(): Promise<Target[]> {
  const postgres = values.embedded || process.env['DATABASE_URL'] !== undefined ? undefined : await startPostgres()
  if (postgres) closing.push(() => postgres.close())
  const checkouts = [{ name: 'this', checkout: root }]
  if (values.pair !== undefined)
    checkouts.push({ name: values.pair, checkout: isCheckout(values.pair) ? values.pair : checkOut(values.pair) })
  const targets: Target[] = []
  for (const { name, checkout } of checkouts) {
    const databaseUrl = values.embedded ? undefined : (databaseOf(postgres, targets.length) ?? process.env['DATABASE_URL'])
    const target = await startTarget({ name, checkout, databaseUrl, databasePid: postgres?.pid, env: UNLIMITED })
    closing.push(() => target.close())
    targets.push(target)
  }
  if (postgres === undefined && !values.embedded && targets.length > 1)
    throw new Error('--pair needs a database for each of two servers: not with DATABASE_URL')
  return targets
}

/** All phones of a measurement share one address. */
const UNLIMITED = { PAWL_TEMPORARY_KEYS_PER_MINUTE: '1000000' }

const databaseOf = (postgres: Postgres | undefined, index: number): string | undefined =>
  postgres?.createDatabase(`bench_${index}`)

/** A folder with another checkout, its packages installed, stands for a revision too. */
const isCheckout = (named: string): boolean => existsSync(join(named, 'bin/pawl.mjs'))

/** A worktree of the revision with the packages of its own lock file. */
function checkOut(revision: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-bench-checkout-'))
  const git = (...args: string[]): void => void execFileSync('git', args, { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] })
  git('worktree', 'add', '--detach', '--force', folder, revision)
  closing.push(() => {
    git('worktree', 'remove', '--force', folder)
    rmSync(folder, { recursive: true, force: true })
  })
  execFileSync('npm', ['ci'], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
  return folder
}

/** Windows of all targets in turns. The first one of each is not counted: it says how many units fill the time, and warms up. */
async function measure(name: string, pairs: readonly { target: Target; work: Work }[]): Promise<Measured[]> {
  const running = []
  for (const { target, work } of pairs) {
    const trial = await runWindow(await work.prepare(clients * TRIAL_UNITS, clients), target.usage)
    const units = Math.max(clients, Math.min(UNITS_MAX, Math.round(trial.rate * seconds)))
    await runWindow(await work.prepare(units, clients), target.usage)
    running.push({ target, work, units, figures: [] as Figures[] })
  }
  // As many units for each, or a slower one would be measured colder.
  const units = Math.min(...running.map((one) => one.units))
  for (let i = 0; i < windows; i += 1) {
    for (const { target, work, figures } of i % 2 === 0 ? running : running.toReversed())
      figures.push(await runWindow(await work.prepare(units, clients), target.usage))
  }
  return running.map(({ target, figures }) => ({ work: name, target: target.name, units, windows: figures }))
}

function isWanted(name: string): boolean {
  return words.length === 0 || words.some((word) => name.includes(word))
}

const header = (): string => ['work'.padEnd(32), ...COLUMNS.map(([title]) => title.padStart(9)), '  spread of Node'].join(' ')

function row({ work, target, windows: figures }: Measured): string {
  const shown = values.pair === undefined ? work : `${work} (${target})`
  const cells = COLUMNS.map(([, pick, digits]) => {
    const found = figures.map(pick).filter((value) => value !== undefined)
    return (found.length === 0 ? '-' : median(found).toFixed(digits)).padStart(9)
  })
  const cpu = figures.map(({ nodeCpu }) => nodeCpu)
  return [shown.padEnd(32), ...cells, `  ${Math.min(...cpu).toFixed(0)} to ${Math.max(...cpu).toFixed(0)}`].join(' ')
}

/** Median of the ratios of neighbouring windows: what slows the machine for a while slows both. */
function compare(own: Measured, other: Measured): string {
  const ratio = (pick: (figures: Figures) => number): string =>
    median(own.windows.map((figures, i) => pick(figures) / pick(other.windows[i] ?? figures))).toFixed(2)
  const both = ({ nodeCpu, databaseCpu = 0 }: Figures): number => nodeCpu + databaseCpu
  return `${''.padEnd(32)} ratio of processor time ${ratio(both)} (Node ${ratio(({ nodeCpu }) => nodeCpu)}), of p50 ${ratio(({ p50 }) => p50)}`
}

function readCount(name: string, text: string, max: number): number {
  const count = Number(text)
  if (Number.isInteger(count) && count >= 1 && count <= max) return count
  throw new Error(`--${name} is not an integer from 1 to ${max}`)
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

const COLUMNS: readonly [string, (figures: Figures) => number | undefined, number][] = [
  ['/s', ({ rate }) => rate, 0],
  ['p50 ms', ({ p50 }) => p50, 2],
  ['p95 ms', ({ p95 }) => p95, 2],
  ['p99 ms', ({ p99 }) => p99, 2],
  ['Node µs', ({ nodeCpu }) => nodeCpu, 0],
  ['DB µs', ({ databaseCpu }) => databaseCpu, 0],
  ['RSS MiB', ({ resident }) => resident, 0],
]
const TRIAL_UNITS = 4
const UNITS_MAX = 50_000

try {
  await main()
} finally {
  for (const close of closing.reverse()) await close()
}
