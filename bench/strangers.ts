// Measures the cost of strangers, and their effect on users: npm run bench -- strangers. First the processor time of requests that prove
// nothing, each from a source of its own. Then the latencies of right requests of users: in a quiet time; while one source sends the most
// expensive of these requests at a steady rate; and while one address holds thousands of sockets, directly and through HAProxy as it is
// shipped. Last, whether pawl serves 3,000 phones of one address behind HAProxy.
import { Agent, request as openRequest } from 'node:http'
import { availableParallelism, loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { fileURLToPath } from 'node:url'
import { setTimeout as sleep } from 'node:timers/promises'
import { type HttpRequest, send } from '../phone/http.ts'
import type { VirtualPhone } from '../phone/v3/virtual-phone.ts'
import { hasHaproxy, openHaproxy } from '../test/helpers/haproxy.ts'
import { CROWDS, gatherCrowd } from './http/crowd.ts'
import { closeAtEnd } from './http/closing.ts'
import { startPostgres } from './http/postgres.ts'
import { openMeter, printLongBodies, toBytes } from './http/long-bodies.ts'
import { openScene, type Stranger } from './http/strangers.ts'
import { startTarget, type Target } from './http/target.ts'
import { print, readWorks } from './http/terminal.ts'
import { median, quantile } from './http/window.ts'

const { values } = parseArgs({
  options: {
    checkout: { type: 'string', default: fileURLToPath(new URL('..', import.meta.url)) },
    requests: { type: 'string', default: '200' },
    works: { type: 'string', default: '' },
    'in-flight': { type: 'string', default: '8' },
    rate: { type: 'string', default: '50' },
    seconds: { type: 'string', default: '10' },
    victims: { type: 'string', default: '4' },
    crowd: { type: 'string', default: '2500' },
    'crowd-seconds': { type: 'string', default: '35' },
    phones: { type: 'string', default: '3000' },
  },
})

const isWanted = readWorks(values.works)

async function main(): Promise<void> {
  const postgres = await startPostgres()
  const start = (database: string, env: Readonly<Record<string, string>>): Promise<Target> =>
    startTarget({
      name: 'pawl',
      checkout: values.checkout,
      databaseUrl: postgres.createDatabase(database),
      databasePid: postgres.pid,
      // The phones that prepare the requests fetch all their temporary keys from one address.
      env: { PAWL_TEMPORARY_KEYS_PER_MINUTE: '3000', ...env },
    })
  // X-Forwarded-For determines the source of a request.
  const behindProxy = { PAWL_TRUSTED_PROXIES: '127.0.0.1' }
  if (values.works !== SOCKETS) await runWith(await start('bench_strangers', behindProxy), measure)
  if (values.works !== '' && values.works !== SOCKETS) return
  await runWith(await start('bench_sockets', {}), measureCrowds)
  if (hasHaproxy) await runWith(await start('bench_phones', behindProxy), measureBehindHaproxy)
}

async function runWith(target: Target, work: (target: Target) => Promise<void>): Promise<void> {
  await work(target)
  await target.close()
}

async function measure(target: Target): Promise<void> {
  const { strangers, victims } = await openScene(target, Number(values.victims))
  print(`processes that ran on the machine's ${availableParallelism()} cores in the minute before: ${loadavg()[0]?.toFixed(1)}`)
  const costs = await measureCosts(
    target,
    strangers.filter(({ name }) => isWanted(name)),
  )
  printCosts(costs)
  const unit = strangers.find(({ name }) => name === UNIT)
  const [pid = 0] = target.processes()
  if (unit) {
    const meter = openMeter({ pid, port: Number(new URL(target.url).port) }, async () => toBytes(await unit.make()))
    await printLongBodies(meter, isWanted)
  }
  const [worst] = costs.filter(({ stranger }) => stranger.isLogin === undefined).toSorted((a, b) => b.busy - a.busy)
  if (worst === undefined) return
  const seconds = Number(values.seconds)
  print(`\nright codes of ${victims.length} users, each sending the next one 20 ms after the answer, ${seconds} s:`)
  print(`  quiet: ${describe(await measureVictims(target.url, victims, seconds))}`)
  // The requests are made before the flood, because this process also measures the users.
  const flooding: HttpRequest[] = []
  for (let i = 0; i < Number(values.rate) * (seconds + 1); i += 1)
    flooding.push(withSource(await worst.stranger.make(), '198.51.100.66'))
  const flood = startFlood(target.url, flooding, Number(values.rate))
  print(
    `  under ${values.rate} a second of "${worst.stranger.name}": ${describe(await measureVictims(target.url, victims, seconds))}`,
  )
  print(`  the source got ${await flood.stop()}`)
  print(`load at the end: ${loadavg()[0]?.toFixed(1)}`)
}

/** Measures right codes of users at one address while another address holds sockets. */
async function measureCrowds(target: Target): Promise<void> {
  const { victims } = await openScene(target, Number(values.victims))
  print(
    `\n127.0.0.2 holds ${values.crowd} sockets and opens them anew each 30 s; right codes of ${victims.length} users at 127.0.0.1:`,
  )
  await compareCrowds(target.url, victims)
}

async function compareCrowds(url: string, victims: readonly VirtualPhone[]): Promise<void> {
  const seconds = Number(values['crowd-seconds'])
  for (const kind of CROWDS) {
    // Each crowd is compared with a quiet time just before it, because other work of the machine changes over the minutes.
    const quiet = await measureVictims(url, victims, seconds)
    const crowd = gatherCrowd(url, kind, Number(values.crowd))
    const beside = await measureVictims(url, victims, seconds)
    print(`  ${kind.name}: ${(beside.p99 / quiet.p99).toFixed(1)} times the p99; ${await crowd.stop()}`)
    print(`    quiet: ${describe(quiet)}`)
    print(`    beside: ${describe(beside)}`)
  }
}

/** Measures one process behind HAProxy as it is shipped. */
async function measureBehindHaproxy(target: Target): Promise<void> {
  const { victims } = await openScene(target, PHONES_BOUND)
  const { port } = new URL(target.url)
  const haproxy = await openHaproxy([
    { port, internalPort: port },
    { port, internalPort: port },
  ])
  closeAtEnd(() => haproxy.close())
  print('\nthe same through HAProxy as it is shipped:')
  await compareCrowds(haproxy.phonesUrl, victims.slice(0, Number(values.victims)))
  print(`\n${values.phones} phones of one address through HAProxy:`)
  print(`  ${await measurePhones(haproxy.phonesUrl, victims)}`)
}

/** Sends two right codes over each of many kept connections, one connection a phone; then one request over all of them at once. */
async function measurePhones(url: string, victims: readonly VirtualPhone[]): Promise<string> {
  const agents = Array.from({ length: Number(values.phones) }, () => new Agent({ keepAlive: true, maxSockets: 1 }))
  const turns = [...agents, ...agents].values()
  const codes: number[] = []
  const times: number[] = []
  await Promise.all(
    victims.map(async (victim) => {
      // All loops take from one iterator.
      for (const agent of turns) {
        const sent = performance.now()
        codes.push(await sendOver(agent, url, victim.prepareValidation({ body: BODY })))
        times.push(performance.now() - sent)
      }
    }),
  )
  const status: HttpRequest = { method: 'POST', path: '/pa/v3/status', headers: {}, body: Buffer.from('{}') }
  const atOnce = await Promise.all(agents.map((agent) => sendOver(agent, url, status)))
  for (const agent of agents) agent.destroy()
  return `right codes ${tally(codes)} (p99 ${quantile(Float64Array.from(times).sort(), 0.99).toFixed(1)} ms); all at once ${tally(atOnce)}`
}

const sendOver = (agent: Agent, url: string, { method, path, headers, body }: HttpRequest): Promise<number> =>
  new Promise((resolve) => {
    const outgoing = openRequest(
      url + path,
      { agent, method, headers: { ...headers, 'Content-Length': body.length } },
      (answer) => answer.resume().once('end', () => resolve(answer.statusCode ?? CONNECTION_LOST)),
    )
    outgoing.once('error', () => resolve(CONNECTION_LOST))
    outgoing.end(body)
  })

/** Milliseconds of the server's processor time for one request, and the statuses of the answers. */
interface Cost {
  readonly stranger: Stranger
  /** The cost with `--in-flight` requests at any time, as in a flood. */
  readonly busy: number
  /** The cost of one request at a time, which finds threads asleep and caches cold. */
  readonly alone: number
  readonly statuses: readonly number[]
}

/** Takes medians of rounds in which every stranger has a turn, so that the state of the machine is the same for all. */
async function measureCosts(target: Target, strangers: readonly Stranger[]): Promise<readonly Cost[]> {
  for (const stranger of strangers) await measureTurn(target, stranger, WARM_UP)
  const rounds: (readonly Cost[])[] = []
  for (let round = 0; round < ROUNDS; round += 1) {
    const turns: Cost[] = []
    for (const stranger of strangers) turns.push(await measureTurn(target, stranger, Number(values.requests)))
    rounds.push(turns)
  }
  return strangers.map((stranger, i) => {
    const turns = rounds.flatMap((round) => round[i] ?? [])
    return {
      stranger,
      busy: median(turns.map(({ busy }) => busy)),
      alone: median(turns.map(({ alone }) => alone)),
      statuses: turns.flatMap(({ statuses }) => statuses),
    }
  })
}

async function measureTurn(target: Target, stranger: Stranger, requests: number): Promise<Cost> {
  // A password costs scrypt a tenth of a second, so that few requests give an exact figure.
  const count = stranger.isLogin ? Math.ceil(requests / 60) : requests
  const made: HttpRequest[] = []
  for (let i = 0; i < 2 * count; i += 1) made.push(withSource(await stranger.make(), `2001:db8:${i.toString(16)}::1`))
  const busy = await sendAll(target, made.slice(0, count), Number(values['in-flight']))
  const alone = await sendAll(target, made.slice(count), 1)
  return { stranger, busy: busy.ms, alone: alone.ms, statuses: [...busy.statuses, ...alone.statuses] }
}

/** Prints costs in milliseconds, and in units of the wrong code over two bytes if that was measured. */
function printCosts(costs: readonly Cost[]): void {
  const unit = costs.find(({ stranger }) => stranger.name === UNIT)
  const shown = (ms: number, unitMs = Number.NaN): string =>
    ms.toFixed(2).padStart(10) + (unit ? `${(ms / unitMs).toFixed(1)} units`.padStart(12) : '')
  print(`ms of CPU a request, ${values['in-flight']} in flight, then one at a time; medians of ${ROUNDS} rounds`)
  for (const { stranger, busy, alone, statuses } of costs)
    print(`${stranger.name.padEnd(44)} ${shown(busy, unit?.busy)} ${shown(alone, unit?.alone)}  ${tally(statuses)}`)
}

/** Sends requests, `inFlight` at a time. Returns milliseconds of processor time a request, and all statuses. */
async function sendAll(
  target: Target,
  requests: readonly HttpRequest[],
  inFlight: number,
): Promise<{ readonly ms: number; readonly statuses: readonly number[] }> {
  const statuses: number[] = []
  const waiting = requests.values()
  const before = target.usage().node
  // All clients take from one iterator.
  const client = async (): Promise<void> => {
    for (const request of waiting) statuses.push((await send(target.url, request)).status)
  }
  await Promise.all(Array.from({ length: inFlight }, client))
  return { ms: (target.usage().node - before) / 1000 / requests.length, statuses }
}

interface Victims {
  readonly requests: number
  readonly refused: number
  readonly p50: number
  readonly p95: number
  readonly p99: number
}

async function measureVictims(url: string, victims: readonly VirtualPhone[], seconds: number): Promise<Victims> {
  const times: number[] = []
  let refused = 0
  const end = performance.now() + seconds * 1000
  await Promise.all(
    victims.map(async (phone, i) => {
      while (performance.now() < end) {
        const request = withSource(phone.prepareValidation({ body: BODY }), `192.0.2.${i + 1}`)
        const sent = performance.now()
        const status = await send(url, request).then(
          (reply) => reply.status,
          () => CONNECTION_LOST,
        )
        times.push(performance.now() - sent)
        if (status !== 200) refused += 1
        await sleep(PAUSE_MS)
      }
    }),
  )
  const sorted = Float64Array.from(times).sort()
  const at = (share: number): number => quantile(sorted, share)
  return { requests: times.length, refused, p50: at(0.5), p95: at(0.95), p99: at(0.99) }
}

const describe = ({ requests, refused, p50, p95, p99 }: Victims): string =>
  `${requests} requests, p50 ${p50.toFixed(1)} ms, p95 ${p95.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, ${refused} refused`

/** Sends `rate` requests a second without waiting for answers. */
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

const CONNECTION_LOST = 0
/** The request whose cost is the unit. A stranger's request may cost three units. */
const UNIT = '4.0 code, 2 bytes'
/** The value of --works that measures sockets in place of requests. */
const SOCKETS = 'sockets'
/** Requests until Node's compiler has nothing more to do for their kind. */
const WARM_UP = 75
const ROUNDS = 5
const PAUSE_MS = 20
/** The number of bound phones that make the codes for all connections, because to bind 3,000 would take minutes. */
const PHONES_BOUND = 32
const BODY = JSON.stringify({ amount: '10.00', currency: 'EUR', iban: 'DE89370400440532013000' })

await main()
