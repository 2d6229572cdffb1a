// Codes without connection, after a failover that lost their acceptance: the process that accepted one remembers its counter
// (docs/decisions/0009-remembered-phones.md).
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { member, sendJson } from '../../../phone/http.ts'
import type { OfflineCovered } from '../../../phone/offline-text.ts'
import { b64, random } from '../../../phone/v3/crypto.ts'
import { type Bank, basicAuthorization } from '../../helpers/bank.ts'
import { createCaller, readVerdict } from '../../helpers/door.ts'
import { type OperationWorld, startOperationWorld } from '../../helpers/operation-world.ts'
import { askReference } from '../../helpers/reference.ts'
import { expectOk } from '../../helpers/world.ts'
import { openPhonesV4, type PhonesV4 } from '../../helpers/world-v4.ts'

let world: OperationWorld
let v4: PhonesV4
let bank: Bank
beforeAll(async () => {
  world = await startOperationWorld({ env: { PAWL_REFERENCE_API: 'true' }, worksInBackground: false })
  v4 = await openPhonesV4(world)
  bank = await createCaller(world.bank, 'branch', 'verification', world.applicationId)
})
afterAll(() => world.close())

interface Answering {
  readonly state: { readonly activationId: string }
  readonly answerOffline: (covered: OfflineCovered) => string
}

/** A code of the phone, and whether it is accepted when it is sent once more. */
type Typed = (phone: Answering, userId: string) => Promise<() => Promise<boolean>>

const text = (value: string): string => b64(Buffer.from(value))
const APPROVAL = '/operation/authorize/offline'

const WAYS: readonly (readonly [string, Typed])[] = [
  [
    'for a challenge of the bank',
    async ({ state: { activationId }, answerOffline }) => {
      const post = (path: string, body: object) =>
        sendJson(bank.url, 'POST', `/offline/${path}`, body, basicAuthorization(bank.credential))
      const asked = { activationId, data: 'Hand out 200 EUR?', resourceId: '/cash', body: text('200 EUR') }
      const { challengeId, nonce } = readVerdict(await post('challenges', asked)) as Record<'challengeId' | 'nonce', string>
      const otp = answerOffline({ resourceId: '/cash', body: '200 EUR', nonce })
      return async () => readVerdict(await post('verification', { challengeId, otp }))['isValid'] === true
    },
  ],
  [
    'over the API of the reference',
    async ({ state: { activationId }, answerOffline }) => {
      const nonce = b64(random(16))
      const signature = answerOffline({ resourceId: '/cash', body: '200 EUR', nonce })
      const data = ['POST', text('/cash'), nonce, text('200 EUR')].join('&')
      const asked = { activationId, data, signature }
      return async () => (await askReference(bank, 'v3', 'signature/offline/verify', asked))['signatureValid'] === true
    },
  ],
  [
    'that approves an operation',
    async ({ answerOffline }, userId) => {
      const { id, data } = await world.operation(userId)
      const nonce = String(member(expectOk(await world.bank.offlineQr(id)).json, 'nonce'))
      const otp = answerOffline({ resourceId: APPROVAL, body: `${id}&${data}`, nonce })
      return async () => (await world.bank.offlineOtp(id, otp, nonce)).status === 200
    },
  ],
]

/** Notes what a code changes. The returned function puts it back. */
async function noteState({ state: { activationId } }: Answering): Promise<() => Promise<void>> {
  const { db } = world
  const columns = ['ctr_data', 'counter', 'row_version'] as const
  const row = await db
    .selectFrom('activation')
    .select(columns)
    .where('activation_id', '=', activationId)
    .executeTakeFirstOrThrow()
  return async () => {
    await db.updateTable('activation').set(row).where('activation_id', '=', activationId).execute()
    await sql`delete from unique_value`.execute(db)
    await sql`update operation set status = 'PENDING', finalized_at = null where status = 'APPROVED'`.execute(db)
  }
}

describe.each(['3.3', 'EC_P384'] as const)('a code without connection of %s', (kind) => {
  const bind = () => (kind === '3.3' ? world.activePhone(kind) : v4.activePhone(kind))

  describe.each(WAYS)('%s', (_, type) => {
    test.each([false, true])(
      'is not good again when its acceptance was lost; codes with connection before: %s',
      async (isOnline) => {
        const { phone, userId } = await bind()
        if (isOnline) await phone.exchange(phone.prepareValidation())
        const send = await type(phone, userId)
        const lose = await noteState(phone)
        expect(await send()).toBe(true)
        await lose()
        expect(await send()).toBe(false)
        // The phone goes on, with and without connection, and the row with it.
        await phone.exchange(phone.prepareValidation())
        expect(await send()).toBe(false)
        expect(await (await type(phone, userId))()).toBe(true)
      },
    )
  })
})
