// A phone whose code this process accepted is verified without a read (docs/decisions/0009-remembered-phones.md). What a bank is told of it is
// true when its code is accepted, whoever changed it meanwhile (cloud §12.2).
import { randomUUID } from 'node:crypto'
import { type RawBuilder, sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Bank, readApplication } from '../../helpers/bank.ts'
import { createCaller, RESOURCE, verdictOf } from '../../helpers/door.ts'
import { readCounters, STATE } from '../../helpers/expectations.ts'
import { expectOk } from '../../helpers/world.ts'
import { startWorldV4, type WorldV4 } from '../../helpers/world-v4.ts'

let v4: WorldV4
let bank: Bank
let versions = 0
beforeAll(async () => {
  v4 = await startWorldV4()
  bank = await createCaller(v4.world.bank, 'web-tier', 'verification', v4.world.applicationId)
})
afterAll(() => v4.close())

const at = { path: '/bank/transfer', resourceId: RESOURCE, body: 'x' }

const execute = (statement: RawBuilder<unknown>) => statement.execute(v4.server.context.db)

/** A phone of a version of its own, whose last code this process accepted at the door. */
async function rememberedPhone() {
  const { bank: admin, applicationId } = v4.world
  const name = `version-${++versions}`
  expectOk(await admin.call('POST', `/admin/applications/${applicationId}/versions`, { name }))
  const app = readApplication(await admin.call('GET', `/admin/application?id=${applicationId}&version=${name}`))
  const bound = await v4.world.activePhone('3.3')
  const phone = bound.phone.speaking({ app })
  const sign = () => phone.prepareSigned(at)
  expect(await verdictOf(bank, sign())).toMatchObject({
    isValid: true,
    flags: [],
    applicationVersion: name,
    applicationRoles: [],
  })
  return { phone, sign, name, activationId: phone.state.activationId, applicationId }
}
type Remembered = Awaited<ReturnType<typeof rememberedPhone>>

const setFlags = async ({ activationId }: Remembered, ...flags: string[]): Promise<void> =>
  void expectOk(await v4.world.bank.call('PUT', `/admin/activations/${activationId}/flags`, { flags }))
const setRoles = async ({ applicationId }: Remembered, ...roles: string[]): Promise<void> =>
  void expectOk(await v4.world.bank.call('PATCH', `/admin/applications/${applicationId}`, { roles }))

interface Change {
  readonly what: string
  readonly make: (remembered: Remembered) => Promise<unknown>
  readonly told: Readonly<Record<string, unknown>>
  /** For those whom it holds for beside this phone. */
  readonly undo?: (remembered: Remembered) => Promise<unknown>
}

const CHANGES: readonly Change[] = [
  {
    what: 'flags by the cloud API',
    make: (remembered) => setFlags(remembered, 'VERIFICATION_PENDING'),
    told: { isValid: false, reason: 'FLAGS', flags: ['VERIFICATION_PENDING'], remainingAttempts: 5 },
  },
  {
    what: 'flags by SQL',
    make: ({ activationId }) =>
      execute(sql`update activation set flags = 'VERIFICATION_PENDING,VIP' where activation_id = ${activationId}`),
    told: { isValid: false, reason: 'FLAGS', flags: ['VERIFICATION_PENDING', 'VIP'], remainingAttempts: 5 },
  },
  {
    what: 'roles by the cloud API',
    make: (remembered) => setRoles(remembered, 'retail', 'private'),
    told: { isValid: true, applicationRoles: ['retail', 'private'] },
    undo: (remembered) => setRoles(remembered),
  },
  {
    what: 'the name of the version by SQL',
    make: ({ name }) => execute(sql`update application_version set name = ${`renamed-${name}`} where name = ${name}`),
    told: { isValid: true, applicationVersion: expect.stringMatching(/^renamed-/) as unknown },
  },
  {
    what: 'the version, which is switched off',
    make: async ({ applicationId, name }) =>
      expectOk(
        await v4.world.bank.call('PATCH', `/admin/applications/${applicationId}/versions/${name}`, { isSupported: false }),
      ),
    told: { isValid: false, reason: 'VERSION_OFF' },
  },
]

