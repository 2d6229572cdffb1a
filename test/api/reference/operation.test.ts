// operation/* of the reference's back-end API (cloud §15.2).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Bank } from '../../helpers/bank.ts'
import { createCaller } from '../../helpers/door.ts'
import { expectError, MINUTE } from '../../helpers/expectations.ts'
import { type OperationWorld, PAYMENT, PAYMENT_DATA, startOperationWorld } from '../../helpers/operation-world.ts'
import { askReference, callReference, DIALECTS } from '../../helpers/reference.ts'

let world: OperationWorld
let bank: Bank
let foreign: Bank
beforeAll(async () => {
  world = await startOperationWorld({ env: { PAWL_REFERENCE_API: 'true' } })
  bank = await createCaller(world.bank, 'spring', 'integration', world.applicationId)
  await world.bank.createApplication('other-operations')
  foreign = await createCaller(world.bank, 'other-spring', 'integration', 'other-operations')
})
afterAll(() => world.close())

const anId = '3f2504e0-4f89-41d3-9a0c-0305e82c3301'

describe.each(DIALECTS)('an operation in the words of %s', (dialect) => {
  const ask = (path: string, request: object) => askReference(bank, dialect, `operation/${path}`, request)
  const refused = async (path: string, request: object, code: string, caller = bank) =>
    expectError(await callReference(caller, dialect, `operation/${path}`, request), 400, code)
  const factors = dialect === 'v3' ? 'signatureType' : 'authenticationCodeTypes'

  /** What a client sends, null for what it does not say. */
  async function newOperation(more: object = {}) {
    const { userId } = await world.holder()
    const templateName = await world.template()
    const applications = [world.applicationId]
    const absent = { activationFlag: null, timestampExpires: null, proximityCheckEnabled: null, activationId: null }
    const request = {
      userId,
      applications,
      templateName,
      externalId: 'order 7',
      parameters: PAYMENT,
      additionalData: {},
      ...absent,
      ...more,
    }
    return { userId, templateName, applications, request }
  }

  test('is created, read, listed and cancelled', async () => {
    const { userId, templateName, applications, request } = await newOperation()
    const created = await ask('create', request)
    const id = String(created['id'])
    expect(created).toMatchObject({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      userId,
      applications,
      externalId: 'order 7',
      operationType: 'authorize_payment',
      templateName,
      data: PAYMENT_DATA,
      parameters: PAYMENT,
      status: 'PENDING',
      [factors]: expect.arrayContaining(['POSSESSION_KNOWLEDGE']),
      failureCount: 0,
      timestampCreated: expect.stringMatching(/^\d{4}-.*Z$/),
    })
    expect(created).not.toHaveProperty('timestampFinalized')
    expect(await ask('detail', { operationId: id.toUpperCase() })).toEqual(created)
    const search = { userId, applications, pageNumber: null, pageSize: null, activationId: null }
    expect(await ask('list', search)).toEqual([created])
    expect(await ask('list/pending', search)).toEqual([created])
    expect(await ask('list', { ...search, pageNumber: 1, pageSize: 1 })).toEqual([])
    for (const path of ['list', 'list/pending']) await refused(path, { ...search, activationId: anId }, 'ERR0024')
    await refused('cancel', { operationId: id, statusReason: 'MISTAKE', additionalData: { a: 1 } }, 'ERR0024')
    expect(await ask('detail', { operationId: id })).toEqual(created)
    const canceled = await ask('cancel', { operationId: id, statusReason: 'MISTAKE', additionalData: {} })
    expect(canceled).toMatchObject({ id, status: 'CANCELED', statusReason: 'MISTAKE', timestampFinalized: expect.any(String) })
    expect(await ask('detail', { operationId: id })).toEqual(canceled)
    expect(await ask('list', search)).toEqual([canceled])
    expect(await ask('list/pending', search)).toEqual([])
    await refused('cancel', { operationId: id, statusReason: null }, 'ERR0036')
  })

  test('with a proximity check shows its password while it waits', async () => {
    const templateName = await world.template({ isProximityCheckEnabled: true })
    const { request } = await newOperation({ templateName })
    expect(await ask('create', request)).toMatchObject({ proximityOtp: expect.stringMatching(/^\d{8}$/) })
  })

  test('is for one device, with a flag and an end of its own', async () => {
    const { phone, userId } = await world.holder()
    const { activationId } = phone.state
    const timestampExpires = Date.now() + 90 * MINUTE
    const { request } = await newOperation({ userId, activationId, activationFlag: 'VIP', timestampExpires })
    const created = await ask('create', request)
    expect(created).toMatchObject({
      userId,
      activationId,
      activationFlag: 'VIP',
      timestampExpires: new Date(timestampExpires).toISOString(),
    })
    expect(await ask('detail', { operationId: created['id'] })).toEqual(created)
  })

  test('for whom or what there is none is refused', async () => {
    const { userId, applications, request } = await newOperation()
    await refused('create', { ...request, userId: 'nobody' }, 'ERR0009')
    await refused('create', { ...request, templateName: 'none' }, 'ERR0024')
    await refused('create', { ...request, parameters: { amount: 7 } }, 'ERR0024')
    await refused('create', { ...request, applications: [] }, 'ERR0024')
    for (const named of [['other-operations'], [...applications, 'other-operations']])
      await refused('create', { ...request, applications: named }, 'ERR0015')
    for (const more of [
      { activationFlag: 'vip' },
      { timestampExpires: Date.now() - MINUTE },
      { proximityCheckEnabled: true },
      { proximityCheckEnabled: false },
      { additionalData: { a: 1 } },
    ])
      await refused('create', { ...request, ...more }, 'ERR0024')
    await refused('create', { ...request, activationId: anId }, 'ERR0009')
    const stranger = await world.holder()
    await refused('create', { ...request, activationId: stranger.phone.state.activationId }, 'ERR0009')
    const templateName = await world.template({ activationFlag: 'VIP' })
    await refused('create', { ...request, templateName, activationFlag: 'OTHER' }, 'ERR0024')
    const id = String((await ask('create', request))['id'])
    for (const path of ['detail', 'cancel']) {
      await refused(path, { operationId: anId }, 'ERR0034')
      await refused(path, { operationId: id }, 'ERR0034', foreign)
      await refused(path, { operationId: 'x' }, 'ERR0024')
    }
    for (const path of ['list', 'list/pending']) {
      await refused(path, { userId, applications }, 'ERR0015', foreign)
      await refused(path, { applications }, 'ERR0024')
    }
    expect(await askReference(foreign, dialect, 'operation/list', { userId, applications: ['other-operations'] })).toEqual([])
  })
})
