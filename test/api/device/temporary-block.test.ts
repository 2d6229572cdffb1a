// Too many wrong codes block an activation for a while that ends by the clock and is longer each time (cloud §3.4; v3 §10.5; v4 §9.4).
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { serverUrl } from '../../helpers/app.ts'
import { expectError, MINUTE, readCounters, SECOND, STATE } from '../../helpers/expectations.ts'
import { type HttpReply, type HttpRequest, member, send } from '../../../phone/http.ts'
import { type OperationWorld, startOperationWorld } from '../../helpers/operation-world.ts'
import { random } from '../../../phone/v3/crypto.ts'
import { openUpgradingPhone } from '../../helpers/upgrading-phone.ts'
import { openPhonesV4, type PhonesV4 } from '../../helpers/world-v4.ts'
import { expectOk, registrationOf } from '../../helpers/world.ts'

const OPTIONS = { env: { PAWL_TEMPORARY_BLOCK_SECONDS: '300', PAWL_OTP_ATTEMPTS_PER_MINUTE: '1000' }, worksInBackground: false }
const wrongKeys = { knowledge: random(16) }
const wrongKeysV4 = { knowledge: random(32) }

let world: OperationWorld
let phonesV4: PhonesV4
beforeAll(async () => {
  world = await startOperationWorld(OPTIONS)
  phonesV4 = await openPhonesV4(world)
})
afterAll(() => world.close())

/** A phone of either generation, as far as these tests are the same for both. */
interface Subject {
  readonly userId: string
  readonly activationId: string
  readonly wrong: () => HttpRequest
  readonly remove: () => HttpRequest
  readonly right: (factors?: 'possession' | 'possession_knowledge') => HttpRequest
  /** State, failed attempts and, in 4.0, end of the block. */
  readonly status: () => Promise<{ state: number; failedAttempts: number; end?: unknown }>
}

const openV3 = async (): Promise<Subject> => {
  const { userId, phone } = await world.activePhone('3.3')
  return {
    userId,
    activationId: phone.state.activationId,
    wrong: () => phone.prepareValidation({ wrongKeys }),
    remove: () => phone.prepareRemove(),
    right: (factors = 'possession_knowledge') => phone.prepareValidation({ factors }),
    status: async () => {
      const { state, failedAttempts } = await readCounters(phone)
      return { state, failedAttempts }
    },
  }
}

const openV4 = async (): Promise<Subject> => {
  const { userId, phone } = await phonesV4.activePhone('EC_P384')
  return {
    userId,
    activationId: phone.state.activationId,
    wrong: () => phone.prepareValidation({ wrongKeys: wrongKeysV4 }),
    remove: () => phone.prepareRemove(),
    right: (factors = 'possession_knowledge') => phone.prepareValidation({ factors }),
    status: async () => {
      const { state, failedAttempts, answer } = await phone.readStatus()
      return { state, failedAttempts, ...('timestampBlockExpire' in answer && { end: answer['timestampBlockExpire'] }) }
    },
  }
}

const SUBJECTS: Record<string, () => Promise<Subject>> = { '3.3': openV3, '4.0': openV4 }

const post = (request: HttpRequest, url = world.url): Promise<HttpReply> => send(url, request)
const refuse = async (request: HttpRequest) => expectError(await post(request), 401, 'ERR_AUTHENTICATION')
const accept = async (request: HttpRequest) => expectOk(await post(request))
const now = (): number => world.contexts[0]?.platform.now() ?? 0

/** Wrong codes one after the other. */
const fail = async ({ wrong }: Pick<Subject, 'wrong'>, times = 5): Promise<void> => {
  for (let i = 0; i < times; i += 1) await refuse(wrong())
}

const detailOf = async (activationId: string) => {
  const path = `/admin/applications/${world.applicationId}/registrations/${activationId}`
  return expectOk(await world.bank.call('GET', path)).json as Record<string, unknown> & {
    history: { from?: string; to: string; reason?: string }[]
  }
}

/** The end of the block; undefined without one. */
const endOf = async ({ activationId }: Pick<Subject, 'activationId'>): Promise<number | undefined> => {
  const { timestampBlockExpire } = await detailOf(activationId)
  return timestampBlockExpire === undefined ? undefined : Number(timestampBlockExpire)
}

/** How many seconds the block still lasts, to the nearest minute: clocks go on while a test runs. */
const lastsFor = async (subject: Pick<Subject, 'activationId'>): Promise<number> =>
  Math.round((((await endOf(subject)) ?? Number.NaN) - now()) / MINUTE) * 60

