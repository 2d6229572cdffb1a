// Each request takes as many statements as docs/PERFORMANCE.md says. `vitest run -u` on this file writes the table there.
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { b64, random } from '../../phone/v3/crypto.ts'
import { type HttpReply, member, send, sendJson } from '../../phone/http.ts'
import type { Prepared } from '../../phone/v3/state.ts'
import { createPhone } from '../../phone/v3/virtual-phone.ts'
import type { Bank } from '../helpers/bank.ts'
import { callDoor, headerOf, RESOURCE, toDoor } from '../helpers/door.ts'
import { callEncryption, openAt, sealAt, sealForBank, signForBank } from '../helpers/door-envelope.ts'
import { type CountedServer, startCountedServer, type Statements } from '../helpers/statements.ts'
import { type Bound, expectOk, openWorldOn, type World } from '../helpers/world.ts'
import { type BoundV4, openPhonesV4, type PhonesV4 } from '../helpers/world-v4.ts'

let counted: CountedServer
let world: World
let v4: PhonesV4
/** What calls the cloud API in production: a credential of one application. */
let backEnd: Bank
beforeAll(async () => {
  counted = await startCountedServer()
  // A credential is looked at again every few seconds, which is not what is counted here.
  counted.server.clock.stop()
  world = await openWorldOn(counted.server)
  v4 = await openPhonesV4(world)
  const credential = { username: 'back-end', role: 'integration', application: world.applicationId }
  const { json } = expectOk(await world.bank.call('POST', '/admin/users', credential))
  backEnd = world.bank.as(`back-end:${String(member(json, 'password'))}`)
  // From its second call on a credential is remembered.
  expectOk(await backEnd.view(world.newUser()))
  // And the application of a registration from the first one on.
  expectOk(await backEnd.register(world.newUser()))
  // And custom objects from the first status on, texts of a template from the first list on.
  expectOk(await statusOf(randomUUID()))
  const { phone } = await holder()
  expectOk(await phone.send(await phone.prepareTokenCall('list', await phone.createToken('possession'))))
})
afterAll(() => world.close())

/** Makes a request ready; what it returns sends it and is counted. */
type Ask = () => Promise<() => Promise<HttpReply>>

interface Row {
  readonly endpoint: string
  readonly right: Ask
  /** What is refused because of something false in it. */
  readonly wrong?: Ask
  /** What names an activation, user or operation that does not exist. */
  readonly unknown?: Ask
}

const sendPrepared = (prepared: Prepared<unknown>) => () => send(world.url, prepared)

/** The same request for an activation and a token that do not exist. */
function forNobody<T extends Prepared<unknown>>(prepared: T, activationId: string): T {
  const other = randomUUID()
  const rename = (value: string): string => value.replace(activationId, other).replace(/token_id="[^"]*"/, `token_id="${other}"`)
  const headers = Object.entries(prepared.headers).map(([name, value]) => [name, rename(value)])
  const body = Buffer.from(Buffer.from(prepared.body).toString('latin1').replace(activationId, other), 'latin1')
  return { ...prepared, headers: Object.fromEntries(headers) as Record<string, string>, body }
}

/** The three requests of a phone that the server has heard of lately. */
function ofPhone<B extends Bound | BoundV4>(
  endpoint: string,
  bind: () => Promise<B>,
  prepare: (bound: B, isWrong: boolean) => Promise<Prepared<unknown>> | Prepared<unknown>,
): Row {
  const ask =
    (kind: 'right' | 'wrong' | 'unknown'): Ask =>
    async () => {
      const bound = await bind()
      const prepared = await prepare(bound, kind === 'wrong')
      return sendPrepared(kind === 'unknown' ? forNobody(prepared, bound.phone.state.activationId) : prepared)
    }
  return { endpoint, right: ask('right'), wrong: ask('wrong'), unknown: ask('unknown') }
}

/** A phone whose last code this process has accepted. */
async function knownPhone(): Promise<Bound> {
  const bound = await world.activePhone('3.3')
  expectOk(await bound.phone.send(bound.phone.prepareValidation()))
  return bound
}

async function knownPhoneV4(): Promise<BoundV4> {
  const bound = await v4.activePhone('EC_P384')
  expectOk(await bound.phone.send(bound.phone.prepareValidation()))
  return bound
}