describe.each([
  ['without a key', () => undefined],
  ['with a key', () => randomUUID()],
])('what was changed meanwhile is in the next verdict, %s', (_, newKey) => {
  test.each(CHANGES)('$what', async ({ make, told, undo }) => {
    const remembered = await rememberedPhone()
    await make(remembered)
    try {
      const [request, key] = [remembered.sign(), newKey()]
      const verdict = await verdictOf(bank, request, {}, key)
      expect(verdict).toMatchObject(told)
      // What is kept of it is the same.
      if (key !== undefined && verdict['reason'] !== 'VERSION_OFF')
        expect(await verdictOf(bank, request, {}, key)).toEqual(verdict)
    } finally {
      await undo?.(remembered)
    }
  })

  test('a version that is gone is unknown, and its code moved nothing', async () => {
    const remembered = await rememberedPhone()
    await execute(sql`delete from application_version where name = ${remembered.name}`)
    const request = remembered.sign()
    expect(await verdictOf(bank, request, {}, newKey())).toEqual({ isValid: false, reason: 'UNKNOWN', covered: 'BODY' })
    expect(await readCounters(remembered.phone.speaking({ app: v4.world.app }))).toMatchObject({ ctrByte: 1, failedAttempts: 0 })
  })

  test('flags that change between one code and the next are told with each', async () => {
    const remembered = await rememberedPhone()
    for (let i = 0; i < 6; i += 1) {
      const flags = i % 2 === 0 ? [`FLAG_${i}`] : []
      await setFlags(remembered, ...flags)
      expect(await verdictOf(bank, remembered.sign(), {}, newKey())).toMatchObject({ isValid: true, flags })
    }
  })
})

test('a change by SQL is seen after a code of the own endpoints of pawl, too', async () => {
  const { phone } = await v4.world.activePhone('3.3')
  expectOk(await phone.send(phone.prepareValidation()))
  await execute(sql`update activation set flags = 'VIP' where activation_id = ${phone.state.activationId}`)
  expectOk(await phone.send(phone.prepareValidation()))
  expect(await verdictOf(bank, phone.prepareSigned(at))).toMatchObject({ isValid: true, flags: ['VIP'] })
  expect(await verdictOf(bank, phone.prepareSigned(at))).toMatchObject({ isValid: true, flags: ['VIP'] })
})

test('phones whose codes share a statement are told of by their own flags, with and without keys, beside codes of pawl itself', async () => {
  const phones = await Promise.all(Array.from({ length: 9 }, rememberedPhone))
  const flagsOf = (i: number) => (i % 2 === 0 ? [] : [`FLAG_${i}`])
  for (const [i, { activationId }] of phones.entries())
    await execute(sql`update activation set flags = ${flagsOf(i).join(',')} where activation_id = ${activationId}`)
  const answered = await Promise.all(
    phones.map(async ({ phone, sign }, i) =>
      i % 3 === 0
        ? expectOk(await phone.send(phone.prepareValidation())).status
        : (await verdictOf(bank, sign(), {}, i % 3 === 1 ? randomUUID() : undefined))['flags'],
    ),
  )
  expect(answered).toEqual(phones.map((_, i) => (i % 3 === 0 ? 200 : flagsOf(i))))
})

test('a phone that this process remembers is unknown to another application, and its code stays good', async () => {
  const { phone } = await rememberedPhone()
  expectOk(await v4.world.bank.createApplication('other-bank'))
  const stranger = await createCaller(v4.world.bank, 'stranger', 'verification', 'other-bank')
  const request = phone.prepareSigned(at)
  for (const key of [undefined, randomUUID()])
    expect(await verdictOf(stranger, request, {}, key)).toEqual({ isValid: false, reason: 'UNKNOWN', covered: 'BODY' })
  expect(await readCounters(phone)).toEqual({ state: STATE.ACTIVE, ctrByte: 1, failedAttempts: 0 })
  expect(await verdictOf(bank, request)).toMatchObject({ isValid: true })
})

test('a key that was used takes no other code of a phone that is remembered, and that stays good', async () => {
  const { sign } = await rememberedPhone()
  const [key, first, second] = [randomUUID(), sign(), sign()]
  const verdict = await verdictOf(bank, first, {}, key)
  expect(verdict).toMatchObject({ isValid: true })
  await expect(verdictOf(bank, second, {}, key)).rejects.toThrow('HTTP 400')
  expect(await verdictOf(bank, first, {}, key)).toEqual(verdict)
  expect(await verdictOf(bank, second)).toMatchObject({ isValid: true })
})
