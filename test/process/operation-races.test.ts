// Races for operations, on one server, and on PostgreSQL on two that share a database: one winner, documented answers for the rest, and nothing that
// is counted or written twice (cloud §6.2, mobile-token §4.5).
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expireOperations } from '../../src/storage/operation/transitions.ts'
import { serverUrl } from '../helpers/app.ts'
import type { Bank } from '../helpers/bank.ts'
import { addDevice, setMultiDevice } from '../helpers/devices.ts'
import { errorCode, readCounters, STATE } from '../helpers/expectations.ts'
import type { HttpReply, HttpRequest } from '../../phone/http.ts'
import { member, send } from '../../phone/http.ts'
import { type Holder, type OperationWorld, PAYMENT, startOperationWorld, type TestOperation } from '../helpers/operation-world.ts'
import { random } from '../../phone/v3/crypto.ts'
import { expectOk } from '../helpers/world.ts'

const env = { PAWL_OTP_ATTEMPTS_PER_MINUTE: '100000', PAWL_MOBILE_READS_PER_MINUTE: '100000' }

// Only PostgreSQL has room for two.
if (serverUrl() === undefined) describe('one server', () => operationRaces({ servers: 1, rounds: 40 }))
else describe('two servers on one database', () => operationRaces({ servers: 2, rounds: 200 }))