const movesOf = async ({ activationId }: Pick<Subject, 'activationId'>): Promise<string[]> =>
  (await detailOf(activationId)).history.toReversed().map(({ from, to, reason }) => `${from} ${to} ${reason}`)

const auditOf = async ({ activationId }: Pick<Subject, 'activationId'>): Promise<string[]> => {
  const { rows } = await sql<{ type: string; data: string }>`
    select event_type as type, event_data as data from audit_trail
    where activation_id = ${activationId} and event_type like 'registration_%' order by sequence`.execute(world.db)
  return rows.map(({ type, data }) => `${type} ${data}`)
}

describe.each(Object.entries(SUBJECTS))('a phone of %s', (version, open) => {
  const ends = (end: number | undefined) => (version === '4.0' ? { end } : {})

  test('is blocked for a time that doubles, has one attempt afterwards, and starts anew after a success', async () => {
    const subject = await open()
    await fail(subject, 4)
    expect(await subject.status()).toEqual({ state: STATE.ACTIVE, failedAttempts: 4 })
    await fail(subject, 1)
    for (const seconds of [300, 600, 1200]) {
      expect(await lastsFor(subject)).toBe(seconds)
      const end = await endOf(subject)
      expect(await registrationOf(world, subject.userId)).toBe('BLOCKED')
      expect(await detailOf(subject.activationId)).toMatchObject({ state: 'BLOCKED', blockReason: 'MAX_FAILED_ATTEMPTS' })
      await refuse(subject.right())
      await fail(subject, 2)
      await world.advance((seconds - 30) * SECOND)
      await refuse(subject.right('possession'))
      expect(await subject.status()).toEqual({ state: STATE.BLOCKED, failedAttempts: 5, ...ends(end) })
      await world.advance(30 * SECOND)
      // Nothing was written yet.
      expect(await subject.status()).toEqual({ state: STATE.ACTIVE, failedAttempts: 4 })
      expect(await registrationOf(world, subject.userId)).toBe('ACTIVE')
      const detail = await detailOf(subject.activationId)
      expect(detail).toMatchObject({ state: 'ACTIVE', failedAttempts: 4 })
      expect([detail['blockReason'], detail['timestampBlockExpire']]).toEqual([undefined, undefined])
      // Possession alone neither uses the attempt up nor gives others.
      await accept(subject.right('possession'))
      expect(await subject.status()).toEqual({ state: STATE.ACTIVE, failedAttempts: 4 })
      await fail(subject, 1)
    }
    await world.advance(2400 * SECOND)
    await accept(subject.right())
    expect(await subject.status()).toEqual({ state: STATE.ACTIVE, failedAttempts: 0 })
    await fail(subject, 5)
    expect(await lastsFor(subject)).toBe(300)
    await world.advance(300 * SECOND)
    await accept(subject.right())
  })

  test('passes once more when its bank unblocks it early, and then has all attempts and short blocks', async () => {
    const subject = await open()
    await fail(subject)
    await world.advance(300 * SECOND)
    await fail(subject, 1)
    expect(await lastsFor(subject)).toBe(600)
    expectOk(await world.bank.change(subject.userId, 'UNBLOCK'))
    expect(await subject.status()).toEqual({ state: STATE.ACTIVE, failedAttempts: 0 })
    await fail(subject, 4)
    await accept(subject.right())
    await fail(subject)
    expect(await lastsFor(subject)).toBe(300)
    expect((await movesOf(subject)).slice(3)).toEqual([
      'ACTIVE BLOCKED MAX_FAILED_ATTEMPTS',
      'BLOCKED ACTIVE BLOCK_EXPIRED',
      'ACTIVE BLOCKED MAX_FAILED_ATTEMPTS',
      'BLOCKED ACTIVE undefined',
      'ACTIVE BLOCKED MAX_FAILED_ATTEMPTS',
    ])
  })

  test('stays blocked when its bank blocks it meanwhile or afterwards', async () => {
    for (const waits of [100, 300]) {
      const subject = await open()
      await fail(subject)
      await world.advance(waits * SECOND)
      expectOk(await world.bank.change(subject.userId, 'BLOCK', { blockReason: 'STOLEN' }))
      expectError(await world.bank.change(subject.userId, 'BLOCK'), 400, 'ERROR_REGISTRATION_CHANGE')
      await world.advance(1000 * SECOND)
      await world.housekeeping()
      expect(await detailOf(subject.activationId)).toMatchObject({ state: 'BLOCKED', blockReason: 'STOLEN' })
      expect(await endOf(subject)).toBeUndefined()
      await refuse(subject.right())
      expect((await movesOf(subject)).at(-1)).toBe(`${waits < 300 ? 'BLOCKED' : 'ACTIVE'} BLOCKED STOLEN`)
      expectOk(await world.bank.change(subject.userId, 'UNBLOCK'))
      await accept(subject.right())
    }
  })

  test('can be removed meanwhile and afterwards; an activation that is not blocked any more cannot be unblocked', async () => {
    for (const waits of [100, 300]) {
      const subject = await open()
      await fail(subject)
      await world.advance(waits * SECOND)
      if (waits === 300) expectError(await world.bank.change(subject.userId, 'UNBLOCK'), 400, 'ERROR_REGISTRATION_CHANGE')
      expectOk(await world.bank.remove(subject.userId))
      await world.advance(1000 * SECOND)
      await world.housekeeping()
      expect(await subject.status()).toMatchObject({ state: STATE.REMOVED })
      await refuse(subject.right())
    }
  })

  test('may remove itself as its first act after a block', async () => {
    const subject = await open()
    await fail(subject)
    await world.advance(300 * SECOND)
    await accept(subject.remove())
    expect(await registrationOf(world, subject.userId)).toBe('NONE')
    expect((await movesOf(subject)).slice(-2)).toEqual(['BLOCKED ACTIVE BLOCK_EXPIRED', 'ACTIVE REMOVED undefined'])
  })

  test('has its end stored by whoever comes first, once, and told', async () => {
    const webhook = { application: world.applicationId, name: 'n', kind: 'ACTIVATION', url: 'https://bank.example/hook' }
    const attributes = ['activationStatus', 'blockedReason', 'timestampBlockExpire']
    const hook = expectOk(await world.bank.call('POST', '/admin/webhooks', { ...webhook, attributes })).json
    const subject = await open()
    await fail(subject)
    const ends = [await endOf(subject)]
    await world.housekeeping()
    expect(await registrationOf(world, subject.userId)).toBe('BLOCKED')
    await world.advance(300 * SECOND)
    await world.housekeeping()
    await world.housekeeping()
    await fail(subject, 1)
    ends.push(await endOf(subject))
    await world.advance(600 * SECOND)
    await accept(subject.right())
    await world.housekeeping()
    expect((await movesOf(subject)).slice(3)).toEqual([
      'ACTIVE BLOCKED MAX_FAILED_ATTEMPTS',
      'BLOCKED ACTIVE BLOCK_EXPIRED',
      'ACTIVE BLOCKED MAX_FAILED_ATTEMPTS',
      'BLOCKED ACTIVE BLOCK_EXPIRED',
    ])
    const unblocked = 'registration_unblocked {"reason":"BLOCK_EXPIRED"}'
    expect((await auditOf(subject)).slice(-2)).toEqual([unblocked, unblocked])
    await fail(subject)
    ends.push(await endOf(subject))
    expectOk(await world.bank.change(subject.userId, 'BLOCK'))
    const told = await world.db
      .selectFrom('webhook_delivery')
      .select('payload')
      .where('object_id', '=', subject.activationId)
      .where('webhook_id', '=', String(member(hook, 'id')))
      .orderBy('sequence')
      .execute()
    const payloads = told.map(({ payload }) => JSON.parse(payload) as Record<string, unknown>)
    const shown = payloads.map(({ status, blockedReason, timestampBlockExpire }) => [status, blockedReason, timestampBlockExpire])
    const active = ['ACTIVE', undefined, undefined]
    expect(shown.slice(-6)).toEqual([
      ['BLOCKED', 'MAX_FAILED_ATTEMPTS', ends[0]],
      active,
      ['BLOCKED', 'MAX_FAILED_ATTEMPTS', ends[1]],
      active,
      ['BLOCKED', 'MAX_FAILED_ATTEMPTS', ends[2]],
      ['BLOCKED', 'NOT_SPECIFIED', undefined],
    ])
    expectOk(await world.bank.call('DELETE', `/admin/webhooks/${String(member(hook, 'id'))}`))
  })
})

