// Other changes come between two statements of a request, at each of them in turn: a block by the bank, a later start of an upgrade, its
// confirmation. The outcome is as if one request had come after the other (v4 §9.4, §9.7, §9.9, §9.12, §9.13, §10).
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type HoldLine, startHeldServer } from '../helpers/fault-line.ts'
import { isAccepted } from '../helpers/flood.ts'
import { type HttpReply, member, send } from '../../phone/http.ts'
import { b64, random } from '../../phone/v3/crypto.ts'
import { withPair } from '../../phone/header.ts'
import type { Prepared } from '../../phone/v3/state.ts'
import { hs384Jwt } from '../../phone/v4/crypto.ts'
import { openUpgradingPhone } from '../helpers/upgrading-phone.ts'
import { expectOk, openWorld } from '../helpers/world.ts'
import { openPhonesV4, type PhonesV4, type PhoneV4 } from '../helpers/world-v4.ts'

let v4: PhonesV4
let line: HoldLine
beforeAll(async () => {
  const held = await startHeldServer()
  line = held.line
  const { server } = held
  const admin = `${server.admin.user}:${server.admin.password}`
  v4 = await openPhonesV4(await openWorld({ urls: [server.url], admin, advance: server.clock.advance, close: server.close }))
})
afterAll(() => v4.close())

const ALGORITHM = 'EC_P384'

test.each(Object.entries(changesOfPhones()))('%s whose code came before a BLOCK is granted', async (_, { prepare, check }) => {
  const { userId, phone } = await v4.activePhone(ALGORITHM)
  const granted = await atEachStatement(async (n) => {
    const before = (await phone.readStatus()).ctrByte
    const request = await prepare(phone, n)
    const met = await line.meet(
      n,
      () => phone.send(request),
      () => change(userId, 'BLOCK'),
    )
    const isAfterCode = (await phone.readStatus()).ctrByte !== before
    if (met.isMet) await change(userId, 'UNBLOCK')
    const { result } = met
    expect(isAfterCode ? [200] : [400, 401], `after statement ${n}: ${result.text}`).toContain(result.status)
    if (isAfterCode) await check(phone, request, result, n)
    await phone.exchange(phone.prepareValidation())
    return { ...met, isAfterCode }
  })
  expect(granted.filter(({ isMet, isAfterCode }) => isMet && isAfterCode).length).toBeGreaterThan(1)
})

test('upgrade/start whose code came before a BLOCK is granted, and can be confirmed', async () => {
  const upgrading = await openUpgradingPhone(v4, ALGORITHM)
  const { old, userId } = upgrading
  let last: PhoneV4 | undefined
  const granted = await atEachStatement(async (n) => {
    const before = (await old.readStatus()).ctrByte
    const phone = upgrading.newAttempt()
    const request = await upgrading.prepareStart({}, phone)
    const met = await line.meet(
      n,
      () => phone.send(request),
      () => change(userId, 'BLOCK'),
    )
    const isAfterCode = (await old.readStatus()).ctrByte !== before
    if (met.isMet) await change(userId, 'UNBLOCK')
    expect(isAfterCode ? [200] : [400, 401], `after statement ${n}: ${met.result.text}`).toContain(met.result.status)
    if (isAfterCode) {
      request.open(met.result)
      last = phone
      expect(await phone.readStatus()).toMatchObject({ currentVersion: 3, distance: 0, isDeadlocked: false })
    } else expectOk(await old.send(old.prepareValidation()))
    return { ...met, isAfterCode }
  })
  expect(granted.filter(({ isMet, isAfterCode }) => isMet && isAfterCode).length).toBeGreaterThan(1)
  await last?.exchange(last.prepareUpgradeConfirm())
  await last?.exchange(last.prepareValidation())
})

