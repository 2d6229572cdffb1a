// Measures the gain of a second process behind the same port: npm run bench -- processes. Windows of one process, of two (PAWL_PROCESSES), and
// of two behind HAProxy run in turns, each on a database of its own.
//
// Every process has the same number of clients, so that as many requests share a statement in each.
// Client and PostgreSQL run on the same machine, so the rate cannot double on two processors. Processor time a request shows the gain: two
// processes with a processor each answer twice as much as one, divided by the factor by which a request costs more.
//
// With --quota 0.3 each process has that share of a processor, so that neither the clients nor PostgreSQL are at their limit. The ratio of rates
// is then that of processes with a processor each.
// With --asleep the client uses no processor while the processes run, and more requests come at once. The rates are comparable then, though
// PostgreSQL takes its share.
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { runAsleep } from './http/asleep.ts'
import { closeAtEnd } from './http/closing.ts'
import { standBefore } from './http/haproxy.ts'
import { startPostgres } from './http/postgres.ts'
import { limitProcessors } from './http/quota.ts'
import { startTarget, type Target } from './http/target.ts'
import { print } from './http/terminal.ts'
import { header, type Measured, measureInTurns, row } from './http/turns.ts'
import { median, runWindow } from './http/window.ts'
import { openWorks, type Work } from './http/works.ts'

const { values } = parseArgs({
  options: {
    works: { type: 'string', default: '3.3 validate,3.3 status,3.3 detail,EC_P384 validate,EC_P384 temporary key' },
    phones: { type: 'string', default: '64' },
    clients: { type: 'string' },
    asleep: { type: 'boolean', default: false },
    quota: { type: 'string' },
    windows: { type: 'string', default: '7' },
    seconds: { type: 'string', default: '2' },
    'warm-up': { type: 'string', default: '6' },
  },
})
const CLIENTS = 16
// A process takes 500 requests at once; this is a fifth less.
const CLIENTS_ASLEEP = 400
const checkout = fileURLToPath(new URL('..', import.meta.url))
const postgres = await startPostgres()
/** Remove limits of processes, after the end of all of them. */
const releases: (() => void)[] = []
closeAtEnd(() => releases.forEach((release) => release()))

const open = (name: string, databaseUrl: string, env: Readonly<Record<string, string>>): Promise<Target> =>
  startTarget({ name, checkout, databaseUrl, databasePid: postgres.pid, env })

/** Limits each process to a share of a processor. The process that passes connections on shares with its first worker. */
function limit(target: Target): void {
  const pids = target.processes()
  releases.push(limitProcessors([pids.slice(0, 2), ...pids.slice(2).map((pid) => [pid])], Number(values.quota)))
}

async function openBehindHaproxy(): Promise<Target> {
  const databaseUrl = postgres.createDatabase('bench_haproxy')
  const shared = {
    PAWL_MASTER_KEY: randomBytes(32).toString('base64'),
    PAWL_ADMIN_PASSWORD: randomBytes(18).toString('base64url'),
    PAWL_TRUSTED_PROXIES: '127.0.0.1',
  }
  const [first, second] = [await open('first', databaseUrl, shared), await open('second', databaseUrl, shared)]
  return standBefore('two behind HAProxy', [{ ...first, admin: `admin:${shared.PAWL_ADMIN_PASSWORD}` }, second])
}

/**
 * The gain as a text: how many times as much two processes answer as one, by the cost of a request (each process with a processor of its own),
 * and by the clock (which counts only if neither client nor database was the limit).
 */
function gain(one: Measured, two: Measured): string {
  const medianOf = ({ windows }: Measured, of: 'nodeCpu' | 'rate'): number => median(windows.map((figures) => figures[of]))
  const cost = `${((2 * medianOf(one, 'nodeCpu')) / medianOf(two, 'nodeCpu')).toFixed(2)} times as much as one process, by what a request costs`
  const rate = `, ${(medianOf(two, 'rate') / medianOf(one, 'rate')).toFixed(2)} by the clock`
  return `${''.padEnd(32)} ${cost}${values.asleep || values.quota ? rate : ''}`
}

const targets = [
  await open('one process', postgres.createDatabase('bench_one'), {}),
  await open('PAWL_PROCESSES=2', postgres.createDatabase('bench_two'), { PAWL_PROCESSES: '2' }),
  ...(existsSync('/usr/sbin/haproxy') ? [await openBehindHaproxy()] : []),
]
const clientsOfOne = Number(values.clients ?? (values.asleep ? CLIENTS_ASLEEP : CLIENTS))
const wanted = values.works.split(',')
const opened: { target: Target; clients: number; works: readonly Work[] }[] = []
for (const target of targets) {
  const clients = target === targets[0] ? clientsOfOne : 2 * clientsOfOne
  const works = await openWorks(target, Math.max(clients, Number(values.phones)), (name) => wanted.includes(name))
  opened.push({ target, clients, works })
}
const turns = {
  clients: clientsOfOne,
  windows: Number(values.windows),
  seconds: Number(values.seconds),
  warmUp: Number(values['warm-up']),
  run: values.asleep ? runAsleep : runWindow,
}
const pairsOf = (name: string) =>
  opened.flatMap(({ target, works, clients }) =>
    works.filter((work) => work.name === name).map((work) => ({ target, work, clients })),
  )
if (values.quota !== undefined) {
  // A first window without limits lets Node compile the code, which would take minutes with a share of a processor.
  for (const name of wanted) await measureInTurns(name, pairsOf(name), { ...turns, windows: 1 })
  for (const { target } of opened) limit(target)
}
print(header())
for (const name of wanted) {
  const [one, ...others] = await measureInTurns(name, pairsOf(name), turns)
  for (const measured of [one, ...others]) if (measured) print(row(`${name} (${measured.target})`.slice(0, 44), measured))
  for (const other of others) if (one) print(`${gain(one, other)}: ${other.target}`)
}
