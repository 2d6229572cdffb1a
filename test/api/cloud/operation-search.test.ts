// GET /admin/applications/{id}/operations: pages of the search (cloud §10).
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { TestServer } from '../../helpers/app.ts'
import { expectError } from '../../helpers/expectations.ts'
import { findByNamePart, type Place } from '../../../src/storage/database/name-part.ts'
import { CREATED_AT, endOperation, insertOperation } from '../../helpers/operations.ts'
import { expectOk, startServerWithWorld, type World } from '../../helpers/world.ts'

interface Page {
  readonly operations: readonly { readonly operationId: string; readonly timestampCreated: number }[]
  readonly nextCursor?: string
}

let server: TestServer
let world: World
const created: string[] = []
beforeAll(async () => {
  ;({ server, world } = await startServerWithWorld({}))
  // All of one millisecond, but for the last two.
  for (let i = 0; i < 9; i += 1)
    created.push(
      await insertOperation(server.context.db, { applicationId: world.applicationId, userId: i % 3 === 0 ? 'bob' : 'alice' }),
    )
  await sql`update operation set created_at = created_at + interval '1 millisecond' where operation_id = ${created[7]}`.execute(
    server.context.db,
  )
  await sql`update operation set created_at = created_at - interval '1 day' where operation_id = ${created[8]}`.execute(
    server.context.db,
  )
  await endOperation(server.context.db, created[1] ?? '', 'APPROVED')
})
afterAll(() => world.close())

const call = (query: string) => world.bank.call('GET', `/admin/applications/${world.applicationId}/operations${query}`)
const list = async (query = '') => expectOk(await call(query)).json as Page
const idsOf = async (query = '') => (await list(query)).operations.map(({ operationId }) => operationId)

/** The ids of all pages, and how many each had. */
async function readAll(query: string): Promise<{ ids: string[]; sizes: number[] }> {
  const ids: string[] = []
  const sizes: number[] = []
  for (let cursor: string | undefined = ''; cursor !== undefined; ) {
    const page: Page = await list(`${query}${cursor && `&cursor=${cursor}`}`)
    ids.push(...page.operations.map(({ operationId }) => operationId))
    sizes.push(page.operations.length)
    cursor = page.nextCursor
  }
  return { ids, sizes }
}

test.each([
  [1, [1, 1, 1, 1, 1, 1, 1, 1, 1]],
  [2, [2, 2, 2, 2, 1]],
  [3, [3, 3, 3]],
  [4, [4, 4, 1]],
  [9, [9]],
  [1000, [9]],
])('pages of %i lead through all of them once, also within one millisecond', async (limit, sizes) => {
  const all = await idsOf()
  expect(all.toSorted()).toEqual(created.toSorted())
  expect([all[0], all[8]]).toEqual([created[7], created[8]])
  expect(await readAll(`?limit=${limit}`)).toEqual({ ids: all, sizes })
})

test.each(['userId=alice', 'userId=bob', 'status=PENDING', 'status=APPROVED', 'status=PENDING&userId=bob'])(
  'they do so with %s, too',
  async (filter) => {
    expect((await readAll(`?limit=1&${filter}`)).ids).toEqual(await idsOf(`?${filter}`))
  },
)

test('users are found by the beginning of their name who have or had a registration', async () => {
  for (const userId of ['alice', 'ALICIA']) expectOk(await world.bank.register(userId))
  const other = await insertOperation(server.context.db, { applicationId: world.applicationId, userId: 'ALICIA' })
  const alices = await idsOf('?userId=alice')
  expect((await idsOf('?userIdPrefix=Ali')).toSorted()).toEqual([...alices, other].toSorted())
  expect((await readAll('?userIdPrefix=aLI&limit=2')).ids).toEqual(await idsOf('?userIdPrefix=ali'))
  expect(await idsOf('?userIdPrefix=alic&status=APPROVED')).toEqual(alices.filter((id) => id === created[1]))
  // Nobody of that name was ever registered.
  expect(await idsOf('?userIdPrefix=bob')).toEqual([])
  expect(await idsOf('?userIdPrefix=lice')).toEqual([])
  await sql`delete from operation where operation_id = ${other}`.execute(server.context.db)
})