function operationRaces({ servers, rounds }: { servers: number; rounds: number }): void {
  let world: OperationWorld
  beforeAll(async () => {
    world = await startOperationWorld({ servers, env })
  })
  afterAll(() => world.close())

  test(`approve, reject, cancel, expire and fail: one of them wins, ${rounds} times`, async () => {
    const template = await world.template({ maxFailureCount: 1 })
    const holder = await world.holder()
    const { ctrByte } = await readCounters(holder.phone)
    const winners: string[] = []
    for (let round = 0; round < rounds; round++) winners.push(await playRound(world, holder, template, round))
    // The phone's codes were right every time, whoever was faster.
    const moved = { state: STATE.ACTIVE, ctrByte: (ctrByte + rounds) % 256, failedAttempts: 0 }
    expect(await readCounters(holder.phone)).toEqual(moved)
    expect(new Set(winners).size).toBeGreaterThanOrEqual(2)
  })

  test('of 50 equal approvals one passes, and the operation counts none of the others', async () => {
    const { phone, ...holder } = await world.holder()
    const operation = await world.operation(holder.userId)
    const replies = await flood(world, repeat(50, phone.prepareAuthorize(operation)))
    expect(tally(replies)).toEqual({ OK: 1, POWERAUTH_AUTH_FAIL: 49 })
    expect(await world.counts({ ...holder, phone }, operation.id)).toMatchObject({ status: 'APPROVED', failureCount: 0 })
    expect(await readCounters(phone)).toMatchObject({ state: STATE.ACTIVE, failedAttempts: 0 })
    expect(await world.audit(operation.id)).toEqual(['operation_approved'])
  })

  test('of 50 equal approvals by possession one passes, and nothing is counted', async () => {
    const template = await world.template({ signatureTypes: ['possession'] })
    const holder = await world.holder()
    const operation = await world.operation(holder.userId, { template })
    const { ctrByte } = await readCounters(holder.phone)
    const request = holder.phone.prepareAuthorize(operation, { factors: 'possession' })
    expect(tally(await flood(world, repeat(50, request)))).toEqual({ OK: 1, POWERAUTH_AUTH_FAIL: 49 })
    const counted = { state: STATE.ACTIVE, ctrByte: ctrByte + 1, failedAttempts: 0, status: 'APPROVED', failureCount: 0 }
    expect(await world.counts(holder, operation.id)).toEqual(counted)
    expect(await world.audit(operation.id)).toEqual(['operation_approved'])
  })

  test('50 wrong codes count exactly to the maximum of the operation and of the activation', async () => {
    for (const [maxFailureCount, status, failureCount] of [
      [3, 'FAILED', 3],
      [5, 'FAILED', 5],
      [10, 'PENDING', 5],
    ] as const) {
      const template = await world.template({ maxFailureCount })
      const holder = await world.holder()
      const operation = await world.operation(holder.userId, { template })
      const wrong = Array.from({ length: 50 }, () =>
        holder.phone.prepareAuthorize(operation, { wrongKeys: { knowledge: random(16) } }),
      )
      const replies = tally(await flood(world, wrong))
      expect(replies).toEqual(
        status === 'FAILED' ? { OPERATION_ALREADY_FAILED: 1, POWERAUTH_AUTH_FAIL: 49 } : { POWERAUTH_AUTH_FAIL: 50 },
      )
      const counted = { state: STATE.BLOCKED, failedAttempts: 5, status, failureCount }
      expect(await world.counts(holder, operation.id)).toMatchObject(counted)
      expect(await world.audit(operation.id)).toEqual(status === 'FAILED' ? ['operation_failed'] : [])
    }
  })

  test('codes over other data and passwords with unknown nonces at once count exactly to the maximum', async () => {
    const template = await world.template({ maxFailureCount: 7 })
    const holder = await world.holder()
    const operation = await world.operation(holder.userId, { template })
    const other = { ...operation, data: 'A2' }
    const [codes, passwords] = await Promise.all([
      flood(
        world,
        Array.from({ length: 10 }, () => holder.phone.prepareAuthorize(other, { factors: 'possession' })),
      ),
      Promise.all(Array.from({ length: 10 }, (_, i) => bankAt(world, i).offlineOtp(operation.id, '0000000000000000', 'x'))),
    ])
    expect(codes.every(({ status }) => status === 400 || status === 401)).toBe(true)
    expect(passwords.every(({ status }) => status === 400)).toBe(true)
    const counted = { state: STATE.ACTIVE, failedAttempts: 0, status: 'FAILED', failureCount: 7 }
    expect(await world.counts(holder, operation.id)).toMatchObject(counted)
    expect(await world.audit(operation.id)).toEqual(['operation_failed'])
  })

  test('a code and a one-time password of one counter value: one of them approves', async () => {
    for (let round = 0; round < 8; round++) {
      const { phone, userId } = await world.holder()
      const operation = await world.operation(userId)
      const qrCode = expectOk(await world.bank.offlineQr(operation.id)).json
      const qr = phone.scanOperation(String(member(qrCode, 'operationQrCodeData')))
      const before = phone.state.ctrData
      const otp = phone.computeOtp(qr)
      phone.state.ctrData = before
      const request = phone.prepareAuthorize(operation)
      const online = () => send(urlAt(world, round), request)
      const offline = () => bankAt(world, round + 1).offlineOtp(operation.id, otp, qr.nonce)
      const replies = await Promise.all(round % 2 === 0 ? [online(), offline()] : [offline(), online()])
      expect(replies.filter(({ status }) => status === 200)).toHaveLength(1)
      expect(await world.stored(operation.id)).toMatchObject({ status: 'APPROVED', failureCount: 0 })
      const kinds = (await world.audit(operation.id)).filter((type) => type === 'operation_approved')
      expect(kinds).toHaveLength(1)
    }
  })

  test('of phones that claim one operation one gets it, and only that one approves', async () => {
    for (let round = 0; round < 4; round++) {
      const holders = await Promise.all(Array.from({ length: 4 }, () => world.holder()))
      const operation = await world.operation(holders[0]?.userId ?? '')
      await world.unclaim(operation.id)
      const claims = await Promise.all(
        holders.map(({ phone, token }) => phone.prepareTokenCall('claim', token, { id: operation.id })),
      )
      const replies = await flood(world, claims)
      expect(tally(replies)).toEqual({ OK: 1, INVALID_OPERATION: 3 })
      const winner = replies.findIndex(({ status }) => status === 200)
      expect((await world.stored(operation.id)).userId).toBe(holders[winner]?.userId)
      const approvals = await flood(
        world,
        holders.map(({ phone }) => phone.prepareAuthorize(operation)),
      )
      expect(tally(approvals)).toEqual({ OK: 1, INVALID_OPERATION: 3 })
      expect(approvals[winner]?.status).toBe(200)
    }
  })

  test('of phones that claim one with a flag one that has it gets it, however many have none', async () => {
    for (let round = 0; round < 4; round++) {
      const holders = await Promise.all(Array.from({ length: 6 }, () => world.holder()))
      const able = holders.slice(0, 3)
      for (const holder of able) await world.setFlags(holder, 'VIP')
      const created = await bankAt(world, round).createDeviceOperation({ template: 'login', applicationFlag: 'VIP' })
      const id = String(member(expectOk(created).json, 'operationId'))
      const claims = await Promise.all(holders.map(({ phone, token }) => phone.prepareTokenCall('claim', token, { id })))
      const replies = await flood(world, claims)
      const ofAble = tally(replies.slice(0, 3))
      expect(ofAble).toEqual({ OK: 1, INVALID_OPERATION: 2 })
      for (const reply of replies.slice(3))
        expect(['OPERATION_REQUIRES_ACTIVATION_FLAG', 'INVALID_OPERATION']).toContain(errorCode(reply))
      const winner = replies.findIndex(({ status }) => status === 200)
      expect((await world.stored(id)).userId).toBe(holders[winner]?.userId)
    }
  })

  test('of several phones that decide an operation for one device only that one does, once', async () => {
    for (let round = 0; round < 4; round++) {
      const [holder, ...others] = await Promise.all(Array.from({ length: 4 }, () => world.holder()))
      if (holder === undefined) throw new TypeError('no holder')
      const body = { userId: holder.userId, template: 'login', registrationId: holder.phone.state.activationId }
      const id = String(member(expectOk(await bankAt(world, round).createDeviceOperation(body)).json, 'operationId'))
      const own = [holder.phone.prepareAuthorize({ id, data: 'A2' }), holder.phone.prepareReject(id)]
      const theirs = others.map(({ phone }, i) =>
        i === 1 ? phone.prepareReject(id) : phone.prepareAuthorize({ id, data: 'A2' }),
      )
      const replies = await flood(world, [...theirs.slice(0, 2), ...own, ...theirs.slice(2)])
      const ofOwn = replies.slice(2, 4)
      expect(tally([...replies.slice(0, 2), ...replies.slice(4)])).toEqual({ INVALID_OPERATION: 3 })
      expect(ofOwn.filter((reply) => reply.status === 200)).toHaveLength(1)
      // The code of the first is overtaken where the second is faster.
      for (const reply of ofOwn.filter(({ status: code }) => code !== 200))
        expect(['OPERATION_ALREADY_FINISHED', 'POWERAUTH_AUTH_FAIL']).toContain(errorCode(reply))
      const { status, failureCount, additionalData } = await world.stored(id)
      expect({ status, failureCount }).toEqual({ status: ofOwn[0]?.status === 200 ? 'APPROVED' : 'REJECTED', failureCount: 0 })
      expect(additionalData).toMatchObject({ activationId: holder.phone.state.activationId })
      expect(await world.audit(id)).toHaveLength(1)
    }
  })

  test('of phones of one user that decide an operation at once one does, and none disturbs another', async () => {
    expectOk(await setMultiDevice(world.bank, world.applicationId, true))
    for (let round = 0; round < 4; round++) {
      const userId = world.newUser()
      const devices = [await addDevice(world, userId), await addDevice(world, userId), await addDevice(world, userId)]
      const created = await bankAt(world, round).createDeviceOperation({ userId, template: 'login' })
      const id = String(member(expectOk(created).json, 'operationId'))
      const rejects = devices.map((_, i) => (i + round) % 3 === 0)
      const decisions = devices.map(({ phone }, i) =>
        rejects[i] ? phone.prepareReject(id) : phone.prepareAuthorize({ id, data: 'A2' }),
      )
      const replies = await flood(world, decisions)
      expect(tally(replies)).toEqual({ OK: 1, OPERATION_ALREADY_FINISHED: 2 })
      const winner = replies.findIndex(({ status }) => status === 200)
      const { status, failureCount, additionalData } = await world.stored(id)
      expect({ status, failureCount }).toEqual({ status: rejects[winner] ? 'REJECTED' : 'APPROVED', failureCount: 0 })
      expect(additionalData).toMatchObject({ activationId: devices[winner]?.id })
      expect(await world.audit(id)).toHaveLength(1)
      for (const { phone } of devices) expect(await readCounters(phone)).toMatchObject({ state: STATE.ACTIVE, failedAttempts: 0 })
    }
  })

  test('of phones of one user that decide an operation for one of them only that one does', async () => {
    expectOk(await setMultiDevice(world.bank, world.applicationId, true))
    for (let round = 0; round < 4; round++) {
      const userId = world.newUser()
      const [own, ...others] = [await addDevice(world, userId), await addDevice(world, userId), await addDevice(world, userId)]
      const body = { userId, template: 'login', registrationId: own.id }
      const id = String(member(expectOk(await bankAt(world, round).createDeviceOperation(body)).json, 'operationId'))
      const replies = await flood(world, [
        ...others.map(({ phone }, i) => (i === 0 ? phone.prepareReject(id) : phone.prepareAuthorize({ id, data: 'A2' }))),
        own.phone.prepareAuthorize({ id, data: 'A2' }),
      ])
      expect(replies.map(({ status }) => status)).toEqual([400, 400, 200])
      expect(tally(replies)).toEqual({ OK: 1, INVALID_OPERATION: 2 })
      expect(await world.stored(id)).toMatchObject({ status: 'APPROVED', additionalData: { activationId: own.id } })
      expect(await world.audit(id)).toEqual(['operation_approved'])
    }
  })

  test('a claim header is good once among ten', async () => {
    const { phone, token, userId } = await world.holder()
    const { id } = await world.operation(userId)
    await world.unclaim(id)
    const claim = await phone.prepareTokenCall('claim', token, { id })
    expect(tally(await flood(world, repeat(10, claim)))).toEqual({ OK: 1, POWERAUTH_AUTH_FAIL: 9 })
  })

  test('ten equal creations with one key make one operation', async () => {
    const { userId } = await world.holder()
    const template = await world.template()
    const replies = await Promise.all(
      Array.from({ length: 10 }, (_, i) =>
        bankAt(world, i).createOperation({ userId, template, parameters: PAYMENT }, { 'Idempotency-Key': `race-${userId}` }),
      ),
    )
    expect(new Set(replies.map((reply) => expectOk(reply).text)).size).toBe(1)
    const rows = await world.db.selectFrom('operation').select('operation_id').where('user_id', '=', userId).execute()
    expect(rows).toHaveLength(1)
  })

  test('no approval passes after the block of the phone was answered', async () => {
    const { phone, userId } = await world.holder()
    const operations = await Promise.all(Array.from({ length: 12 }, () => world.operation(userId)))
    const requests = operations.map((operation) => phone.prepareAuthorize(operation))
    const early = flood(world, requests.slice(0, 6))
    expectOk(await world.bank.change(userId, 'BLOCK'))
    const late = await flood(world, requests.slice(6))
    await early
    expect(tally(late)).toEqual({ POWERAUTH_AUTH_FAIL: 6 })
    for (const { id } of operations.slice(6)) expect(await world.stored(id)).toMatchObject({ status: 'PENDING', failureCount: 0 })
  })

  test('what is due expires once, however many look for it', async () => {
    const { userId } = await world.holder()
    const operations = await Promise.all(Array.from({ length: 30 }, () => world.operation(userId)))
    // A time that has not come: the work in the background does not take part.
    const at = new Date(Math.max(...operations.map(({ expires }) => expires)))
    const due = await world.db
      .selectFrom('operation')
      .select('operation_id')
      .where('status', '=', 'PENDING')
      .where('expires_at', '<=', at)
      .execute()
    const counts = await Promise.all(Array.from({ length: 8 }, (_, i) => expireOperations(contextAt(world, i).db, at, 10)))
    let expired = counts.reduce((sum, count) => sum + count, 0)
    for (let more = 1; more > 0; expired += more) more = await expireOperations(world.db, at, 10)
    expect(expired).toBe(due.length)
    for (const { id } of operations) expect((await world.stored(id)).status).toBe('EXPIRED')
  })
}