test('a start of an upgrade that is slow does not replace a later one', async () => {
  const upgrading = await openUpgradingPhone(v4, ALGORITHM)
  const { old } = upgrading
  // From now on the server remembers it, and needs one statement for a code.
  expectOk(await old.send(old.prepareValidation()))
  const statuses: number[] = []
  await atEachStatement(async (n) => {
    const [first, second] = [upgrading.newAttempt(), upgrading.newAttempt()]
    const slow = await upgrading.prepareStart({}, first)
    const later = await upgrading.prepareStart({}, second)
    // Both codes are made: what the second phone knows is what its answer says.
    const met = await line.meet(
      n + STATEMENTS_OF_CODE,
      () => first.send(slow),
      async () => later.open(expectOk(await second.send(later))),
    )
    const { result, isMet } = met
    statuses.push(result.status)
    expect([200, 400], result.text).toContain(result.status)
    if (isMet) {
      expect(await second.readStatus()).toMatchObject({ currentVersion: 3, distance: 0, isDeadlocked: false })
      if (result.status === 200) slow.open(result)
      // What the slow one was told, if anything, was true before.
      if (result.status === 200) expect((await first.send(first.prepareUpgradeConfirm())).status).toBe(401)
    }
    expectOk(await old.send(old.prepareValidation()))
    return met
  })
  expect(new Set(statuses)).toEqual(new Set([200, 400]))
  const last = upgrading.newAttempt()
  await last.exchange(await upgrading.prepareStart({}, last))
  await last.exchange(last.prepareUpgradeConfirm())
})

test('the status of 4.0 is read while the upgrade is confirmed', async () => {
  const versions = await atEachStatement(async (n) => {
    const { phone, ...upgrading } = await openUpgradingPhone(v4, ALGORITHM)
    await phone.exchange(await upgrading.prepareStart())
    const temporaryKey = await phone.fetchTemporaryKey('activation')
    const confirm = phone.prepareUpgradeConfirm()
    const speaking = phone.speaking({ dialect: 'Svc' })
    const status = await speaking.prepareEncrypted('/pa/v4/activation/status', 'activation', { temporaryKey })
    const met = await line.meet(
      n,
      () => speaking.send(status),
      () => phone.exchange(confirm),
    )
    expect(status.open(expectOk(met.result))).toMatchObject({ activationStatus: 'ACTIVE' })
    return met
  })
  expect(versions.length).toBeGreaterThan(2)
})

test('a temporary key of 4.0 is given while the upgrade is confirmed', async () => {
  const answers = await atEachStatement(async (n) => {
    const { phone, ...upgrading } = await openUpgradingPhone(v4, ALGORITHM)
    await phone.exchange(await upgrading.prepareStart())
    // Throws when it is refused.
    const send = () => phone.fetchTemporaryKey('activation')
    return line.meet(n, send, () => phone.exchange(phone.prepareUpgradeConfirm()))
  })
  expect(answers.length).toBeGreaterThan(2)
})

test('a refusal takes as many statements whichever activation a stranger names', async () => {
  const { phone } = await v4.activePhone(ALGORITHM)
  const [old, upgrading] = [await openUpgradingPhone(v4, ALGORITHM), await openUpgradingPhone(v4, ALGORITHM)]
  await upgrading.phone.exchange(await upgrading.prepareStart())
  const { claims } = phone.newTemporaryKeyRequest('activation')
  const confirm = phone.prepareUpgradeConfirm()
  const status = await phone.prepareEncrypted('/pa/v4/activation/status', 'activation')
  const key = (activationId: string) => {
    const body = Buffer.from(JSON.stringify({ requestObject: { jwt: hs384Jwt({ ...claims, activationId }, random(32)) } }))
    return { ...status, path: '/pa/v4/keystore/create', headers: { 'Content-Type': 'application/json' }, body }
  }
  const requests: readonly ((activationId: string) => Prepared<unknown>)[] = [
    key,
    (activationId) => withPair(status, 'activation_id', activationId),
    (activationId) => withPair(withPair(confirm, 'pa_activation_id', activationId), 'pa_nonce', b64(random(16))),
  ]
  for (const request of requests) {
    const { activationId } = phone.state
    const unknown = await countStatements(request(unknownFor(activationId)))
    for (const known of [old.old, upgrading.old]) expect(await countStatements(request(known.state.activationId))).toBe(unknown)
    // Its own envelope would open.
    if (request !== requests[1]) expect(await countStatements(request(activationId))).toBe(unknown)
  }
})

