// activation/create looks into an envelope with keys that the process remembers, and decides by what it reads then (decision 0012).
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { send } from '../../../phone/http.ts'
import type { Prepared } from '../../../phone/v3/state.ts'
import { type CountedServer, startCountedServer } from '../../helpers/statements.ts'
import { openWorldOn, type World } from '../../helpers/world.ts'
import { openPhonesV4, type PhonesV4 } from '../../helpers/world-v4.ts'

let counted: CountedServer
let world: World
let v4: PhonesV4
beforeAll(async () => {
  counted = await startCountedServer()
  world = await openWorldOn(counted.server)
  v4 = await openPhonesV4(world)
})
afterAll(() => world.close())

/** As another process would, of which this one hears nothing. */
const change = (statement: string) => sql.raw(statement).execute(counted.server.context.db)

const GENERATIONS = [
  ['3.3', async (code: string) => world.newPhone('3.3').prepareActivation(code)],
  ['4.0', async (code: string) => v4.newPhone('EC_P384').prepareActivation(code)],
] as const

const sendCounted = async (prepared: Prepared<unknown>) => {
  const { result, statements } = await counted.count(() => send(world.url, prepared))
  const { reads, writes } = statements
  return { status: result.status, reads, writes }
}

test.each(GENERATIONS)(
  'a version of %s that was switched off meanwhile binds no phone, and one that is on again does',
  async (_, prepare) => {
    const prepared = await prepare((await world.register()).code)
    await change('update application_version set is_supported = false')
    expect(await sendCounted(prepared)).toEqual({ status: 400, reads: 1, writes: 0 })
    await change('update application_version set is_supported = true')
    expect(await sendCounted(prepared)).toEqual({ status: 200, reads: 1, writes: 1 })
    expect((await sendCounted(prepared)).status).toBe(400)
  },
)

test.each(GENERATIONS)('a temporary key of %s that is no longer there opens nothing', async (_, prepare) => {
  const prepared = await prepare((await world.register()).code)
  await change('delete from temporary_key')
  expect(await sendCounted(prepared)).toEqual({ status: 400, reads: 1, writes: 0 })
})

test.each(GENERATIONS)('an application whose lowest version was raised above %s meanwhile refuses', async (_, prepare) => {
  const prepared = await prepare((await world.register()).code)
  await change("update application set minimum_version = '9.9'")
  expect((await sendCounted(prepared)).status).toBe(400)
  await change('update application set minimum_version = null')
})

test.each(GENERATIONS)('a code that nobody waits for takes as many statements as a right one in %s', async (_, prepare) => {
  const prepared = await prepare('AAAAA-AAAAA-AAAAA-AAAAA')
  expect(await sendCounted(prepared)).toEqual({ status: 400, reads: 1, writes: 1 })
})
