// The database is lost at each statement of a door in turn, before it is done or after: the call that is made again under its key gets one
// verdict, and the code or token is used once (cloud §12.4).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { HttpReply } from '../../phone/http.ts'
import { random } from '../../phone/v3/crypto.ts'
import type { Bank } from '../helpers/bank.ts'
import { callDoor, createCaller, headerOf, PHONE_ADDRESS, readVerdict, RESOURCE, toDoor } from '../helpers/door.ts'
import { readCounters, STATE } from '../helpers/expectations.ts'
import { type FaultLine, type FaultPlace, startFaultyServer } from '../helpers/fault-line.ts'
import { openWorldOn, type World } from '../helpers/world.ts'

let world: World
let bank: Bank
let faults: FaultLine
let close: () => Promise<void>
beforeAll(async () => {
  const faulty = await startFaultyServer()
  faults = faulty.faults
  close = faulty.close
  world = await openWorldOn(faulty.server)
  bank = await createCaller(world.bank, 'web-tier', 'verification', world.applicationId)
})
afterAll(() => close())

/** What a phone sent, and what becomes of it. */
interface Sent {
  readonly door: 'code' | 'token'
  readonly body: unknown
  readonly verdict: Readonly<Record<string, unknown>>
  readonly expectUsedOnce: () => Promise<void>
}

/** Loses the database at the first statement of a call, then at the second of another one, as long as there are so many. */
async function atEachStatement(place: FaultPlace, prepare: () => Promise<Sent>): Promise<void> {
  for (let n = 1; n <= STATEMENTS_MAX; n += 1) {
    const { door, body, verdict, expectUsedOnce } = await prepare()
    const key = Buffer.from(random(16)).toString('hex')
    const call = (): Promise<HttpReply> => callDoor(bank, door, body, key)
    faults.arm(n, place)
    const first = await call()
    const isLost = faults.disarm()
    expect([n, isLost, first.status]).toEqual([n, isLost, isLost ? 503 : 200])
    const again = readVerdict(await call())
    expect(again).toMatchObject(verdict)
    expect(readVerdict(await call())).toEqual(again)
    await expectUsedOnce()
    if (!isLost) {
      // A door has a read and a write, at least.
      expect(n).toBeGreaterThan(2)
      return
    }
  }
  throw new Error('a door with so many statements')
}
const STATEMENTS_MAX = 10

describe.each(['before', 'after'] as const)('the database is lost %s', (place) => {
  test('a statement on a right code: it is right, once', async () => {
    await atEachStatement(place, async () => {
      const { phone } = await world.activePhone('3.3')
      const body = toDoor(phone.prepareSigned({ path: '/bank/transfer', resourceId: RESOURCE, body: '{}' }))
      return {
        door: 'code',
        body,
        verdict: { isValid: true, remainingAttempts: 5 },
        expectUsedOnce: async () => {
          expect(readVerdict(await callDoor(bank, 'code', body))).toMatchObject({ isValid: false, reason: 'CODE_WRONG' })
          expect(await readCounters(phone)).toEqual({ state: STATE.ACTIVE, ctrByte: 1, failedAttempts: 0 })
        },
      }
    })
  })

  test('a statement on a wrong PIN: it is counted once', async () => {
    await atEachStatement(place, async () => {
      const { phone } = await world.activePhone('3.3')
      const wrongKeys = { knowledge: random(16) }
      return {
        door: 'code',
        body: toDoor(phone.prepareSigned({ path: '/bank/transfer', resourceId: RESOURCE, body: '{}', wrongKeys })),
        verdict: { isValid: false, reason: 'CODE_WRONG', remainingAttempts: 4 },
        expectUsedOnce: async () =>
          expect(await readCounters(phone)).toEqual({ state: STATE.ACTIVE, ctrByte: 0, failedAttempts: 1 }),
      }
    })
  })

  test('a statement on a token: it is right, once', async () => {
    await atEachStatement(place, async () => {
      const { phone } = await world.activePhone('3.3')
      const token = headerOf(await phone.prepareDetail(await phone.createToken()), 'Token')
      const body = { token, client: { address: PHONE_ADDRESS } }
      return {
        door: 'token',
        body,
        verdict: { isValid: true },
        expectUsedOnce: async () =>
          expect(readVerdict(await callDoor(bank, 'token', body))).toMatchObject({ isValid: false, reason: 'USED' }),
      }
    })
  })
})
