// A statement that fails says in the log on whose road it was: its stack names the stages, the flow, and the endpoint.
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type HttpRequest, send } from '../../../phone/http.ts'
import type { VirtualPhone } from '../../../phone/v3/virtual-phone.ts'
import type { TestServer } from '../../helpers/app.ts'
import { startServerWithWorld, type World } from '../../helpers/world.ts'

let server: TestServer
let world: World
beforeAll(async () => {
  ;({ server, world } = await startServerWithWorld({}))
})
afterAll(() => world.close())

interface Failure {
  readonly endpoint: string
  /** The table that is missing. */
  readonly table: string
  readonly prepare: (phone: VirtualPhone) => Promise<HttpRequest> | HttpRequest
  /** Function and file of the frames, from the statement to the endpoint. */
  readonly road: readonly (readonly [name: string, file: string])[]
}

const FAILURES: readonly Failure[] = [
  {
    endpoint: 'signature/validate, the write of the code',
    table: 'audit_pending',
    prepare: (phone) => phone.prepareValidation(),
    road: [
      ['storeAll', 'storage/request/authentication.ts'],
      ['storeDecisionAlone', 'channel/stages/decision.ts'],
      ['checkCode', 'channel/stages/code.ts'],
      ['authenticate', 'channel/stages/code.ts'],
      ['signature/validate', 'channel/flow/signed.ts'],
    ],
  },
  {
    endpoint: 'token/create, the read of the envelope',
    table: 'token',
    prepare: (phone) => phone.prepareTokenCreate(),
    road: [
      ['lookUpAll', 'storage/request/lookup.ts'],
      ['findEnvelopeOf', 'channel/stages/find-proofs.ts'],
      ['token/create', 'channel/flow/signed-then-opened.ts'],
    ],
  },
  {
    endpoint: 'user/info, a read of the handler',
    table: 'user_claims',
    prepare: (phone) => phone.prepareUserInfo(),
    road: [
      ['findUserClaims', 'storage/user/claims.ts'],
      ['handle', 'api/device/user/info.ts'],
      ['user/info', 'channel/flow/opened.ts'],
    ],
  },
]

test.each(FAILURES)('$endpoint', async ({ table, prepare, road }) => {
  const { phone } = await world.activePhone('3.3')
  const request = await prepare(phone)
  const { db } = server.context
  await sql`alter table ${sql.table(table)} rename to missing`.execute(db)
  const before = server.log().length
  expect((await send(world.url, request)).status).toBe(500)
  await sql`alter table missing rename to ${sql.table(table)}`.execute(db)
  const [stack = ''] = server
    .log()
    .slice(before)
    .split('\n')
    .flatMap((line) => (line.includes('"stack"') ? [String(JSON.parse(line).err.stack)] : []))
  const frames = stack.split('\n')
  const places = road.map(([name, file]) =>
    frames.findIndex((frame) => / (?:Object\.)?(\S+) \(/.exec(frame)?.[1] === name && frame.includes(`/src/${file}:`)),
  )
  expect(places, stack).not.toContain(-1)
  expect(places, stack).toEqual(places.toSorted((one, other) => one - other))
})