/** One operation that everybody wants to end; the status in which it ended. */
async function playRound(world: OperationWorld, holder: Holder, template: string, round: number): Promise<string> {
  const { phone, userId } = holder
  const operation = await world.operation(userId, { template })
  const move = MOVES[round % MOVES.length]
  const request =
    move === 'reject'
      ? phone.prepareReject(operation.id)
      : phone.prepareAuthorize(move === 'approve' ? operation : { ...operation, data: 'A2' })
  // In every fourth round the time is over in a moment; in the others a process whose clock is ahead looks for what is due.
  const isShort = round % 4 === 1
  if (isShort) await dueIn(world, operation, (round * 7) % 40)
  const starts: readonly (() => Promise<HttpReply | undefined>)[] = [
    () => send(urlAt(world, round), request),
    () => bankAt(world, round + 1).cancelOperation(operation.id),
    () => bankAt(world, round).offlineOtp(operation.id, '0000000000000000', 'x'),
    async () => {
      const { db, platform } = contextAt(world, round + 1)
      await expireOperations(db, new Date(isShort ? platform.now() : operation.expires), 500)
      return undefined
    },
  ]
  // Requests have different lengths of way: everybody starts first sometimes, with leads of different sizes.
  const order = starts.map((_, i) => (i + Math.floor(round / 2)) % starts.length)
  const leadMs = Math.floor(round / 8) % 8
  const replies: (HttpReply | undefined)[] = []
  await Promise.all(
    order.map(async (index, place) => {
      await setTimeout(place * leadMs)
      replies[index] = await starts[index]?.()
    }),
  )
  const [phoneReply, cancelReply, otpReply] = replies
  // Nobody won when its time was over for all of them; then the background makes an end, which skips what another process holds.
  while ((await world.stored(operation.id)).status === 'PENDING') await expireNow(world, operation)
  const stored = await world.stored(operation.id)
  const { status } = stored
  expect(LOSERS[status], status).toBeDefined()
  expectPhoneReply(phoneReply, move ?? '', status)
  expect(cancelReply?.status === 200, 'cancel').toBe(status === 'CANCELED')
  if (cancelReply?.status !== 200) expect(errorCode(cancelReply as HttpReply)).toBe('ERROR_OPERATION_STATE_CHANGE')
  expect(['ERROR_OTP_INVALID', 'ERROR_OPERATION_STATE_CHANGE']).toContain(errorCode(otpReply as HttpReply))
  expect(stored.failureCount).toBe(status === 'FAILED' ? 1 : 0)
  expect(stored.finalizedAt).toBeInstanceOf(Date)
  expect(stored.additionalData !== null).toBe(status === 'APPROVED' || status === 'REJECTED')
  expect(await world.audit(operation.id)).toEqual(AUDITED[status] ?? [])
  for (const [index] of world.urls.entries()) {
    expect(member((await bankAt(world, index).readOperation(operation.id)).json, 'status')).toBe(status)
  }
  return status
}

