// Fencing a restored database beside those who write to it (docs/decisions/0016-fence-after-a-restore.md).
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Context } from '../../src/context.ts'
import { type Fenced, fenceActivations } from '../../src/domain/activation/fence.ts'
import { insertTemporaryKey } from '../../src/storage/application/temporary-keys.ts'
import { removeWaiting } from '../../src/storage/activation/fence.ts'
import { inTransaction, type Pool } from '../../src/storage/database/database.ts'
import { COUNT_WAITING, serverUrl } from '../helpers/app.ts'
import { type OperationWorld, startOperationWorld } from '../helpers/operation-world.ts'

let world: OperationWorld
beforeAll(async () => {
  world = await startOperationWorld({ worksInBackground: false })
})
afterAll(() => world.close())

const listWaiting = async (): Promise<string[]> => {
  const rows = await world.db.selectFrom('activation').select('activation_id').where('state', '=', 'CREATED').execute()
  return rows.map((row) => row.activation_id).toSorted()
}
const register = async (users: number): Promise<string[]> => {
  for (let i = 0; i < users; i += 1) await world.register()
  return listWaiting()
}
/** Later than all that a test makes. */
const LATER = new Date(Date.now() + 86_400_000)

test('all that waits is removed, a page at a time', async () => {
  await register(5)
  const removed: number[] = []
  for (let i = 0; i < 3; i += 1) removed.push(await removeWaiting(world.db, LATER, new Date(), 3))
  expect(removed).toEqual([3, 2, 0])
  expect(await listWaiting()).toEqual([])
})

// The embedded database has one session: there nobody waits for another.
describe.runIf(serverUrl() !== undefined)('activations are locked in the order of their ids, as everywhere,', () => {
  const contextOf = (): Context => {
    const [context] = world.contexts
    if (context === undefined) throw new TypeError('a world without a server')
    return context
  }
  const dbOf = (): Pool => contextOf().db
  const countWaiting = async () => (await sql.raw<{ waiting: number }>(COUNT_WAITING).execute(dbOf())).rows[0]?.waiting

  /** While the first is held, `work` waits for it, and holds no other. */
  async function expectOrder<T>([first = '', second = '']: readonly string[], work: () => Promise<T>): Promise<T> {
    let working: Promise<T> | undefined
    await inTransaction(dbOf(), async (tx) => {
      await sql`select from activation where activation_id = ${first} for update`.execute(tx)
      working = work()
      await expect.poll(countWaiting).toBe(1)
      const { rows } = await sql`select from activation where activation_id = ${second} for update skip locked`.execute(tx)
      expect(rows.length).toBe(1)
    })
    if (working === undefined) throw new TypeError('no work')
    return working
  }

  test('by who removes what waits', async () => {
    const ids = await register(2)
    await sql`update activation set expires_at = expires_at - interval '1 second' where activation_id = ${ids[1]}`.execute(dbOf())
    expect(await expectOrder(ids, () => removeWaiting(dbOf(), LATER, new Date(), 10))).toBe(2)
  })

  test('and what others ended while they were waited for hides nothing of what waits behind it', async () => {
    const ids = await register(3)
    const first = sql`(select activation_id from activation where activation_id = any(${ids}::text[]) order by expires_at limit 2)`
    let fencing: Promise<Fenced> | undefined
    await inTransaction(dbOf(), async (tx) => {
      await sql`update activation set state = 'REMOVED', row_version = row_version + 1 where activation_id in ${first}`.execute(
        tx,
      )
      const parts = { ...contextOf(), advanceCounter: () => Buffer.alloc(0) }
      fencing = fenceActivations(parts, { since: LATER, steps: 0, blocks: false }, undefined, 2)
      await expect.poll(countWaiting).toBe(1)
    })
    expect(await fencing).toMatchObject({ removed: 1 })
    expect(await listWaiting()).toEqual([])
  })

  test('by who stores temporary keys of several', async () => {
    const ids = await register(2)
    const { applicationKey } = world.app
    const insert = (temporaryKeyId: string, activationId = '') =>
      insertTemporaryKey(dbOf(), { temporaryKeyId, applicationKey, activationId, privateKey: Buffer.of(1), expiresAt: LATER })
    const both = () => Promise.all([insert('z of the first', ids[0]), insert('a of the second', ids[1])])
    expect(await expectOrder(ids, both)).toEqual([true, true])
  })
})
