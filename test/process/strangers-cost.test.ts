// The cost of requests that prove nothing: the server's processor time in units of a wrong code of 4.0 over two bytes. The unit is
// measured before and after each of them, so that other work of the machine does not count.
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { BODY_KINDS, fill, listLongBodies, type Measured, type Meter, openMeter, toBytes } from '../../bench/http/long-bodies.ts'
import { openScene } from '../../bench/http/strangers.ts'
import { startTestServer } from '../helpers/app.ts'
import { openListener, type Route } from '../helpers/listeners.ts'
import { ADMIN_PASSWORD, createInstallation, DATABASE_KIND, endEverything, startPawl } from '../helpers/process.ts'

vi.setConfig({ testTimeout: 240_000, hookTimeout: 120_000 })

const KIB = 1024
const BAR = 3
/** What Node has read at once, 64 KiB, it hands over to its end. */
const CHUNKS_BAR = 5
/** What takes longer than the bar is measured anew as often: once may be the compiler's, or another process's. */
const TRIALS = 6

let meter: Meter
let routes: readonly Route[]
beforeAll(async () => {
  const listed = await startTestServer({ worksInBackground: false })
  const listener = await openListener(listed.context, 'everything')
  routes = listener.routes
  await listener.close()
  await listed.close()
  const { env } = await createInstallation(DATABASE_KIND)
  const settings = {
    PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD,
    PAWL_LOG_LEVEL: 'error',
    PAWL_SOURCE_FAILURES_PER_MINUTE: '1000000',
    PAWL_CODE_FAILURES_PER_MINUTE: '100000',
  }
  const { pid, url } = await startPawl(env, settings)
  const { strangers } = await openScene({ url, admin: `admin:${ADMIN_PASSWORD}` }, 0)
  const unit = strangers.find(({ name }) => name === '4.0 code, 2 bytes')
  if (unit === undefined) throw new Error('no unit')
  // Wrong ones are as wrong again.
  const units: Buffer[] = []
  for (let i = 0; i < 12; i += 1) units.push(toBytes(await unit.make()))
  let sent = 0
  const makeUnit = (): Buffer => units[sent++ % units.length] ?? Buffer.alloc(0)
  meter = openMeter({ pid, port: Number(new URL(url).port) }, makeUnit)
  await meter.measure({ name: 'warm-up', make: makeUnit }, 40)
})
afterAll(endEverything)

/** Those over the bar in each trial, with what they cost at least. */
async function findDear(all: readonly Measured[], count: number, bar = BAR): Promise<string[]> {
  const dear: string[] = []
  for (const measured of all) {
    let least = Number.POSITIVE_INFINITY
    for (let trial = 0; trial < TRIALS && least > bar; trial += 1)
      least = Math.min(least, (await meter.measure(measured, count)).units)
    if (least > bar) dear.push(`${measured.name}: ${least.toFixed(1)} units`)
  }
  return dear
}

test('no body of a stranger costs more than three wrong codes, whatever its route and content type', async () => {
  const requests = ['/nothing', '/pa/nothing', '/console/nothing'].map((path) => ({ method: 'POST', path }))
  // Each type as long as it may be, then longer.
  const bodies = [16 * KIB, 248 * KIB].flatMap((length) => BODY_KINDS.map((kind) => ({ ...kind, body: fill(kind, length) })))
  const all = [...routes, ...requests].map((route): Measured => {
    let sent = 0
    const make = (): Buffer => {
      const { type, body = Buffer.alloc(0) } = bodies[sent++ % bodies.length] ?? {}
      return toBytes({ ...route, headers: type === undefined ? {} : { 'Content-Type': type }, body })
    }
    return { name: `${route.method} ${route.path}`, make }
  })
  expect(await findDear(all, bodies.length)).toEqual([])
})

test('a body in chunks of a byte costs no more than one read of its connection', async () => {
  const all = listLongBodies().filter(({ name }) => name.includes('in chunks'))
  expect(all).toHaveLength(15)
  expect(await findDear(all, 4, CHUNKS_BAR)).toEqual([])
})