test('so does a wrong code for an approval', async () => {
  const { phone } = await v4.world.activePhone('3.3')
  const { phone: blocked, userId } = await v4.world.activePhone('3.3')
  expectOk(await v4.world.bank.change(userId, 'BLOCK'))
  const approval = withPair(phone.prepareAuthorize({ id: randomUUID() }, { factors: 'possession' }), 'pa_nonce', b64(random(16)))
  const count = (activationId: string) => countStatements(withPair(approval, 'pa_activation_id', activationId))
  const unknown = await count(unknownFor(phone.state.activationId))
  expect(await count(phone.state.activationId)).toBe(unknown)
  expect(await count(blocked.state.activationId)).toBe(unknown)
})

const unknownFor = (activationId: string): string => activationId.replace(/^.{8}/, '00000000')

/** How many statements it takes to refuse a request. */
async function countStatements(request: Prepared<unknown>): Promise<number> {
  const nothing = async (): Promise<void> => undefined
  const sent = await atEachStatement((n) => line.meet(n, () => send(v4.world.url, request), nothing))
  expect([400, 401], request.path).toContain(sent[0]?.result.status)
  return sent.length
}

interface Change {
  readonly prepare: (phone: PhoneV4, n: number) => Promise<Prepared<unknown>>
  /** What was granted is true. */
  readonly check: (phone: PhoneV4, request: Prepared<unknown>, reply: HttpReply, n: number) => Promise<unknown>
}

function changesOfPhones(): Record<string, Change> {
  return {
    'activation/rename': {
      prepare: (phone, n) => phone.prepareRename(`name ${n}`),
      check: async (phone, _request, _reply, n) => {
        const detail = await phone.exchange(await phone.prepareDetail(await phone.createToken()))
        expect(member(detail, 'responseObject', 'activationName')).toBe(`name ${n}`)
      },
    },
    'password/change': {
      prepare: (phone) => phone.preparePasswordChange(),
      check: async (phone, request, reply) => phone.adopt({ knowledge: request.open(reply) as Uint8Array }),
    },
    'biometry/add': {
      prepare: (phone) => phone.prepareBiometryAdd(),
      check: async (phone, request, reply) =>
        expect(await isAccepted(phone, { biometry: request.open(reply) as Uint8Array })).toBe(true),
    },
    'token/create': {
      prepare: (phone) => phone.prepareTokenCreate(),
      check: async (phone, request, reply) => {
        request.open(reply)
        const token = phone.state.tokens.at(-1)
        expect(token).toBeDefined()
        if (token) await phone.exchange(await phone.prepareDetail(token))
      },
    },
  }
}

/** Runs `act` with the first statement of its request held up, then with the second, until a request has no more of them. */
async function atEachStatement<T extends { readonly isMet: boolean }>(act: (n: number) => Promise<T>): Promise<T[]> {
  const results: T[] = []
  for (let n = 1; n < 30; n += 1) {
    const result = await act(n)
    results.push(result)
    if (!result.isMet) return results
  }
  throw new Error('a request with more than 30 statements')
}

const change = async (userId: string, to: 'BLOCK' | 'UNBLOCK'): Promise<unknown> =>
  expectOk(await v4.world.bank.change(userId, to))

// Requests that come at the same time share the statement that stores the outcome of a code: the later one would wait for it.
const STATEMENTS_OF_CODE = 1