test('users are found by a part of their name', async () => {
  expect(await idsOf('?userIdPart=LIC')).toEqual(await idsOf('?userId=alice'))
  expect(await idsOf('?userIdPart=lic&status=PENDING')).toEqual(await idsOf('?userId=alice&status=PENDING'))
  expect((await readAll('?userIdPart=o&limit=1')).ids).toEqual(await idsOf('?userId=bob'))
  expect(await idsOf('?userIdPart=alicia')).toEqual([])
})

test.each([1, 2, 3, 8, 9, 10])(
  'a part of a name is looked for in %i of them at a time, and all of them are looked at',
  async (lookedAtMax) => {
    const { db } = server.context
    const found: string[] = []
    let after: Place | undefined
    let stretches = 0
    do {
      const conditions = [
        sql`application_id = ${world.applicationId}`,
        ...(after === undefined ? [] : [sql`(created_at, operation_id) < (${after.createdAt}, ${after.id})`]),
      ]
      const list = { table: 'operation', id: 'operation_id', conditions } as const
      const { ids, next } = await findByNamePart(db, list, 'BO', 2, lookedAtMax)
      found.push(...ids)
      stretches += 1
      after = next
    } while (after !== undefined)
    expect(found).toEqual(await idsOf('?userId=bob'))
    expect(stretches).toBe({ 1: 10, 2: 5, 3: 4 }[lookedAtMax] ?? 2)
  },
)

test('a page is the same when newer ones were created meanwhile, and when one of them has ended', async () => {
  const { nextCursor = '' } = await list('?limit=2')
  const before = await idsOf(`?limit=3&cursor=${nextCursor}`)
  const newer = await insertOperation(server.context.db, { applicationId: world.applicationId })
  await sql`update operation set created_at = ${new Date(CREATED_AT + 5)} where operation_id = ${newer}`.execute(
    server.context.db,
  )
  await endOperation(server.context.db, before[0] ?? '', 'CANCELED')
  expect(await idsOf(`?limit=3&cursor=${nextCursor}`)).toEqual(before)
  expect((await idsOf())[0]).toBe(newer)
})

test('time and id of the last row lead on, as callers of before know them', async () => {
  const [first] = (await list()).operations
  const place = `beforeTimestamp=${first?.timestampCreated}&beforeOperationId=${first?.operationId.toUpperCase()}`
  expect(await idsOf(`?${place}`)).toEqual((await idsOf()).slice(1))
})

describe('refused is', () => {
  const id = '3f2504e0-4f89-41d3-9a0c-0305e82c3301'
  test.each([
    'cursor=',
    'cursor=x',
    'cursor=1',
    `cursor=_${id}`,
    `cursor=1_${id}x`,
    `cursor=1_${id.toUpperCase()}`,
    `cursor=-1_${id}`,
    `cursor=1.5_${id}`,
    `cursor=1e3_${id}`,
    `cursor=999999999999999_${id}`,
    `cursor=1_${id}&cursor=2_${id}`,
    'cursor=%00',
    `cursor=1_${id}%00`,
    'beforeTimestamp=1',
    `beforeOperationId=${id}`,
    `cursor=1_${id}&beforeTimestamp=1&beforeOperationId=${id}`,
    `cursor=1_${id}&beforeTimestamp=1`,
    `cursor=1_${id}&beforeOperationId=${id}`,
  ])('%s', async (query) => {
    expectError(await call(`?${query}`), 400, 'ERROR_REQUEST')
  })

  test('but not a cursor of the right form, wherever it leads', async () => {
    expect(await idsOf(`?cursor=0_${id}`)).toEqual([])
    expect(await idsOf(`?cursor=99999999999999_${id}`)).toEqual(await idsOf())
    expect(await list(`?cursor=0_${'-'.repeat(36)}`)).toEqual({ operations: [] })
  })
})