const wrongly = (isWrong: boolean) => (isWrong ? { wrongKeys: { possession: random(16) } } : {})
const wronglyV4 = (isWrong: boolean) => (isWrong ? { wrongKeys: { possession: random(32) } } : {})
const spoiled = (isWrong: boolean) =>
  isWrong ? { alterEnvelope: (envelope: object) => ({ ...envelope, mac: b64(random(32)) }) } : {}
const spoiledV4 = (isWrong: boolean) =>
  isWrong ? { alterEnvelope: (envelope: object) => ({ ...envelope, encryptedData: withOtherTag(envelope) }) } : {}

/** Its encrypted data with another last byte. */
function withOtherTag(envelope: object): string {
  const bytes = Buffer.from(String(member(envelope, 'encryptedData')), 'base64')
  bytes.writeUInt8(bytes.readUInt8(bytes.length - 1) ^ 1, bytes.length - 1)
  return bytes.toString('base64')
}

const activate = (endpoint: string, prepare: (code: string, isWrong: boolean) => Promise<Prepared<unknown>>): Row => ({
  endpoint,
  right: async () => sendPrepared(await prepare((await world.register()).code, false)),
  wrong: async () => sendPrepared(await prepare((await world.register()).code, true)),
  unknown: async () => sendPrepared(await prepare('AAAAA-AAAAA-AAAAA-AAAAA', false)),
})

const DEVICE: readonly Row[] = [
  keystoreOf('application'),
  keystoreOf('activation'),
  activate('`/pa/v3/activation/create`', (code, isWrong) => world.newPhone('3.3').prepareActivation(code, spoiled(isWrong))),
  {
    endpoint: '`/pa/v3/activation/status`',
    right: async () => {
      const { phone } = await knownPhone()
      return () => statusOf(phone.state.activationId)
    },
    unknown: async () => () => statusOf(randomUUID()),
  },
  ofPhone(
    '`/pa/v3/signature/validate`, first code that a process sees',
    () => world.activePhone('3.3'),
    ({ phone }, isWrong) => phone.prepareValidation(wrongly(isWrong)),
  ),
  ofPhone('`/pa/v3/signature/validate`, next code', knownPhone, ({ phone }, isWrong) =>
    phone.prepareValidation(wrongly(isWrong)),
  ),
  ofPhone('`/pa/v3/token/create`', knownPhone, ({ phone }, isWrong) => phone.prepareTokenCreate(wrongly(isWrong))),
  ofPhone('`/pa/v3/activation/detail`', knownPhone, async ({ phone }, isWrong) => {
    const token = await phone.createToken()
    return phone.prepareDetail(isWrong ? { ...token, secret: random(16) } : token)
  }),
  ofPhone('`/pa/v3/vault/unlock`', knownPhone, ({ phone }, isWrong) => phone.prepareVaultUnlock(wrongly(isWrong))),
  ofPhone('`/pa/v3/activation/rename`', knownPhone, ({ phone }, isWrong) => phone.prepareRename('Mine', wrongly(isWrong))),
  ofPhone('`/pa/v3/user/info`', knownPhone, ({ phone }, isWrong) => phone.prepareUserInfo(spoiled(isWrong))),
  ofPhone('`/pa/v3/activation/remove`', knownPhone, ({ phone }, isWrong) => phone.prepareRemove(wrongly(isWrong))),
  activate('`/pa/v4/activation/create`', (code, isWrong) => v4.newPhone('EC_P384').prepareActivation(code, spoiledV4(isWrong))),
  ofPhone('`/pa/v4/activation/status`', knownPhoneV4, ({ phone }, isWrong) =>
    phone.prepareEncrypted('/pa/v4/activation/status', 'activation', spoiledV4(isWrong)),
  ),
  ofPhone('`/pa/v4/auth/validate`, next code', knownPhoneV4, ({ phone }, isWrong) => phone.prepareValidation(wronglyV4(isWrong))),
  ofPhone('`/pa/v4/token/create`', knownPhoneV4, ({ phone }, isWrong) => phone.prepareTokenCreate(wronglyV4(isWrong))),
  ofPhone('`/pa/v4/activation/detail`', knownPhoneV4, async ({ phone }, isWrong) => {
    const token = await phone.createToken()
    return phone.prepareDetail(isWrong ? { ...token, secret: random(32) } : token)
  }),
  ofPhone('`/pa/v4/vault/unlock`', knownPhoneV4, ({ phone }, isWrong) =>
    phone.prepareVaultUnlock('KDK_APP_VAULT_2FA', wronglyV4(isWrong)),
  ),
]