describe('while a block lasts nothing opens, and at its end everything does before anybody stored it', () => {
  test('for tokens, envelopes, the vault, pushes and configuration', async () => {
    const holder = await world.holder('3.3')
    const { phone, token } = holder
    const { phone: phoneV4 } = await phonesV4.activePhone('EC_P384')
    const tokenV4 = await phoneV4.createToken()
    const vault = async () => (await phone.send(await phone.prepareVaultUnlock())).status
    const answers = async () => [
      (await phone.send(await phone.prepareTokenCall('list', token))).status,
      (await phone.send(await phone.prepareTokenCall('push', token, { platform: 'apns', token: 'x' }))).status,
      (await phone.send(await phone.prepareUserInfo())).status,
      (await phoneV4.send(await phoneV4.prepareUserInfo())).status,
      (await phoneV4.send(await phoneV4.prepareConfiguration('activation'))).status,
      (await phoneV4.send(await phoneV4.prepareDetail(tokenV4))).status,
    ]
    const wrong = () => phone.prepareValidation({ wrongKeys })
    const wrongV4 = () => phoneV4.prepareValidation({ wrongKeys: wrongKeysV4 })
    await fail({ wrong })
    await fail({ wrong: wrongV4 })
    expect(await answers()).toEqual([401, 401, 400, 400, 400, 401])
    expect(await vault()).toBe(401)
    await world.advance(300 * SECOND)
    expect(await answers()).toEqual([200, 200, 200, 200, 200, 200])
    expect(await storedState(phone)).toBe('BLOCKED')
    expect(await vault()).toBe(200)
    expect(await storedState(phone)).toBe('ACTIVE')
  })

  test('for approvals, which use up the one attempt that is left', async () => {
    const holder = await world.holder()
    const { phone, userId } = holder
    await fail({ wrong: () => phone.prepareValidation({ wrongKeys }) })
    expectError(
      await world.bank.createOperation({ userId, template: 'login', parameters: {} }),
      400,
      'ERROR_REGISTRATION_NOT_FOUND',
    )
    await world.advance(300 * SECOND)
    const operation = await world.operation(userId)
    expect(await storedState(phone)).toBe('BLOCKED')
    expect((await phone.send(phone.prepareAuthorize(operation, { wrongKeys }))).status).toBe(401)
    expect(await world.counts(holder, operation.id)).toMatchObject({ state: STATE.BLOCKED, failedAttempts: 5, failureCount: 1 })
    expect(await lastsFor(phone.state)).toBe(600)
    expect((await phone.send(phone.prepareAuthorize(operation))).status).toBe(401)
    await world.advance(600 * SECOND)
    const next = await world.operation(userId)
    expectOk(await phone.send(phone.prepareAuthorize(next)))
    expect(await world.counts(holder, next.id)).toMatchObject({ status: 'APPROVED', state: STATE.ACTIVE, failedAttempts: 0 })
  })

  test('for one-time passwords of offline approvals', async () => {
    const holder = await world.holder()
    const { phone, userId } = holder
    await fail({ wrong: () => phone.prepareValidation({ wrongKeys }) })
    await world.advance(300 * SECOND)
    const operation = await world.operation(userId)
    const scan = async () =>
      phone.scanOperation(String(member(expectOk(await world.bank.offlineQr(operation.id)).json, 'operationQrCodeData')))
    const qr = await scan()
    const type = (otp: string) => world.bank.offlineOtp(operation.id, otp, qr.nonce)
    expect(await storedState(phone)).toBe('BLOCKED')
    expectError(await type(phone.computeOtp(qr, { wrongKeys })), 400, 'ERROR_OTP_INVALID')
    expect(await world.counts(holder, operation.id)).toMatchObject({ state: STATE.BLOCKED, failedAttempts: 5, failureCount: 1 })
    expect(await lastsFor(phone.state)).toBe(600)
    expectError(await type(phone.computeOtp(qr)), 400, 'ERROR_REGISTRATION_NOT_FOUND')
    expectError(await world.bank.offlineQr(operation.id), 400, 'ERROR_REGISTRATION_NOT_FOUND')
    expectOk(await world.bank.change(userId, 'UNBLOCK'))
    expectOk(await type(phone.computeOtp(qr)))
    expect(await world.counts(holder, operation.id)).toMatchObject({ status: 'APPROVED', failedAttempts: 0 })
  })

  test('for the lists of the bank, its flags, and a phone that is remembered', async () => {
    const { userId, phone } = await world.activePhone('3.3')
    const { activationId } = phone.state
    for (let i = 0; i < 2; i += 1) await accept(phone.prepareValidation())
    await fail({ wrong: () => phone.prepareValidation({ wrongKeys }) })
    const list = async (state: string) => {
      const path = `/admin/applications/${world.applicationId}/registrations?userId=${userId}&state=${state}`
      return member(expectOk(await world.bank.call('GET', path)).json, 'registrations') as unknown[]
    }
    expect([await list('ACTIVE'), await list('BLOCKED')]).toMatchObject([[], [{ activationId }]])
    await refuse(phone.prepareValidation())
    await world.advance(300 * SECOND)
    expect([await list('ACTIVE'), await list('BLOCKED')]).toMatchObject([[{ activationId, state: 'ACTIVE' }], []])
    expect(await storedState(phone)).toBe('BLOCKED')
    await accept(phone.prepareValidation())
    await accept(phone.prepareValidation())
  })

  test.each<[reason: string, call: (activationId: string) => Promise<HttpReply>]>([
    ['ACTIVATION_FLAGS_UPDATED', (id) => world.bank.call('PUT', `/admin/activations/${id}/flags`, { flags: ['SEEN'] })],
    ['ACTIVATION_FLAGS_UPDATED', (id) => world.bank.call('PUT', `/v2/registrations/${id}/flags`, { flags: ['SEEN'] })],
    ['ACTIVATION_NAME_UPDATED', (id) => world.bank.call('PUT', `/v2/registrations/${id}/name`, { name: 'mine' })],
  ])('for %s, which stands in the history behind the end', async (reason, call) => {
    const { phone } = await world.activePhone('3.3')
    const { activationId } = phone.state
    await fail({ wrong: () => phone.prepareValidation({ wrongKeys }) })
    await world.advance(300 * SECOND)
    expectOk(await call(activationId))
    await world.housekeeping()
    expect((await movesOf({ activationId })).slice(-3)).toEqual([
      'ACTIVE BLOCKED MAX_FAILED_ATTEMPTS',
      'BLOCKED ACTIVE BLOCK_EXPIRED',
      `ACTIVE ACTIVE ${reason}`,
    ])
    await accept(phone.prepareValidation())
  })

  test('for a phone of 4.0 in both dialects', async () => {
    const { phone } = await phonesV4.activePhone('EC_P384')
    const svc = phone.speaking({ dialect: 'Svc' })
    const answerOf = async () => {
      const request = await svc.prepareEncrypted('/pa/v4/activation/status', 'activation')
      return request.open(await svc.send(request))
    }
    expect(await answerOf()).toMatchObject({ activationStatus: 'ACTIVE', timestampBlockExpire: null })
    await fail({ wrong: () => phone.prepareValidation({ wrongKeys: wrongKeysV4 }) })
    const end = await endOf(phone.state)
    expect(await answerOf()).toMatchObject({ activationStatus: 'BLOCKED', timestampBlockExpire: end })
    expect((await phone.readStatus()).answer).toMatchObject({ timestampBlockExpire: end })
    await world.advance(300 * SECOND)
    expect(await answerOf()).toMatchObject({ activationStatus: 'ACTIVE', timestampBlockExpire: null })
    expect((await phone.readStatus()).answer).not.toHaveProperty('timestampBlockExpire')
  })

  test('for the confirmation of an upgrade, which gives no attempts back', async () => {
    const { old, phone, prepareStart } = await openUpgradingPhone(phonesV4, 'EC_P384')
    await phone.exchange(await prepareStart())
    await fail({ wrong: () => old.prepareValidation({ wrongKeys }) })
    await refuse(phone.prepareUpgradeConfirm())
    await world.advance(300 * SECOND)
    expect(await storedState(old)).toBe('BLOCKED')
    await accept(phone.prepareUpgradeConfirm())
    expect(await phone.readStatus()).toMatchObject({
      state: STATE.ACTIVE,
      currentVersion: 4,
      failedAttempts: 4,
      isDeadlocked: false,
    })
    await refuse(phone.prepareValidation({ wrongKeys: wrongKeysV4 }))
    expect(await lastsFor(phone.state)).toBe(600)
  })
})

