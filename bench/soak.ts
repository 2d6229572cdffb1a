// Minutes of full load on one process: what memory it holds in the end, and how long /health/live waits meanwhile: npm run bench -- soak.
//
// The clients share the machine with the server. They run at the lowest priority, so that the server has the processors it asks for, as where
// they are elsewhere; PostgreSQL has what it has.
import { constants, setPriority } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { startPostgres } from './http/postgres.ts'
import { startTarget } from './http/target.ts'
import { quantile, runWindow } from './http/window.ts'
import { openWorks, type Work } from './http/works.ts'
import { startLooking } from './soak/looks.ts'

const { values } = parseArgs({
  options: {
    works: { type: 'string', default: 'EC_P384 validate,EC_P384 activation,EC_P384_ML_L3 activation' },
    phones: { type: 'string', default: '64' },
    clients: { type: 'string', default: '16' },
    seconds: { type: 'string', default: '600' },
    rounds: { type: 'string', default: '4' },
  },
})
const wanted = values.works.split(',')
const clients = Number(values.clients)
const rounds = Number(values.rounds)
const seconds = Number(values.seconds) / rounds / wanted.length
const WINDOW_SECONDS = 4
const TRIAL_UNITS = 4

const postgres = await startPostgres()
const closing: (() => Promise<void> | void)[] = [() => postgres.close()]

try {
  const target = await startTarget({
    name: 'this',
    checkout: fileURLToPath(new URL('..', import.meta.url)),
    databaseUrl: postgres.createDatabase('bench_soak'),
    databasePid: postgres.pid,
  })
  closing.push(() => target.close())
  const looks = startLooking(target.url)
  closing.push(looks.close)
  setPriority(constants.priority.PRIORITY_LOW)
  const works = await openWorks(target, Number(values.phones), (name) => wanted.includes(name))

  /** Windows of one work until its time is over: the rate of the last one, and how long the looks waited within them, not between them. */
  const keepBusy = async ({ prepare }: Work) => {
    const spans = []
    let units = clients * TRIAL_UNITS
    let rate = 0
    for (const end = Date.now() + seconds * 1000; Date.now() < end; ) {
      const lists = await prepare(units, clients)
      const from = Date.now()
      ;({ rate } = await runWindow(lists, target))
      spans.push({ from, to: Date.now() })
      units = Math.max(clients, Math.round(rate * WINDOW_SECONDS))
    }
    return { rate, waited: looks.within(spans) }
  }

  process.stdout.write(`${['work'.padEnd(32), '/s', 'RSS MiB', 'live p50 ms', 'p99 ms', 'looks'].join('\t')}\n`)
  for (let round = 0; round < rounds; round += 1) {
    for (const work of works) {
      const { rate, waited } = await keepBusy(work)
      const cells = [rate, target.usage().resident, quantile(waited, 0.5), quantile(waited, 0.99), waited.length]
      process.stdout.write(`${[work.name.padEnd(32), ...cells.map((cell) => cell.toFixed(0))].join('\t')}\n`)
    }
  }
} finally {
  for (const close of closing.toReversed()) await close()
}
