// A phone whose last code was accepted a moment ago is remembered; nothing it may no longer do is accepted because of that (v3 §10.5).
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { sql } from 'kysely'
import { fenceActivations } from '../../../src/domain/activation/fence.ts'
import { places } from '../../../src/domain/secrets/secrets.ts'
import { v3 } from '../../../src/protocol/v3/index.ts'
import { serverUrl, type TestServer } from '../../helpers/app.ts'
import { expectRefused, readCounters, STATE } from '../../helpers/expectations.ts'
import { random } from '../../../phone/v3/crypto.ts'
import { PHONE_VERSIONS } from '../../helpers/phone-versions.ts'
import { expectOk, startServerWithWorld, startSharedWorld, startWorld, type World } from '../../helpers/world.ts'

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())

describe.each(PHONE_VERSIONS)('a remembered phone in %s', (version) => {
  const remembered = async (target: World = world) => {
    const bound = await target.activePhone(version)
    for (let i = 0; i < 2; i += 1) await bound.phone.exchange(bound.phone.prepareValidation())
    return bound
  }

  test('goes on after codes that never arrived, wrong codes and possession alone', async () => {
    const { phone } = await remembered()
    phone.skip(3)
    await phone.exchange(phone.prepareValidation())
    expectRefused(await phone.send(phone.prepareValidation({ wrongKeys: { knowledge: random(16) } })), 'signature')
    const wrong = phone.prepareValidation({ body: 'signed' })
    expectRefused(await phone.send({ ...wrong, body: Buffer.from('sent') }), 'signature')
    await phone.exchange(phone.prepareValidation({ factors: 'possession' }))
    expect(await readCounters(phone)).toMatchObject({ state: STATE.ACTIVE, failedAttempts: 1 })
    await phone.exchange(phone.prepareValidation())
    expect(await readCounters(phone)).toMatchObject({ state: STATE.ACTIVE, failedAttempts: 0 })
  })

  test('has its envelopes opened', async () => {
    const { phone } = await remembered()
    const token = await phone.createToken()
    await phone.exchange(await phone.prepareDetail(token))
  })

  test('is refused once it is blocked or removed, and passes when it is unblocked', async () => {
    const { phone, userId } = await remembered()
    expectOk(await world.bank.change(userId, 'BLOCK'))
    expectRefused(await phone.send(phone.prepareValidation()), 'signature')
    expectOk(await world.bank.change(userId, 'UNBLOCK'))
    await phone.exchange(phone.prepareValidation())
    expectOk(await world.bank.remove(userId))
    expectRefused(await phone.send(phone.prepareValidation()), 'signature')
  })

  test('is refused while the version of its app is switched off', async () => {
    const { phone } = await remembered()
    const path = `/admin/applications/${world.applicationId}/versions/default`
    expectOk(await world.bank.call('PATCH', path, { isSupported: false }))
    expectRefused(await phone.send(phone.prepareValidation()), 'signature')
    expectOk(await world.bank.call('PATCH', path, { isSupported: true }))
    await phone.exchange(phone.prepareValidation())
  })

  test('is not believed twice: its last request is refused at once', async () => {
    const { phone } = await remembered()
    const request = phone.prepareValidation()
    const replies = await Promise.all([phone.send(request), phone.send(request), phone.send(request)])
    expect(replies.map(({ status }) => status).toSorted()).toEqual([200, 401, 401])
    expectRefused(await phone.send(request), 'signature')
  })

  test('has a wrong code compared as often as any other phone, and as nobody', async () => {
    const compared = vi.spyOn(v3, 'verifyAuthenticationCode')
    const countFor = async ({ phone }: Awaited<ReturnType<typeof remembered>>, activationId = phone.state.activationId) => {
      const request = phone.prepareValidation({ body: 'signed' })
      const headers = Object.fromEntries(
        Object.entries(request.headers).map(([name, text]) => [name, text.replace(phone.state.activationId, activationId)]),
      )
      compared.mockClear()
      expectRefused(await phone.send({ ...request, headers, body: Buffer.from('sent') }), 'signature')
      return compared.mock.calls.map(([, , , , lookAhead]) => lookAhead).toSorted()
    }
    try {
      const ofRemembered = await countFor(await remembered())
      expect(ofRemembered).toHaveLength(2)
      expect(await countFor(await world.activePhone(version))).toEqual(ofRemembered)
      expect(await countFor(await world.activePhone(version), randomUUID())).toEqual(ofRemembered)
    } finally {
      compared.mockRestore()
    }
  })

  test('takes as many statements after a block, whether its user guesses the PIN or knows it', async () => {
    const { server, world: own } = await startServerWithWorld({})
    const { authenticationStore, db } = server.context
    const calls = [vi.spyOn(authenticationStore, 'find'), vi.spyOn(authenticationStore, 'store')]
    const statements = vi.spyOn(db, 'executeQuery')
    const countOf = async (options: Parameters<Awaited<ReturnType<typeof remembered>>['phone']['prepareValidation']>[0]) => {
      const { phone, userId } = await remembered(own)
      expectOk(await own.bank.change(userId, 'BLOCK'))
      for (const of of [...calls, statements]) of.mockClear()
      expectRefused(await phone.send(phone.prepareValidation(options)), 'signature')
      // The failures that processes share are written beside the requests, whenever that is.
      const ofRequest = statements.mock.calls.filter(([query]) => !('sql' in query && query.sql.includes('into failure_count')))
      return [...calls.map((of) => of.mock.calls.length), ofRequest.length]
    }
    try {
      const ofGuess = await countOf({ wrongKeys: { knowledge: random(16) } })
      expect(ofGuess.slice(0, 2)).toEqual([1, 1])
      expect(await countOf({})).toEqual(ofGuess)
    } finally {
      await own.close()
    }
  })

  test.skipIf(serverUrl() === undefined)('passes on every process that remembers an older counter, and once only', async () => {
    const shared = await startSharedWorld()
    try {
      const { phone } = await remembered(shared)
      for (let i = 0; i < 6; i += 1) {
        const request = phone.prepareValidation()
        const [here = '', there = ''] = i % 2 ? shared.urls : shared.urls.toReversed()
        expect((await phone.send(request, here)).status).toBe(200)
        expectRefused(await phone.send(request, there), 'signature')
        // The wrong code was counted; the next right one resets the count.
      }
    } finally {
      await shared.close()
    }
  })
})