const storedState = async ({ state }: { readonly state: { readonly activationId: string } }): Promise<string> => {
  const row = world.db.selectFrom('activation').select('state').where('activation_id', '=', state.activationId)
  return (await row.executeTakeFirstOrThrow()).state
}

// Only PostgreSQL has room for two.
const servers = serverUrl() === undefined ? [1] : [1, 2]

describe.each(servers)('at the end of a block, on %d server(s)', (count) => {
  let many: OperationWorld
  let v4: PhonesV4
  beforeAll(async () => {
    // Their housekeeping takes part.
    many = await startOperationWorld({ ...OPTIONS, servers: count, worksInBackground: true })
    v4 = await openPhonesV4(many)
  })
  afterAll(() => many.close())

  const flood = (requests: readonly HttpRequest[]): Promise<HttpReply[]> =>
    Promise.all(requests.map((request, i) => post(request, many.urls[i % many.urls.length] ?? many.url)))
  const rowOf = (activationId: string) =>
    many.db
      .selectFrom('activation')
      .select(['state', 'failed_attempts as failedAttempts', 'blocks_in_row as blocksInRow', 'counter'])
      .where('activation_id', '=', activationId)
      .executeTakeFirstOrThrow()
  const endsOf = async (activationId: string): Promise<number> => {
    const rows = many.db.selectFrom('activation_history').select('reason').where('activation_id', '=', activationId)
    return (await rows.where('reason', '=', 'BLOCK_EXPIRED').execute()).length
  }
  const phones = {
    '3.3': async () => {
      const { phone } = await many.activePhone('3.3')
      const wrong = () => phone.prepareValidation({ wrongKeys })
      return { phone, wrong, right: (body: string): HttpRequest => phone.prepareValidation({ body }) }
    },
    '4.0': async () => {
      const { phone } = await v4.activePhone('EC_P384')
      const wrong = () => phone.prepareValidation({ wrongKeys: wrongKeysV4 })
      return { phone, wrong, right: (body: string): HttpRequest => phone.prepareValidation({ body }) }
    },
  }

  test.each(['3.3', '4.0'] as const)('20 wrong codes of %s at once are one attempt and one block', async (version) => {
    const { phone, wrong, right } = await phones[version]()
    const { activationId, counter, ctrData } = phone.state
    await flood(Array.from({ length: 6 }, wrong))
    expect(await rowOf(activationId)).toMatchObject({ state: 'BLOCKED', failedAttempts: 5, blocksInRow: 1 })
    for (const blocksInRow of [2, 3]) {
      await many.advance(300 * 2 ** (blocksInRow - 2) * SECOND)
      // Of the counter values that the server tries, or none of them would be a guess.
      Object.assign(phone.state, { counter, ctrData })
      const replies = await flood(Array.from({ length: 20 }, wrong))
      expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([401]))
      expect(await rowOf(activationId)).toMatchObject({ state: 'BLOCKED', failedAttempts: 5, blocksInRow })
      expect(await endsOf(activationId)).toBe(blocksInRow - 1)
    }
    expect((await post(right('late'), many.urls.at(-1))).status).toBe(401)
  })

  test.each(['3.3', '4.0'] as const)('of 20 equal right requests of %s one passes', async (version) => {
    const { phone, wrong, right } = await phones[version]()
    const { activationId } = phone.state
    await flood(Array.from({ length: 5 }, wrong))
    await many.advance(300 * SECOND)
    const replies = await flood(Array<HttpRequest>(20).fill(right('pay')))
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1)
    // The others came late: they guess nothing.
    expect(await rowOf(activationId)).toMatchObject({ state: 'ACTIVE', failedAttempts: 0, blocksInRow: 0 })
    expect(await endsOf(activationId)).toBe(1)
  })

  test('a BLOCK of the bank among wrong codes holds', async () => {
    const { phone, wrong } = await phones['3.3']()
    const { userId, phone: other } = await many.activePhone('3.3')
    const wrongOther = () => other.prepareValidation({ wrongKeys })
    await flood([...Array.from({ length: 5 }, wrong), ...Array.from({ length: 5 }, wrongOther)])
    await many.advance(300 * SECOND)
    const codes = flood([...Array.from({ length: 10 }, wrong), ...Array.from({ length: 10 }, wrongOther)])
    const [block] = await Promise.all([many.bank.change(userId, 'BLOCK', { blockReason: 'STOLEN' }), codes])
    expectOk(block)
    await many.advance(10_000 * SECOND)
    await many.housekeeping()
    expect((await rowOf(phone.state.activationId)).state).toBe('ACTIVE')
    expect((await rowOf(other.state.activationId)).state).toBe('BLOCKED')
    expect((await post(other.prepareValidation())).status).toBe(401)
  })
})