function keystoreOf(scope: 'application' | 'activation'): Row {
  const ask =
    (kind: 'right' | 'wrong' | 'unknown'): Ask =>
    async () => {
      const { phone } = await knownPhone()
      const app = kind === 'wrong' ? { ...world.app, applicationSecret: b64(random(16)) } : world.app
      const other = createPhone({ url: world.url, app, version: '3.3' })
      Object.assign(other.state, phone.state, kind === 'unknown' && { activationId: randomUUID() })
      const { json } = other.newTemporaryKeyRequest(scope)
      return () => sendJson(world.url, 'POST', '/pa/v3/keystore/create', json)
    }
  const endpoint = `\`/pa/v3/keystore/create\`, ${scope} scope`
  return { endpoint, right: ask('right'), wrong: ask('wrong'), ...(scope === 'activation' && { unknown: ask('unknown') }) }
}

const statusOf = (activationId: string): Promise<HttpReply> =>
  sendJson(world.url, 'POST', '/pa/v3/activation/status', { requestObject: { activationId, challenge: b64(random(16)) } })

/** A phone with a token and an operation that waits for it. */
async function holder(): Promise<Bound & { readonly operation: { readonly id: string; readonly data: string } }> {
  const bound = await knownPhone()
  const created = expectOk(await world.bank.createOperation({ userId: bound.userId, template: 'login' }))
  return { ...bound, operation: { id: String(member(created.json, 'operationId')), data: 'A2' } }
}

const called = (name: 'list' | 'detail' | 'inboxCount'): Row =>
  ofPhone(
    `\`${name === 'inboxCount' ? '/api/inbox/count' : `/api/auth/token/app/operation/${name}`}\``,
    holder,
    async (bound, isWrong) => {
      const { phone, operation } = bound
      const token = await phone.createToken('possession')
      return phone.prepareTokenCall(name, isWrong ? { ...token, secret: random(16) } : token, { id: operation.id })
    },
  )

const MOBILE_TOKEN: readonly Row[] = [
  called('list'),
  called('detail'),
  called('inboxCount'),
  ofPhone('`/api/auth/token/app/operation/authorize`', holder, ({ phone, operation }, isWrong) =>
    phone.prepareAuthorize(operation, wrongly(isWrong)),
  ),
  ofPhone('`/api/auth/token/app/operation/cancel`', holder, ({ phone, operation }, isWrong) =>
    phone.prepareReject(operation.id, wrongly(isWrong)),
  ),
  ofPhone('`/api/auth/token/app/operation/history`', holder, ({ phone }, isWrong) =>
    phone.prepareSignedCall('history', {}, wrongly(isWrong)),
  ),
]

/** A call of the bank for a user with a phone, and for one that has none. */
const ofBank = (endpoint: string, call: (bound: { userId: string; operationId: string }) => Promise<HttpReply>): Row => ({
  endpoint,
  right: async () => {
    const { userId, operation } = await holder()
    return () => call({ userId, operationId: operation.id })
  },
  unknown: async () => () => call({ userId: world.newUser(), operationId: randomUUID() }),
})

const CLOUD: readonly Row[] = [
  {
    endpoint: '`POST /registration`',
    right: async () => () => backEnd.register(world.newUser()),
    wrong: async () => {
      const userId = world.newUser()
      await backEnd.register(userId)
      return () => backEnd.register(userId)
    },
  },
  {
    endpoint: '`POST /registration/commit`',
    right: async () => {
      const { userId } = await world.pendingPhone('3.3')
      return () => backEnd.commit(userId)
    },
    unknown: async () => () => backEnd.commit(world.newUser()),
  },
  ofBank('`GET /registration`', ({ userId }) => backEnd.view(userId)),
  ofBank('`PUT /registration` `BLOCK`', ({ userId }) => backEnd.change(userId, 'BLOCK')),
  ofBank('`DELETE /registration`', ({ userId }) => backEnd.remove(userId)),
  ofBank('`POST /operations`', ({ userId }) => backEnd.createOperation({ userId, template: 'login' })),
  ofBank('`GET /operations`', ({ operationId }) => backEnd.readOperation(operationId)),
  ofBank('`DELETE /operations`', ({ operationId }) => backEnd.cancelOperation(operationId)),
  ofBank('`GET /operations/offline/qr`', ({ operationId }) => backEnd.offlineQr(operationId)),
  {
    endpoint: '`POST /operations/offline/otp`',
    right: () => offline(false),
    wrong: () => offline(true),
  },
  ofBank('`GET /audit/log`', ({ userId }) => backEnd.call('GET', `/audit/log?userId=${userId}`)),
]