/** The phone won, or was told what became of the operation; that its time is over may be told while another decision is on its way. */
function expectPhoneReply(reply: HttpReply | undefined, move: string, status: string): void {
  const won = (move === 'approve' && status === 'APPROVED') || (move === 'reject' && status === 'REJECTED')
  if (!reply) throw new Error('the phone got no answer')
  expect(reply.status === 200, `${move}, ${status}: ${reply.text}`).toBe(won)
  if (!won) expect([LOSERS[status], 'OPERATION_EXPIRED']).toContain(errorCode(reply))
}

/** Lets the time of an operation be over in a moment. */
async function dueIn(world: OperationWorld, { id }: TestOperation, milliseconds: number): Promise<void> {
  const expiresAt = new Date(contextAt(world, 0).platform.now() + milliseconds)
  await world.db.updateTable('operation').set({ expires_at: expiresAt }).where('operation_id', '=', id).execute()
}

async function expireNow(world: OperationWorld, operation: TestOperation): Promise<void> {
  await dueIn(world, operation, 0)
  await expireOperations(world.db, new Date(contextAt(world, 0).platform.now()), 500)
}

const flood = (world: OperationWorld, requests: readonly HttpRequest[]): Promise<HttpReply[]> =>
  Promise.all(requests.map((request, i) => send(urlAt(world, i), request)))