describe('a row that is put back in the database by hand', () => {
  test.each([
    ['its counter', ['ctr_data', 'counter']],
    ['its counter and row version', ['ctr_data', 'counter', 'row_version', 'failed_attempts', 'last_used_at']],
    ['its sealed counter alone', ['ctr_data']],
  ])('makes no used code good again: %s', async (_, columns) => {
    const { server, world: own } = await startServerWithWorld({})
    try {
      const { db } = server.context
      const { phone } = await own.activePhone('3.3')
      await phone.exchange(phone.prepareValidation())
      await sql`create table put_back as select * from activation`.execute(db)
      const used = [phone.prepareValidation(), phone.prepareValidation(), phone.prepareValidation()]
      for (const request of used) expectOk(await phone.send(request))
      const assignments = sql.raw(columns.map((name) => `${name} = p.${name}`).join(', '))
      await sql`update activation a set ${assignments} from put_back p where p.activation_id = a.activation_id`.execute(db)
      for (const request of used) expectRefused(await phone.send(request), 'signature')
      expect(server.log()).toContain('the counter of an activation went back in the database')
      // The phone goes on, and the row with it.
      expectOk(await phone.send(phone.prepareValidation()))
      for (const request of used) expectRefused(await phone.send(request), 'signature')
      expectOk(await phone.send(phone.prepareValidation()))
    } finally {
      await own.close()
    }
  })
})

describe('a failover that lost the last code, under a process that remembers it', () => {
  // The row is changed once since, and so has the row version again that the process remembers.
  test.each([
    ['the bank blocks the phone', (_: TestServer, own: World, userId: string) => own.bank.change(userId, 'BLOCK').then(expectOk)],
    [
      'the counters are fenced',
      ({ context }: TestServer) => {
        const fence = { since: new Date(context.platform.now()), steps: 19, blocks: false }
        return fenceActivations({ ...context, advanceCounter: (_version, ctrData) => v3.advanceCounter(ctrData) }, fence)
      },
    ],
    [
      // Of the codes that the database has not lost, it accepts the one after the lost one.
      'another process accepts a code',
      async ({ context: { db, recordKeys } }: TestServer) => {
        const { activationId, ctrData } = await db
          .selectFrom('activation')
          .select(['activation_id as activationId', 'ctr_data as ctrData'])
          .executeTakeFirstOrThrow()
        const place = places.ctrData(activationId)
        const accepted = v3.advanceCounter(v3.advanceCounter(recordKeys.open(place, ctrData ?? Buffer.alloc(0))))
        const row = { ctr_data: recordKeys.seal(place, accepted), counter: sql<number>`counter + 2` }
        await db
          .updateTable('activation')
          .set({ ...row, row_version: sql<number>`row_version + 1` })
          .execute()
      },
    ],
  ])('lets nobody pass when %s', async (_, change) => {
    const { server, world: own } = await startServerWithWorld({})
    try {
      const { db } = server.context
      const { phone, userId } = await own.activePhone('3.3')
      await phone.exchange(phone.prepareValidation())
      await sql`create table put_back as select * from activation`.execute(db)
      await phone.exchange(phone.prepareValidation())
      await sql`update activation a set ctr_data = p.ctr_data, counter = p.counter, row_version = p.row_version
        from put_back p where p.activation_id = a.activation_id`.execute(db)
      await change(server, own, userId)
      const read = () => db.selectFrom('activation').select(['state', 'counter']).executeTakeFirstOrThrow()
      const before = await read()
      expectRefused(await phone.send(phone.prepareValidation()), 'signature')
      expect(await read()).toEqual(before)
    } finally {
      await own.close()
    }
  })
})
