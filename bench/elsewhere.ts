// What a second process behind the same port brings in requests a second, with the client elsewhere in time: npm run bench -- elsewhere.
// PostgreSQL has its share of the processors. bench/processes.ts says what a request costs where clients take theirs as well.
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { type Elsewhere, runElsewhere } from './http/elsewhere.ts'
import { startPostgres } from './http/postgres.ts'
import { startTarget } from './http/target.ts'
import { median } from './http/window.ts'
import { openWorks } from './http/works.ts'

const { values } = parseArgs({
  options: {
    works: { type: 'string', default: '3.3 validate,3.3 status,EC_P384 validate,app init' },
    // Of each process, one request of each at a time: as many as a process takes at once.
    phones: { type: 'string', default: '400' },
    rounds: { type: 'string', default: '20' },
    windows: { type: 'string', default: '7' },
    'warm-up': { type: 'string', default: '2' },
  },
})
const wanted = values.works.split(',')
const rounds = Number(values.rounds)
const postgres = await startPostgres()
const closing: (() => Promise<void>)[] = [() => postgres.close()]

async function open(name: string, processes: number) {
  const target = await startTarget({
    name,
    checkout: fileURLToPath(new URL('..', import.meta.url)),
    databaseUrl: postgres.createDatabase(`bench_${processes}`),
    databasePid: postgres.pid,
    env: processes > 1 ? { PAWL_PROCESSES: String(processes) } : {},
  })
  closing.push(() => target.close())
  const phones = processes * Number(values.phones)
  return { target, phones, works: await openWorks(target, phones, (work) => wanted.includes(work)) }
}

type Opened = Awaited<ReturnType<typeof open>>

async function runWindow({ target, phones, works }: Opened, name: string): Promise<Elsewhere> {
  const work = works.find((one) => one.name === name)
  if (work === undefined) throw new Error(`no work is called ${name}`)
  return runElsewhere(await work.prepare(phones * rounds, phones), target)
}

const medianOf = (windows: readonly Elsewhere[], pick: (window: Elsewhere) => number): number => median(windows.map(pick))

try {
  const [one, two] = [await open('one process', 1), await open('PAWL_PROCESSES=2', 2)]
  const titles = ['work'.padEnd(24), 'one /s', '  Node µs', 'two /s', '  Node µs', 'rate', 'cost']
  process.stdout.write(`${titles.join('  ')}\n`)
  for (const name of wanted) {
    const windows: { one: Elsewhere[]; two: Elsewhere[] } = { one: [], two: [] }
    for (let i = -Number(values['warm-up']); i < Number(values.windows); i += 1) {
      const [ofOne, ofTwo] = [await runWindow(one, name), await runWindow(two, name)]
      if (i < 0) continue
      windows.one.push(ofOne)
      windows.two.push(ofTwo)
    }
    const cells = [windows.one, windows.two].flatMap((all) => [
      medianOf(all, ({ rate }) => rate)
        .toFixed(0)
        .padStart(6),
      medianOf(all, ({ nodeCpu }) => nodeCpu)
        .toFixed(0)
        .padStart(9),
    ])
    // Of neighbours: what slows the machine for a while slows both.
    const neighbours = (ratio: (ofOne: Elsewhere, ofTwo: Elsewhere) => number): string =>
      median(windows.one.map((ofOne, i) => ratio(ofOne, windows.two[i] ?? ofOne))).toFixed(2)
    const rate = neighbours((ofOne, ofTwo) => ofTwo.rate / ofOne.rate)
    const cost = neighbours((ofOne, ofTwo) => (2 * ofOne.nodeCpu) / ofTwo.nodeCpu)
    process.stdout.write(`${[name.padEnd(24), ...cells, rate, cost].join('  ')}\n`)
  }
} finally {
  for (const close of closing.reverse()) await close()
}
