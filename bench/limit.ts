// What a request costs beside what PostgreSQL and OpenSSL alone take for it: npm run bench -- limit.
//
// PostgreSQL: the statements of one window are taken from the server's log and run again by pgbench, prepared, in one session, on a copy of
// the database as it was before the window. OpenSSL: the operations on P-384 that protocol 4.0 cannot do without, in a loop: their share of Node's
// processor time, and how many requests are answered in proportion to how often OpenSSL could do them on all cores but one, which
// stands for the event loop, PostgreSQL and the clients, and on all cores.
import { availableParallelism } from 'node:os'
import { openSslMicroseconds } from './limit/openssl.ts'
import { replayByPgbench, recordStatements, startLoggingPostgres } from './limit/statements.ts'
import { startTarget } from './http/target.ts'
import { median, runWindow } from './http/window.ts'
import { openWorks } from './http/works.ts'

const CORES = availableParallelism()
const CLIENTS = 16
const PHONES = 64
const UNITS = 800
const WINDOWS = 3
// Of 4.0: until V8 has compiled what runs, a request takes a quarter more.
const WARM_UP = 4
const WORKS = ['3.3 validate', 'EC_P384 validate', '3.3 status', '3.3 detail', '3.3 temporary key', '3.3 activation']
const P384_WORKS = ['EC_P384 temporary key', 'EC_P384 activation create', 'EC_P384 activation']

const postgres = await startLoggingPostgres()
const databaseUrl = postgres.createDatabase('bench_limit')
const target = await startTarget({
  name: 'this',
  checkout: new URL('..', import.meta.url).pathname,
  databaseUrl,
  databasePid: postgres.pid,
})
try {
  const works = await openWorks(target, PHONES, (name) => [...WORKS, ...P384_WORKS].includes(name))
  print('work'.padEnd(24), 'Node µs', 'DB µs', 'statements', 'pgbench: DB µs')
  for (const { name, prepare } of works.filter((work) => WORKS.includes(work.name))) {
    const count = name.endsWith('activation') ? UNITS / 4 : UNITS
    await runWindow(await prepare(count, CLIENTS), target)
    const units = await prepare(count, CLIENTS)
    const { figures, statements, copyUrl } = await recordStatements(postgres, databaseUrl, () => runWindow(units, target))
    const alone = await replayByPgbench(postgres, copyUrl, statements)
    const cells = [figures.nodeCpu, figures.databaseCpu ?? 0].map((value) => value.toFixed(0).padStart(7))
    print(name.padEnd(24), ...cells, (statements.length / count).toFixed(2).padStart(9), (alone / count).toFixed(0).padStart(12))
  }
  print('')
  print('work'.padEnd(24), 'Node µs', 'OpenSSL alone µs', 'share', 'a second', 'all cores but one', 'share', 'all cores')
  for (const { name, prepare } of works.filter((work) => P384_WORKS.includes(work.name))) {
    const nodeCpu: number[] = []
    const rates: number[] = []
    const alone: number[] = []
    for (let i = -WARM_UP; i < WINDOWS; i += 1) {
      // A shorter window would show how a queue of 16 fills and empties, which is a twentieth of 200 requests.
      const { nodeCpu: spent, rate } = await runWindow(await prepare(UNITS, CLIENTS), target)
      const operations = openSslMicroseconds(name)
      if (i < 0) continue
      nodeCpu.push(spent)
      rates.push(rate)
      alone.push(operations)
    }
    const [spent, least, rate] = [median(nodeCpu), median(alone), median(rates)]
    const possibleOn = (cores: number): number => (cores * 1_000_000) / least
    const possible = possibleOn(Math.max(1, CORES - 1))
    const ofTime = [spent.toFixed(0).padStart(7), least.toFixed(0).padStart(16), (least / spent).toFixed(2).padStart(5)]
    const ofRate = [rate.toFixed(0).padStart(8), possible.toFixed(0).padStart(17), (rate / possible).toFixed(2).padStart(5)]
    print(name.padEnd(24), ...ofTime, ...ofRate, (rate / possibleOn(CORES)).toFixed(2).padStart(9))
  }
} finally {
  await target.close()
  await postgres.close()
}

function print(...cells: readonly string[]): void {
  process.stdout.write(`${cells.join('  ')}\n`)
}
