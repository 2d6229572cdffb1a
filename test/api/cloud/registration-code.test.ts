// An activation code that is taken already: another one is made, also within the transaction of an administrator's change.
import { expect, test } from 'vitest'
import { createRegistration } from '../../../src/domain/activation/registration.ts'
import { inTransaction } from '../../../src/storage/database/database.ts'
import { startServerWithWorld } from '../../helpers/world.ts'

test('is replaced, within a transaction and outside', async () => {
  const { server, world } = await startServerWithWorld({})
  const { context } = server
  const owner = (userId: string) => ({ applicationId: world.applicationId, userId })
  // The codes of one registration after the other: 10 bytes each.
  const platformOf = (...codes: number[]) => ({
    ...context.platform,
    randomBytes: (length: number) => {
      const code = length === 10 ? codes.shift() : undefined
      return code === undefined ? context.platform.randomBytes(length) : new Uint8Array(10).fill(code)
    },
  })
  const first = await createRegistration({ ...context, platform: platformOf(1) }, owner('first'))
  const second = await createRegistration({ ...context, platform: platformOf(1, 2) }, owner('second'))
  const third = await inTransaction(context.db, (db) =>
    createRegistration({ ...context, db, platform: platformOf(1, 2, 3) }, owner('third')),
  )
  const codes = [first, second, third].map((created) => created?.activationQrCodeData.split('#')[0])
  expect(new Set(codes).size).toBe(3)
  for (const [userId, created] of Object.entries({ first, second, third })) {
    const activationQrCodeData = created?.activationQrCodeData
    expect(activationQrCodeData).toBeDefined()
    expect((await world.bank.view(userId)).json).toEqual({ registration: 'CREATED', activationQrCodeData })
  }
  await world.close()
})