const repeat = <T>(times: number, request: T): T[] => Array.from({ length: times }, () => request)
const urlAt = ({ urls, url }: OperationWorld, index: number): string => urls[index % urls.length] ?? url
const bankAt = (world: OperationWorld, index: number): Bank => world.bank.as(world.bank.credential, urlAt(world, index))

function contextAt({ contexts }: OperationWorld, index: number) {
  const context = contexts[index % contexts.length]
  if (!context) throw new Error('a world without server')
  return context
}

/** How many answers had which code. */
function tally(replies: readonly HttpReply[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const reply of replies) {
    const code = reply.status === 200 ? 'OK' : String(errorCode(reply))
    counts[code] = (counts[code] ?? 0) + 1
  }
  return counts
}

const MOVES = ['approve', 'reject', 'approve', 'wrong data', 'approve'] as const
/** What a phone is told that came too late. */
const LOSERS: Readonly<Record<string, string>> = {
  APPROVED: 'OPERATION_ALREADY_FINISHED',
  REJECTED: 'OPERATION_ALREADY_FINISHED',
  FAILED: 'OPERATION_ALREADY_FAILED',
  CANCELED: 'OPERATION_ALREADY_CANCELED',
  EXPIRED: 'OPERATION_EXPIRED',
}
const AUDITED: Readonly<Record<string, readonly string[]>> = {
  APPROVED: ['operation_approved'],
  CANCELED: ['operation_canceled'],
  REJECTED: ['operation_rejected'],
  FAILED: ['operation_failed'],
}