/** A call of a door for what a phone sent to the bank. */
function ofDoor(
  endpoint: string,
  door: string,
  prepare: (bound: Bound, isWrong: boolean) => Promise<Prepared<unknown>>,
  { key, ...more }: Readonly<Record<string, unknown>> & { readonly key?: () => string } = {},
): Row {
  const ask =
    (kind: 'right' | 'wrong' | 'unknown'): Ask =>
    async () => {
      const bound = await knownPhone()
      const prepared = await prepare(bound, kind === 'wrong')
      const sent = kind === 'unknown' ? forNobody(prepared, bound.phone.state.activationId) : prepared
      const { client, ...request } = toDoor(sent, more)
      const body = door === 'code' ? { client, ...request } : { client, token: headerOf(sent, 'Token'), ...more }
      return async () => {
        const reply = expectOk(await callDoor(backEnd, door, body, key?.()))
        // A verdict that is false is counted as a refusal is.
        return { ...reply, status: member(reply.json, 'isValid') === true ? 200 : 0 }
      }
    }
  return { endpoint, right: ask('right'), wrong: ask('wrong'), unknown: ask('unknown') }
}

const signedForBank = async ({ phone }: Bound, isWrong: boolean) =>
  phone.prepareSigned({ path: '/bank/transfer', resourceId: RESOURCE, body: '{}', ...wrongly(isWrong) })
const tokenForBank = async ({ phone }: Bound, isWrong: boolean) => {
  const token = await phone.createToken()
  return phone.prepareDetail(isWrong ? { ...token, secret: random(16) } : token)
}

const DOORS: readonly Row[] = [
  ofDoor('`POST /verification/code`', 'code', signedForBank, { key: randomUUID }),
  ofDoor('`POST /verification/token`', 'token', tokenForBank, { key: randomUUID }),
  ofDoor('`POST /verification/token`, repeatable', 'token', tokenForBank, { isRepeatable: true }),
]

test.each([
  ['code', signedForBank],
  ['token', tokenForBank],
] as const)('a key takes no statement more at the door for a %s', async (name, prepare) => {
  const costs = []
  for (const how of [{}, { key: randomUUID }]) {
    const { right, wrong, unknown } = ofDoor(name, name, prepare, how)
    costs.push([await measure(right, [200, name]), await measure(wrong, [0, name]), await measure(unknown)])
  }
  expect(costs[0]).toEqual(costs[1])
})

test('probes for readiness that come at once share a statement, and the next one has its own', async () => {
  const probe = () => counted.server.context.pingDatabase()
  const { statements } = await counted.count(async () => {
    await Promise.all(Array.from({ length: 50 }, probe))
    await probe()
  })
  expect(statements.texts).toEqual(['select 1', 'select 1'])
})

test('an envelope is one read and one write, one with a code has one write more, and an answer is one write', async () => {
  const opening =
    (make: typeof sealForBank, key?: string): Ask =>
    async () => {
      const sent = await make((await knownPhone()).phone, '{}')
      return () => callEncryption(backEnd, 'open', sent.body, key)
    }
  const sealing: Ask = async () => {
    const { sealTicket } = await openAt(backEnd, await sealForBank((await knownPhone()).phone, '{}'))
    return () => sealAt(backEnd, sealTicket, '{}')
  }
  const right = [200, 'encryption'] as const
  expect(await measure(opening(sealForBank), right)).toBe('1 + 1')
  expect(await measure(opening(sealForBank, randomUUID()), right)).toBe('1 + 1')
  expect(await measure(opening(signForBank), right)).toBe('1 + 2')
  expect(await measure(sealing, right)).toBe('0 + 1')
})

