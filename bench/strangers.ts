// What strangers cost, and what users notice of them: npm run bench -- strangers. First the processor time of requests that nobody
// proved anything for, each from a source of its own; then the latencies of right requests of others, in a quiet time and while one
// source sends the dearest of these at a steady rate.
import { availableParallelism, loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { fileURLToPath } from 'node:url'
import { setTimeout as sleep } from 'node:timers/promises'
import { type HttpRequest, send } from '../phone/http.ts'
import type { VirtualPhone } from '../phone/virtual-phone.ts'
import { startPostgres } from './http/postgres.ts'
import { openMeter, printLongBodies, toBytes } from './http/long-bodies.ts'
import { openScene, type Stranger } from './http/strangers.ts'
import { startTarget, type Target } from './http/target.ts'
import { quantile } from './http/window.ts'

const { values } = parseArgs({
  options: {
    checkout: { type: 'string', default: fileURLToPath(new URL('..', import.meta.url)) },
    requests: { type: 'string', default: '300' },
    works: { type: 'string', default: '' },
    'in-flight': { type: 'string', default: '8' },
    rate: { type: 'string', default: '50' },
    seconds: { type: 'string', default: '10' },
    victims: { type: 'string', default: '4' },
  },
})

async function main(): Promise<void> {
  const postgres = await startPostgres()
  try {
    const target = await startTarget({
      name: 'pawl',
      checkout: values.checkout,
      databaseUrl: postgres.createDatabase('bench_strangers'),
      databasePid: postgres.pid,
      // Sources are what X-Forwarded-For says; the phones that make the requests ahead have one for all the keys they ask for.
      env: { PAWL_TRUSTED_PROXIES: '127.0.0.1', PAWL_TEMPORARY_KEYS_PER_MINUTE: '3000' },
    })
    try {
      await measure(target)
    } finally {
      await target.close()
    }
  } finally {
    await postgres.close()
  }
}

async function measure(target: Target): Promise<void> {
  const { strangers, victims } = await openScene(target, Number(values.victims))
  print(`processes that ran on the machine's ${availableParallelism()} cores in the minute before: ${loadavg()[0]?.toFixed(1)}`)
  print(`ms of CPU a request, ${values['in-flight']} in flight and one at a time`)
  print(`${'request'.padEnd(44)} ${'in flight'.padStart(10)} ${'alone'.padStart(10)}  answers`)
  const costs: { stranger: Stranger; ms: number }[] = []
  for (const stranger of strangers.filter(({ name }) => isWanted(name))) {
    const { busy, alone, answers } = await measureCost(target, stranger)
    costs.push({ stranger, ms: busy })
    print(`${stranger.name.padEnd(44)} ${busy.toFixed(2).padStart(10)} ${alone.toFixed(2).padStart(10)}  ${answers}`)
  }
  const unit = strangers.find(({ name }) => name === UNIT)
  const [pid = 0] = target.processes()
  if (unit) {
    const meter = openMeter({ pid, port: Number(new URL(target.url).port) }, async () => toBytes(await unit.make()))
    await printLongBodies(meter, print, isWanted)
  }
  const [worst] = costs.filter(({ stranger }) => stranger.isLogin === undefined).toSorted((a, b) => b.ms - a.ms)
  if (worst === undefined) return
  const seconds = Number(values.seconds)
  print(`\nright codes of ${victims.length} users, each sending the next one 20 ms after the answer, ${seconds} s:`)
  print(`  quiet: ${await measureVictims(target.url, victims, seconds)}`)
  // Made ahead: this process also measures the users.
  const flooding: HttpRequest[] = []
  for (let i = 0; i < Number(values.rate) * (seconds + 1); i += 1)
    flooding.push(withSource(await worst.stranger.make(), '198.51.100.66'))
  const flood = startFlood(target.url, flooding, Number(values.rate))
  print(`  under ${values.rate} a second of "${worst.stranger.name}": ${await measureVictims(target.url, victims, seconds)}`)
  print(`  the source got ${await flood.stop()}`)
  print(`load at the end: ${loadavg()[0]?.toFixed(1)}`)
}

function isWanted(name: string): boolean {
  const words = values.works.split(',').filter(Boolean)
  return words.length === 0 || words.some((word) => name.includes(word))
}

/** Milliseconds of processor time of the server a request, and how often each status was answered. */
interface Cost {
  /** With `--in-flight` requests on their way at any time, as a flood comes. */
  readonly busy: number
  /** One at a time: each finds threads asleep and caches cold. */
  readonly alone: number
  readonly answers: string
}

/** Warm: the first requests are not counted. */
async function measureCost(target: Target, stranger: Stranger): Promise<Cost> {
  // A password takes scrypt a tenth of a second; it needs no more to be exact.
  const [warmUp, count] = stranger.isLogin ? [3, 20] : [WARM_UP, Number(values.requests)]
  const requests: HttpRequest[] = []
  for (let i = 0; i < warmUp + 2 * count; i += 1)
    requests.push(withSource(await stranger.make(), `2001:db8:${i.toString(16)}::1`))
  const inFlight = Number(values['in-flight'])
  const warming = await sendAll(target, requests.slice(0, warmUp), inFlight)
  const busy = await sendAll(target, requests.slice(warmUp, warmUp + count), inFlight)
  const alone = await sendAll(target, requests.slice(warmUp + count), 1)
  return { busy: busy.ms, alone: alone.ms, answers: tally([...warming.statuses, ...busy.statuses, ...alone.statuses]) }
}

/** Sends with `inFlight` requests on their way at a time; milliseconds of processor time a request, and all statuses. */
async function sendAll(
  target: Target,
  requests: readonly HttpRequest[],
  inFlight: number,
): Promise<{ readonly ms: number; readonly statuses: readonly number[] }> {
  const statuses: number[] = []
  const waiting = requests.values()
  const before = target.usage().node
  // All take from one iterator.
  const client = async (): Promise<void> => {
    for (const request of waiting) statuses.push((await send(target.url, request)).status)
  }
  await Promise.all(Array.from({ length: inFlight }, client))
  return { ms: (target.usage().node - before) / 1000 / requests.length, statuses }
}

async function measureVictims(url: string, victims: readonly VirtualPhone[], seconds: number): Promise<string> {
  const times: number[] = []
  let refused = 0
  const end = performance.now() + seconds * 1000
  await Promise.all(
    victims.map(async (phone, i) => {
      while (performance.now() < end) {
        const request = withSource(phone.prepareValidation({ body: BODY }), `192.0.2.${i + 1}`)
        const sent = performance.now()
        const { status } = await send(url, request)
        times.push(performance.now() - sent)
        if (status !== 200) refused += 1
        await sleep(PAUSE_MS)
      }
    }),
  )
  const sorted = Float64Array.from(times).sort()
  const [p50, p95, p99] = [0.5, 0.95, 0.99].map((share) => quantile(sorted, share).toFixed(1))
  return `${times.length} requests, p50 ${p50} ms, p95 ${p95} ms, p99 ${p99} ms, ${refused} refused`
}

/** One source that sends `rate` requests a second and does not wait for answers. */
function startFlood(url: string, requests: readonly HttpRequest[], rate: number): { stop: () => Promise<string> } {
  const pending: Promise<number>[] = []
  const start = performance.now()
  let sent = 0
  const timer = setInterval(() => {
    const due = Math.floor(((performance.now() - start) / 1000) * rate)
    for (const request of requests.slice(sent, due)) {
      sent += 1
      pending.push(
        send(url, request).then(
          ({ status }) => status,
          () => CONNECTION_LOST,
        ),
      )
    }
  }, 1000 / rate)
  return {
    stop: async () => {
      clearInterval(timer)
      return tally(await Promise.all(pending))
    },
  }
}

const withSource = (request: HttpRequest, ip: string): HttpRequest => ({
  ...request,
  headers: { ...request.headers, 'X-Forwarded-For': ip },
})

function tally(statuses: readonly number[]): string {
  const counts = new Map<number, number>()
  for (const status of statuses) counts.set(status, (counts.get(status) ?? 0) + 1)
  return [...counts].map(([status, count]) => `${count} × ${status === CONNECTION_LOST ? 'nothing' : status}`).join(', ')
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

const CONNECTION_LOST = 0
/** What a stranger's request may cost three times. */
const UNIT = '4.0 code, 2 bytes'
/** Until the compiler of Node has nothing more to do for this kind of request. */
const WARM_UP = 150
const PAUSE_MS = 20
const BODY = JSON.stringify({ amount: '10.00', currency: 'EUR', iban: 'DE89370400440532013000' })

await main()
