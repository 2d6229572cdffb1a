// activation/* and application/* of the reference's back-end API (cloud §15.2).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPhone } from '../../../phone/v3/virtual-phone.ts'
import { type Bank, readApplication } from '../../helpers/bank.ts'
import { createCaller } from '../../helpers/door.ts'
import { expectError, MINUTE } from '../../helpers/expectations.ts'
import { askReference, callReference, DIALECTS } from '../../helpers/reference.ts'
import { expectOk } from '../../helpers/world.ts'
import { startWorldV4, type WorldV4 } from '../../helpers/world-v4.ts'

let v4: WorldV4
let bank: Bank
let foreign: Bank
beforeAll(async () => {
  v4 = await startWorldV4({ env: { PAWL_REFERENCE_API: 'true' } })
  bank = await createCaller(v4.world.bank, 'spring', 'integration', v4.world.applicationId)
  await v4.world.bank.createApplication('other')
  foreign = await createCaller(v4.world.bank, 'other-spring', 'integration', 'other')
})
afterAll(() => v4.close())

const anId = '3f2504e0-4f89-41d3-9a0c-0305e82c3301'
let users = 0
const newUser = (): string => `reference-${++users}`

const LATER = Date.parse('2100-01-01T00:00:00Z')

/** Entries 1 to `count`, a millisecond after one another from LATER on. */
const insertHistory = (activationId: string, count: number) =>
  v4.server.context.db
    .insertInto('activation_history')
    .values(
      Array.from({ length: count }, (_, i) => ({
        activation_id: activationId,
        from_state: 'ACTIVE' as const,
        to_state: 'ACTIVE' as const,
        reason: String(i + 1),
        external_user_id: null,
        occurred_at: new Date(LATER + i + 1),
      })),
    )
    .execute()