test('a challenge without connection is one read and one write, and its answer two of each, whatever comes of it', async () => {
  const { phone, userId } = await world.activePhone('3.3')
  const { activationId } = phone.state
  const covered = { resourceId: '/cash', body: 'x' }
  const create = (who: object): Promise<HttpReply> =>
    backEnd.call('POST', '/offline/challenges', { ...who, data: 'Pay?', resourceId: '/cash', body: b64(Buffer.from('x')) })
  const answering =
    (who: object, options: object = {}, named: object = {}): Ask =>
    async () => {
      const { json } = expectOk(await create(who))
      const otp = phone.answerOffline({ ...covered, nonce: String(member(json, 'nonce')) }, options)
      return () => backEnd.call('POST', '/offline/verification', { challengeId: member(json, 'challengeId'), otp, ...named })
    }
  expect(await measure(async () => () => create({ activationId }), [200, 'challenge'])).toBe('1 + 1')
  expect(await measure(answering({ activationId }), [200, 'right'])).toBe('2 + 2')
  const guess = { wrongKeys: { knowledge: random(32) } }
  const wrong = { wrongKeys: { possession: random(16), knowledge: random(32) } }
  for (const keys of [guess, wrong]) expect(await measure(answering({ activationId }, keys), [200, 'wrong'])).toBe('2 + 2')
  // The same for a user who is there and one who is not.
  for (const named of [{ userId }, { userId: 'nobody' }])
    expect(await measure(answering({}, {}, named), [200, 'named'])).toBe('3 + 2')
})

async function offline(isWrong: boolean): Promise<() => Promise<HttpReply>> {
  const { phone, operation } = await holder()
  const text = String(member(expectOk(await backEnd.offlineQr(operation.id)).json, 'operationQrCodeData'))
  const qr = phone.scanOperation(text)
  const otp = phone.computeOtp(qr, wrongly(isWrong))
  return () => backEnd.offlineOtp(operation.id, otp, qr.nonce)
}

const TABLES = [
  ['Device API', DEVICE],
  ['Mobile token API', MOBILE_TOKEN],
  ['Cloud API', [...CLOUD, ...DOORS]],
] as const

/** Lines of the table, as they are counted. */
const lines = new Map<string, string>()

describe.each(TABLES)('%s', (_, rows) => {
  test.each(rows)('$endpoint', async ({ endpoint, right, wrong, unknown }) => {
    const cells = [
      await measure(right, [200, `right ${endpoint}`]),
      await measure(wrong, [0, `wrong ${endpoint}`]),
      await measure(unknown),
    ]
    lines.set(endpoint, `| ${endpoint} | ${cells.join(' | ')} |`)
  })
})

test('a signature of a device key takes a read and a write, whatever comes of it', async () => {
  const { phone } = await world.activePhone('3.3')
  const [signer] = phone.deviceSigners()
  const data = Buffer.from('x')
  const ask = (activationId: string, sent: Uint8Array): Promise<HttpReply> =>
    backEnd.call('POST', '/verification/device-signature', {
      activationId,
      data: b64(sent),
      signature: b64(signer?.signDer(data) ?? data),
    })
  for (const [reason, request] of [
    [undefined, () => ask(phone.state.activationId, data)],
    ['SIGNATURE_WRONG', () => ask(phone.state.activationId, Buffer.from('y'))],
    ['UNKNOWN', () => ask(randomUUID(), data)],
  ] as const) {
    const { result, statements } = await counted.count(request)
    expect(member(expectOk(result).json, 'reason')).toBe(reason)
    expect(statements).toMatchObject({ reads: 1, writes: 1, transactions: 0 })
  }
})

test('docs/PERFORMANCE.md tells how many statements each request takes', async () => {
  const parts = TABLES.flatMap(([title, rows]) => [
    `| ${title} | right | wrong | unknown |`,
    '|---|---|---|---|',
    ...rows.map(({ endpoint }) => lines.get(endpoint) ?? ''),
    '',
  ])
  const document = fileURLToPath(new URL('../../docs/PERFORMANCE.md', import.meta.url))
  const [before, rest] = readFileSync(document, 'utf8').split(START)
  const [, after] = rest?.split(END) ?? []
  await expect(`${before}${START}\n\n${parts.join('\n')}\n${END}${after}`).toMatchFileSnapshot(document)
})

const [START, END] = ['<!-- statements -->', '<!-- end of statements -->']

/** The cell of a request: its statements, with `T` for each transaction around some of them. */
async function measure(ask: Ask | undefined, expected?: readonly [status: 200 | 0, what: string]): Promise<string> {
  if (ask === undefined) return ''
  const request = await ask()
  const { result, statements } = await counted.count(request)
  if (expected) {
    const [status, what] = expected
    expect({ what, isRight: result.status === 200, text: result.text }).toMatchObject({ what, isRight: status === 200 })
  }
  return render(statements)
}

const render = ({ reads, writes, transactions }: Statements): string =>
  `${reads} + ${writes}${transactions === 0 ? '' : ` ${'T'.repeat(transactions)}`}`
