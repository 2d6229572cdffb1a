// Registrations and temporary keys of one moment share their statements, and changes of state come beside each other: what one lacks harms no other
// (docs/decisions/0003-shared-trips.md).
import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createRegistration } from '../../src/domain/activation/registration.ts'
import { changeState } from '../../src/storage/activation/change.ts'
import { findRegistrations } from '../../src/storage/activation/find.ts'
import { inTransaction } from '../../src/storage/database/database.ts'
import { insertTemporaryKey } from '../../src/storage/application/temporary-keys.ts'
import { COUNT_WAITING, serverUrl, startTestServer, type TestServer } from '../helpers/app.ts'
import { startCountedServer } from '../helpers/statements.ts'
import { expectOk, openWorld, type World } from '../helpers/world.ts'

let server: TestServer
let world: World
beforeAll(async () => {
  server = await startTestServer()
  world = await openWorldOn(server)
})
afterAll(() => server.close())

const openWorldOn = (on: TestServer): Promise<World> =>
  openWorld({
    urls: [on.url],
    admin: `${on.admin.user}:${on.admin.password}`,
    advance: () => undefined,
    close: () => on.close(),
  })

const newUsers = (count: number): string[] => Array.from({ length: count }, () => `user-${randomUUID()}`)

/** Its fulfilled value, or the code of the error. */
const outcomeOf = (result: PromiseSettledResult<unknown>): unknown =>
  result.status === 'fulfilled' ? 'CREATED' : (result.reason as { code: unknown }).code

describe('registrations of one moment', () => {
  // Counted on the embedded database.
  test.runIf(serverUrl() === undefined)('share the read, and are written each by itself', async () => {
    const { server: counted, count } = await startCountedServer()
    const { applicationId } = await openWorldOn(counted)
    const register = () =>
      Promise.all(newUsers(5).map((userId) => createRegistration(counted.context, { applicationId, userId })))
    expect((await count(register)).statements).toMatchObject({ reads: 1, writes: 5, transactions: 0 })
    await counted.close()
  })

  // The embedded database has one session: there nobody holds a lock beside others.
  test.runIf(serverUrl() !== undefined)('wait for no other that waits for a lock', async () => {
    const { applicationId } = world
    const [held = '', free = ''] = newUsers(2)
    const holds = Promise.withResolvers<void>()
    const isHeld = Promise.withResolvers<void>()
    const holding = inTransaction(server.context.db, async (db) => {
      await createRegistration({ ...server.context, db }, { applicationId, userId: held })
      isHeld.resolve()
      await holds.promise
    })
    await isHeld.promise
    const waiting = createRegistration(server.context, { applicationId, userId: held }).catch(
      (error: { code: string }) => error.code,
    )
    try {
      await expect.poll(async () => (await sql.raw(COUNT_WAITING).execute(server.context.db)).rows).toEqual([{ waiting: 1 }])
      expect(await createRegistration(server.context, { applicationId, userId: free })).toBeDefined()
    } finally {
      holds.resolve()
      await holding
    }
    expect(await waiting).toBe('REGISTRATION_EXISTS')
  })

  test('of one user are refused but for one, and those of others are made', async () => {
    const { applicationId } = world
    const [same = '', ...others] = newUsers(4)
    const settled = await Promise.allSettled(
      [same, ...others, same, same].map((userId) => createRegistration(server.context, { applicationId, userId })),
    )
    const outcomes = settled.map(outcomeOf)
    expect(outcomes.slice(1, 4)).toEqual(['CREATED', 'CREATED', 'CREATED'])
    expect([outcomes[0], ...outcomes.slice(4)].toSorted()).toEqual(['CREATED', 'REGISTRATION_EXISTS', 'REGISTRATION_EXISTS'])
    for (const userId of [same, ...others]) {
      const audited = expectOk(await world.bank.call('GET', `/audit/log?userId=${userId}`)).json
      expect(JSON.stringify(audited).match(/registration_created/g)).toHaveLength(1)
    }
  })

  test('of an application that is not there are told so, beside others', async () => {
    const owners = [
      ...newUsers(2).map((userId) => ({ applicationId: world.applicationId, userId })),
      { applicationId: 'none', userId: 'u' },
    ]
    const created = await Promise.all(owners.map((owner) => createRegistration(server.context, owner)))
    expect(created.map((one) => one !== undefined)).toEqual([true, true, false])
  })
})

test('changes of state of one moment stand or fall by their own row version', async () => {
  const [first = '', second = '', third = ''] = newUsers(3)
  const rows = await Promise.all([first, second, third].map(registered))
  const { applicationId } = world
  const at = new Date(server.context.platform.now())
  const store = ({ activationId, rowVersion, userId }: Registered) => {
    const change = { activationId, rowVersion, from: 'CREATED', to: 'BLOCKED', reason: 'TEST', externalUserId: null, at } as const
    return changeState(server.context.db, change, {
      ...change,
      applicationId,
      userId,
      eventType: 'blocked',
      eventData: '{}',
      occurredAt: at,
    })
  }
  const [one, two, three] = rows as [Registered, Registered, Registered]
  // The first twice: only one of the two may hear that it was stored.
  const stored = await Promise.all([one, { ...two, rowVersion: 7 }, three, one].map(store))
  expect([stored[0], stored[3]].toSorted()).toEqual([false, true])
  expect(stored.slice(1, 3)).toEqual([false, true])
  expect((await Promise.all([first, second, third].map(registrationOf))).map((row) => row?.state)).toEqual([
    'BLOCKED',
    'CREATED',
    'BLOCKED',
  ])
})

test('a temporary key that has no activation is refused beside others', async () => {
  const { applicationKey } = world.app
  const key = (activationId: string | null) => ({
    temporaryKeyId: randomUUID(),
    applicationKey,
    activationId,
    privateKey: new Uint8Array([1]),
    expiresAt: new Date(server.context.platform.now() + 60_000),
  })
  const stored = [key(null), key('no-such-activation'), key(null)].map((each) => insertTemporaryKey(server.context.db, each))
  expect(await Promise.all(stored)).toEqual([true, false, true])
})

test('a transaction shares with nobody, and nothing of it is left when it fails', async () => {
  const [within = '', outside = ''] = newUsers(2)
  const { applicationId } = world
  const failing = inTransaction(server.context.db, async (db) => {
    await createRegistration({ ...server.context, db }, { applicationId, userId: within })
    throw new RangeError('undo')
  })
  await Promise.all([
    expect(failing).rejects.toThrow('undo'),
    createRegistration(server.context, { applicationId, userId: outside }),
  ])
  expect(await registrationOf(within)).toBeUndefined()
  expect(await registrationOf(outside)).toBeDefined()
})

interface Registered {
  readonly activationId: string
  readonly rowVersion: number
  readonly userId: string
}

const registrationOf = async (userId: string) => {
  const rows = await findRegistrations(server.context.db, world.applicationId, userId, new Date(server.context.platform.now()))
  return rows[0]
}

async function registered(userId: string): Promise<Registered> {
  await createRegistration(server.context, { applicationId: world.applicationId, userId })
  const row = await registrationOf(userId)
  if (row === undefined) throw new TypeError('no registration')
  return { activationId: row.activationId, rowVersion: row.rowVersion, userId }
}