describe.each(DIALECTS)('in the words of %s', (dialect) => {
  const ask = (path: string, request: object, caller = bank) => askReference(caller, dialect, path, request)
  const refused = async (path: string, request: object, code: string, caller = bank) =>
    expectError(await callReference(caller, dialect, path, request), 400, code)
  const statusOf = async (activationId: string) => (await ask('activation/status', { activationId }))['activationStatus']

  /** A registration as a library of a bank makes it, null for what it does not say. */
  const init = (more: object = {}) =>
    ask('activation/init', {
      protocol: 'powerauth',
      userId: newUser(),
      applicationId: v4.world.applicationId,
      timestampActivationExpire: null,
      maxFailureCount: null,
      activationOtpValidation: 'NONE',
      commitPhase: 'ON_COMMIT',
      activationOtp: null,
      flags: [],
      additionalData: {},
      parentActivationId: null,
      transferType: null,
      ...more,
    })

  async function activate(code: unknown, otp?: string) {
    const app = readApplication(await v4.world.bank.call('GET', `/admin/applications/${v4.world.applicationId}`))
    const phone = createPhone({ url: v4.world.url, app, version: '3.3' })
    await phone.activate(String(code), otp === undefined ? {} : { layer2: { activationOtp: otp } })
    return phone
  }

  test('a registration is made, bound, committed, blocked, unblocked and removed', async () => {
    const userId = newUser()
    const made = await init({ userId, flags: ['VIP'], maxFailureCount: 3 })
    const { activationId } = made as { readonly activationId: string }
    expect(made).toEqual({
      activationId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      activationCode: expect.stringMatching(/^([A-Z2-7]{5}-){3}[A-Z2-7]{5}$/),
      activationSignature: expect.any(String),
      userId,
      applicationId: v4.world.applicationId,
    })
    expect(await ask('activation/status', { activationId })).toMatchObject({
      activationId,
      activationStatus: 'CREATED',
      userId,
      applicationId: v4.world.applicationId,
      activationCode: made['activationCode'],
      activationSignature: made['activationSignature'],
      commitPhase: 'ON_COMMIT',
      activationFlags: ['VIP'],
      failedAttempts: 0,
      maxFailedAttempts: 3,
      protocol: 'powerauth',
      version: 0,
    })
    await refused('activation/commit', { activationId }, 'ERR0008')
    await activate(made['activationCode'])
    const pending = await ask('activation/status', { activationId })
    expect(pending).toMatchObject({
      activationStatus: 'PENDING_COMMIT',
      version: 3,
      devicePublicKeyFingerprint: expect.any(String),
    })
    expect(pending).not.toHaveProperty('activationCode')
    await refused('activation/block', { activationId }, 'ERR0008')
    expect(await ask('activation/commit', { activationId, externalUserId: 'clerk', activationOtp: null })).toEqual({
      activationId,
      activated: true,
    })
    await refused('activation/commit', { activationId }, 'ERR0008')
    const blocked = { activationId, activationStatus: 'BLOCKED', blockedReason: 'LOST' }
    expect(await ask('activation/block', { activationId, reason: 'LOST', externalUserId: null })).toEqual(blocked)
    // What is so already is no error.
    expect(await ask('activation/block', { activationId, reason: 'AGAIN' })).toEqual(blocked)
    const unblocked = { activationId, activationStatus: 'ACTIVE' }
    expect(await ask('activation/unblock', { activationId })).toEqual(unblocked)
    // In either case, because databases of banks have UUIDs with capitals.
    expect(await ask('activation/unblock', { activationId: activationId.toUpperCase() })).toEqual(unblocked)
    expect(await ask('activation/remove', { activationId, revokeRecoveryCodes: false })).toEqual({ activationId, removed: true })
    expect(await ask('activation/remove', { activationId })).toEqual({ activationId, removed: true })
    await refused('activation/block', { activationId }, 'ERR0008')
    await refused('activation/unblock', { activationId }, 'ERR0008')
    const { items } = (await ask('activation/history', { activationId, timestampFrom: null, timestampTo: null })) as {
      items: { activationStatus: string; externalUserId?: string; eventReason?: string }[]
    }
    expect(items.map(({ activationStatus }) => activationStatus)).toEqual([
      'CREATED',
      'CREATED',
      'PENDING_COMMIT',
      'ACTIVE',
      'BLOCKED',
      'ACTIVE',
      'REMOVED',
    ])
    expect(items[3]).toMatchObject({ externalUserId: 'clerk', activationId })
    expect(items[4]).toMatchObject({ eventReason: 'LOST' })
    expect(await ask('activation/history', { activationId, timestampFrom: Date.now() + MINUTE })).toEqual({ items: [] })
    expect(await ask('activation/history', { activationId, timestampTo: 1_577_836_800_000 })).toEqual({ items: [] })
  })

  test('a user has one live activation, and rules of its making are checked', async () => {
    const userId = newUser()
    await init({ userId })
    const again = { userId, applicationId: v4.world.applicationId }
    await refused('activation/init', again, 'ERR0040')
    const other = { ...again, userId: newUser() }
    await refused('activation/init', { ...other, applicationId: 'other' }, 'ERR0015')
    await refused('activation/init', { ...other, maxFailureCount: 0 }, 'ERR0024')
    await refused('activation/init', { ...other, timestampActivationExpire: 1000 }, 'ERR0024')
    await refused('activation/init', { ...other, timestampActivationExpire: 'tomorrow' }, 'ERR0024')
    await refused('activation/init', { ...other, activationOtpValidation: 'ON_COMMIT' }, 'ERR0024')
    await refused(
      'activation/init',
      { ...other, activationOtpValidation: 'ON_COMMIT', commitPhase: 'ON_KEY_EXCHANGE', activationOtp: '1' },
      'ERR0024',
    )
    for (const activationOtp of ['', ' ', 'x'.repeat(256), '1\n'])
      for (const activationOtpValidation of ['ON_COMMIT', null])
        await refused('activation/init', { ...other, activationOtpValidation, activationOtp }, 'ERR0024')
    await refused('activation/init', { ...other, activationOtpValidation: 'NONE', activationOtp: '123456' }, 'ERR0024')
    await refused('activation/init', { ...other, flags: ['lower'] }, 'ERR0024')
    for (const more of [{ additionalData: { a: 1 } }, { parentActivationId: anId }, { transferType: 'SIGNATURE' }])
      await refused('activation/init', { ...other, ...more }, 'ERR0024')
    await refused('activation/init', { ...other, userId: ' ' }, 'ERR0024')
    await refused('activation/init', { ...other, additionalData: { a: 1 } }, 'ERR0024')
    await refused('activation/init', { ...other, parentActivationId: anId, transferType: 'MOVE' }, 'ERR0024')
    await refused('activation/init', { ...other, protocol: 'fido2' }, 'ERR0024')
    expect(await ask('activation/list', { userId: other.userId, applicationId: null })).toEqual({
      userId: other.userId,
      activations: [],
    })
    expect(await init({ ...other, timestampActivationExpire: Date.now() + MINUTE })).toMatchObject({ userId: other.userId })
  })

  test('an OTP is demanded where it was said, changed, and counted', async () => {
    const made = await init({ activationOtpValidation: 'ON_COMMIT', activationOtp: '1111' })
    const { activationId } = made as { readonly activationId: string }
    expect(await ask('activation/otp/update', { activationId, externalUserId: null, activationOtp: '2222' })).toEqual({
      activationId,
      updated: true,
    })
    await activate(made['activationCode'])
    await refused('activation/commit', { activationId, activationOtp: '1111' }, 'ERR0031')
    await refused('activation/commit', { activationId, activationOtp: null }, 'ERR0031')
    expect(await ask('activation/status', { activationId })).toMatchObject({ failedAttempts: 1 })
    expect(await ask('activation/otp/update', { activationId, activationOtp: '3333' })).toMatchObject({ updated: true })
    expect(await ask('activation/commit', { activationId, activationOtp: '3333' })).toMatchObject({ activated: true })
    await refused('activation/otp/update', { activationId, activationOtp: '4444' }, 'ERR0008')
    const direct = await init({ activationOtpValidation: null, commitPhase: 'ON_KEY_EXCHANGE', activationOtp: '5555' })
    await refused('activation/otp/update', { activationId: direct['activationId'], activationOtp: '4444' }, 'ERR0008')
    await activate(direct['activationCode'], '5555')
    expect(await statusOf(String(direct['activationId']))).toBe('ACTIVE')
  })

  test('the activations of users are listed and looked up', async () => {
    const first = await v4.world.activePhone('3.3')
    const second = await v4.activePhone('EC_P384')
    const { activationId } = first.phone.state
    const ofFirst = {
      activationId,
      userId: first.userId,
      activationStatus: 'ACTIVE',
      version: 3,
      applicationId: v4.world.applicationId,
      activationFlags: [],
    }
    const list = (more: object) => ask('activation/list', { userId: first.userId, protocols: ['powerauth', 'fido2'], ...more })
    expect(await list({ applicationId: null, pageNumber: null, pageSize: null, activationStatuses: null })).toMatchObject({
      userId: first.userId,
      activations: [ofFirst],
    })
    expect(await list({ applicationId: v4.world.applicationId, activationStatuses: ['ACTIVE', 'BLOCKED'] })).toMatchObject({
      activations: [ofFirst],
    })
    for (const none of [{ activationStatuses: ['REMOVED'] }, { protocols: ['fido2'] }, { pageNumber: 1 }])
      expect(await list(none)).toEqual({ userId: first.userId, activations: [] })
    expect(await list({ pageNumber: 0, pageSize: 1 })).toMatchObject({ activations: [ofFirst] })
    await refused('activation/list', { userId: first.userId, applicationId: 'other' }, 'ERR0015')
    expect(await ask('activation/list', { userId: first.userId }, foreign)).toMatchObject({ activations: [] })

    const userIds = [first.userId, second.userId]
    const lookup = async (more: object) =>
      (
        (await ask('activation/lookup', {
          userIds,
          applicationIds: [],
          activationFlags: [],
          activationStatus: null,
          ...more,
        })) as { activations: { userId: string }[] }
      ).activations
        .map(({ userId }) => userId)
        .toSorted()
    await ask('activation/flags/create', { activationId, activationFlags: ['SEEN'] })
    expect(await lookup({})).toEqual(userIds.toSorted())
    expect(await lookup({ activationStatus: 'ACTIVE', applicationIds: [v4.world.applicationId, 'x'] })).toEqual(
      userIds.toSorted(),
    )
    expect(await lookup({ activationFlags: ['SEEN'] })).toEqual([first.userId])
    expect(await lookup({ activationStatus: 'BLOCKED' })).toEqual([])
    expect(await lookup({ timestampLastUsedBefore: 1000 })).toEqual([])
    // The phone of 3.3 has made no code yet: it counts from its creation.
    expect(await lookup({ timestampLastUsedAfter: Date.now() - MINUTE })).toEqual(userIds.toSorted())
    expect(await list({})).toMatchObject({ activations: [{ timestampLastUsed: expect.stringMatching(/Z$/) }] })
    expect(await lookup({ timestampLastUsedAfter: 1_577_836_800_000 })).toContain(second.userId)
    await refused('activation/lookup', { userIds: [] }, 'ERR0024')
    await refused('activation/lookup', { userIds, applicationIds: ['other'] }, 'ERR0015')
  })

  test('flags are listed, added, replaced and removed', async () => {
    const { phone } = await v4.world.activePhone('3.3')
    const { activationId } = phone.state
    const flags = (word: string, activationFlags?: readonly string[]) =>
      ask(`activation/flags/${word}`, { activationId, ...(activationFlags && { activationFlags }) })
    expect(await flags('list')).toEqual({ activationId, activationFlags: [] })
    expect(await flags('create', ['A', 'B'])).toEqual({ activationId, activationFlags: ['A', 'B'] })
    expect(await flags('create', ['B', 'C'])).toEqual({ activationId, activationFlags: ['A', 'B', 'C'] })
    expect(await flags('remove', ['A', 'X'])).toEqual({ activationId, activationFlags: ['B', 'C'] })
    expect(await flags('update', ['D'])).toEqual({ activationId, activationFlags: ['D'] })
    expect(await flags('list')).toEqual({ activationId, activationFlags: ['D'] })
    await Promise.all(Array.from({ length: 10 }, (_, i) => flags('create', [`AT_ONCE_${i}`])))
    expect((await flags('list'))['activationFlags']).toHaveLength(11)
    await refused('activation/flags/create', { activationId, activationFlags: ['lower'] }, 'ERR0024')
    await refused(
      'activation/flags/create',
      { activationId, activationFlags: Array.from({ length: 60 }, (_, i) => `F${i}`) },
      'ERR0024',
    )
    await ask('activation/remove', { activationId })
    await refused('activation/flags/create', { activationId, activationFlags: ['A'] }, 'ERR0008')
  })

  test('a name is changed while the activation lives', async () => {
    const { phone } = await v4.world.activePhone('3.3')
    const { activationId } = phone.state
    const named = { activationId, activationName: 'The new one', externalUserId: null }
    expect(await ask('activation/name/update', named)).toEqual({
      activationId,
      activationName: 'The new one',
      activationStatus: 'ACTIVE',
    })
    expect(await ask('activation/status', { activationId, challenge: null })).toMatchObject({ activationName: 'The new one' })
    await refused('activation/name/update', { ...named, activationName: ' ' }, 'ERR0024')
    await ask('activation/remove', { activationId })
    await refused('activation/name/update', named, 'ERR0008')
  })

  test('each change has the credential in the audit log, and the person that it names in the history', async () => {
    const userId = newUser()
    const { activationId, activationCode } = await init({
      userId,
      activationOtpValidation: 'ON_COMMIT',
      activationOtp: '1111',
      flags: ['VIP'],
    })
    await ask('activation/otp/update', { activationId, activationOtp: '2222', externalUserId: 'operator-1' })
    await activate(activationCode)
    await ask('activation/commit', { activationId, activationOtp: '2222', externalUserId: 'operator-2' })
    await ask('activation/name/update', { activationId, activationName: 'other', externalUserId: 'operator-3' })
    await ask('activation/flags/create', { activationId, activationFlags: ['SEEN'] })
    await ask('activation/block', { activationId, externalUserId: 'operator-4' })
    await ask('activation/unblock', { activationId, externalUserId: null })
    await ask('activation/status/update', { activationIds: [activationId], activationStatus: 'REMOVED' })
    const { items } = await ask('activation/history', { activationId })
    const persons = (items as readonly { readonly externalUserId?: string }[]).flatMap((item) => item.externalUserId ?? [])
    expect(persons).toEqual(['operator-1', 'operator-2', 'operator-3', 'operator-4'])
    const path = `/admin/applications/${v4.world.applicationId}/audit?userId=${userId}`
    const audit = expectOk(await v4.world.bank.call('GET', path)).json as {
      readonly items: readonly { readonly eventType: string; readonly verifiedBy?: string }[]
    }
    const changes = audit.items.filter(({ verifiedBy }) => verifiedBy === 'spring').map(({ eventType }) => eventType)
    expect(changes.toReversed()).toEqual([
      'registration_created',
      'registration_flags_changed',
      'registration_otp_changed',
      'registration_committed',
      'registration_renamed',
      'registration_flags_changed',
      'registration_blocked',
      'registration_unblocked',
      'registration_removed',
    ])
  })

  test('several become the same, all or none', async () => {
    const phones = await Promise.all([1, 2].map(() => v4.world.activePhone('3.3')))
    const [one = '', two = ''] = phones.map(({ phone }) => phone.state.activationId)
    const update = (activationIds: readonly string[], activationStatus: string) => ({ activationIds, activationStatus })
    expect(await ask('activation/status/update', update([one, two], 'BLOCKED'))).toEqual({ updated: true })
    expect([await statusOf(one), await statusOf(two)]).toEqual(['BLOCKED', 'BLOCKED'])
    await refused('activation/status/update', update([one, anId], 'ACTIVE'), 'ERR0009')
    expect(await statusOf(one)).toBe('BLOCKED')
    await ask('activation/remove', { activationId: two })
    await refused('activation/status/update', update([one, two], 'ACTIVE'), 'ERR0008')
    expect(await statusOf(one)).toBe('BLOCKED')
    expect(await ask('activation/status/update', update([one, one], 'ACTIVE'))).toEqual({ updated: true })
    expect(await statusOf(one)).toBe('ACTIVE')
    await refused('activation/status/update', update([one], 'CREATED'), 'ERR0024')
    const three = (await v4.world.activePhone('3.3')).phone.state.activationId
    for (const state of ['BLOCKED', 'ACTIVE', 'REMOVED']) {
      const ids = (i: number) => (i % 2 === 0 ? [one, three] : [three, one])
      const answers = await Promise.all(
        Array.from({ length: 10 }, (_, i) => ask('activation/status/update', update(ids(i), state))),
      )
      expect(answers).toEqual(answers.map(() => ({ updated: true })))
      expect([await statusOf(one), await statusOf(three)]).toEqual([state, state])
    }
  })

  test.each(['block', 'unblock', 'remove'] as const)('ten at once that %s are one change', async (word) => {
    const { activationId } = (await v4.world.activePhone('3.3')).phone.state
    if (word === 'unblock') await ask('activation/block', { activationId })
    const answers = await Promise.all(Array.from({ length: 10 }, () => ask(`activation/${word}`, { activationId })))
    expect(answers).toEqual(answers.map(() => answers[0]))
    const became = { block: 'BLOCKED', unblock: 'ACTIVE', remove: 'REMOVED' }[word]
    expect(await statusOf(activationId)).toBe(became)
    const { items } = (await ask('activation/history', { activationId })) as { items: { activationStatus: string }[] }
    const changes = word === 'unblock' ? ['BLOCKED', 'ACTIVE'] : [became]
    expect(items.map(({ activationStatus }) => activationStatus).slice(-changes.length - 1)).toEqual(['ACTIVE', ...changes])
  })

  test('a change that is rolled back is not told of, and one that is committed is', async () => {
    const phones = await Promise.all([1, 2].map(() => v4.world.activePhone('3.3')))
    const [first = '', last = ''] = phones.map(({ phone }) => phone.state.activationId).toSorted()
    const told = (id: string) =>
      v4.server
        .log()
        .split('\n')
        .filter((line) => line.includes('registration changed') && line.includes(id) && line.includes('BLOCKED'))
    const created = (await init())['activationId']
    const update = (...activationIds: unknown[]) => ({ activationIds, activationStatus: 'BLOCKED' })
    await refused('activation/status/update', update(first, last, created), 'ERR0008')
    await refused('activation/status/update', update(first, last, 'none'), 'ERR0009')
    expect([await statusOf(first), await statusOf(last), ...told(first), ...told(last)]).toEqual(['ACTIVE', 'ACTIVE'])
    expect(await ask('activation/status/update', update(first, last))).toEqual({ updated: true })
    expect([told(first), told(last)]).toEqual([[expect.any(String)], [expect.any(String)]])
  })

  test('the history has an interval that is older than its newest thousand entries', async () => {
    const { activationId } = (await v4.world.activePhone('3.3')).phone.state
    const history = async (more: object) =>
      (
        (await ask('activation/history', { activationId, ...more })) as {
          items: { eventReason?: string; timestampCreated: string }[]
        }
      ).items
    const begun = await history({})
    await insertHistory(activationId, 1001)
    expect(await history({})).toHaveLength(1000)
    const timestampTo = Date.parse(begun.at(-1)?.timestampCreated ?? '')
    expect(await history({ timestampTo })).toEqual(begun)
    const timestampFrom = LATER + 1000
    expect((await history({ timestampFrom })).map(({ eventReason }) => eventReason)).toEqual(['1000', '1001'])
    expect((await history({ timestampFrom, timestampTo: timestampFrom })).map(({ eventReason }) => eventReason)).toEqual(['1000'])
  })

  test('times are milliseconds up to the year 9999', async () => {
    const { applicationId } = v4.world
    const far = [-1, 253_402_300_800_000, 8.64e15, 1e300, 1.5, '+275760-09-13T00:00:00.000Z', '-000001-01-01T00:00:00Z']
    for (const time of far) {
      await refused('activation/lookup', { userIds: ['u'], timestampLastUsedBefore: time }, 'ERR0024')
      await refused('activation/lookup', { userIds: ['u'], timestampLastUsedAfter: time }, 'ERR0024')
      await refused('activation/history', { activationId: anId, timestampFrom: time }, 'ERR0024')
      await refused('activation/history', { activationId: anId, timestampTo: time }, 'ERR0024')
      await refused('activation/init', { userId: newUser(), applicationId, timestampActivationExpire: time }, 'ERR0024')
    }
    const last = 253_402_300_799_999
    const lookedUp = { userIds: ['u'], timestampLastUsedBefore: last, timestampLastUsedAfter: 0 }
    expect(await ask('activation/lookup', lookedUp)).toEqual({ activations: [] })
    const userId = newUser()
    await init({ userId, timestampActivationExpire: last })
    expect(await ask('activation/list', { userId })).toMatchObject({ activations: [{ activationStatus: 'CREATED' }] })
  })

  test('an activation of another application, or of none, is not there', async () => {
    const { phone } = await v4.world.activePhone('3.3')
    const { activationId } = phone.state
    for (const [id, caller] of [
      [anId, bank],
      [activationId, foreign],
    ] as const) {
      const gone = { activationId: id, activationStatus: 'REMOVED' }
      expect(await ask('activation/status', { activationId: id }, caller)).toEqual({
        ...gone,
        protocol: 'powerauth',
        activationFlags: [],
        version: 0,
        applicationRoles: [],
      })
      for (const [path, more] of [
        ['commit', {}],
        ['block', {}],
        ['unblock', {}],
        ['remove', {}],
        ['history', {}],
        ['otp/update', { activationOtp: '1' }],
        ['name/update', { activationName: 'x' }],
        ['flags/list', {}],
        ['flags/create', { activationFlags: ['A'] }],
        ['flags/update', { activationFlags: ['A'] }],
        ['flags/remove', { activationFlags: ['A'] }],
      ] as const)
        await refused(`activation/${path}`, { activationId: id, ...more }, 'ERR0009', caller)
      await refused('activation/status/update', { activationIds: [id], activationStatus: 'BLOCKED' }, 'ERR0009', caller)
    }
    expect(await statusOf(activationId)).toBe('ACTIVE')
  })

  test('an application is described without its secrets, to its own credentials', async () => {
    const { applicationId } = v4.world
    const app = readApplication(await v4.world.bank.call('GET', `/admin/applications/${applicationId}`))
    const detail = await ask('application/detail', { applicationId })
    expect(detail).toMatchObject({
      applicationId,
      applicationRoles: [],
      versions: [{ applicationVersionId: 'default', applicationKey: app.applicationKey, supported: true }],
      ...(dialect === 'v3'
        ? { masterPublicKey: Buffer.from(app.masterPublicKey).toString('base64') }
        : { supportedAlgorithms: expect.arrayContaining(['EC_P384']) }),
    })
    expect(JSON.stringify(detail)).not.toContain(app.applicationSecret)
    await refused('application/detail', { applicationId: 'other' }, 'ERR0015')
    const applicationKey = { applicationKey: app.applicationKey }
    expect(await ask('application/detail/version', applicationKey)).toEqual({ applicationId })
    await refused('application/detail/version', applicationKey, 'ERR0015', foreign)
    await refused('application/detail/version', { applicationKey: 'x' }, 'ERR0015')
  })

  test('the service says that it serves', async () => {
    expect(await ask('status', null as never)).toMatchObject({
      status: 'OK',
      applicationName: 'pawl',
      version: expect.any(String),
    })
    expect(await ask('status', {})).toMatchObject({ status: 'OK' })
  })

  test('who is bound anew meanwhile is not changed in place of the old one', async () => {
    const made = await init()
    const { activationId } = made as { readonly activationId: string }
    await ask('activation/remove', { activationId })
    const next = await init({ userId: made['userId'] })
    await refused('activation/block', { activationId }, 'ERR0008')
    await refused('activation/commit', { activationId }, 'ERR0008')
    expect(await statusOf(String(next['activationId']))).toBe('CREATED')
    expectOk(await v4.world.bank.call('DELETE', `/registration?userId=${String(made['userId'])}`))
  })
})
