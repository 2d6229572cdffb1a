// Only a guess counts: a wrong code of more than one factor whose first component is right. Ids and keys of apps are public, and whoever
// knows them neither blocks a phone nor uses up an operation (v3 §10.5, v4 §7.4, mobile-token §4.5, cloud §6.6).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { b64, type PhoneVersion, random } from '../../phone/v3/crypto.ts'
import { withBody, withPair } from '../../phone/header.ts'
import { type HttpRequest, member, send } from '../../phone/http.ts'
import type { PhoneAlgorithm } from '../../phone/v4/crypto.ts'
import { serverUrl } from '../helpers/app.ts'
import { type OperationWorld, startOperationWorld } from '../helpers/operation-world.ts'
import { openPhonesV4, type PhonesV4 } from '../helpers/world-v4.ts'
import { expectOk, registrationOf } from '../helpers/world.ts'

let world: OperationWorld
let phonesV4: PhonesV4
beforeAll(async () => {
  const env = { PAWL_CODE_FAILURES_PER_MINUTE: '10000', PAWL_OTP_ATTEMPTS_PER_MINUTE: '10000' }
  // Only PostgreSQL has room for two.
  world = await startOperationWorld({ env, worksInBackground: false, servers: serverUrl() === undefined ? 1 : 2 })
  phonesV4 = await openPhonesV4(world)
})
afterAll(() => world.close())

type Factors = 'possession' | 'possession_knowledge' | 'possession_biometry'
interface Wrong {
  readonly factors?: Factors
  readonly wrongKeys?: { readonly possession?: Uint8Array; readonly knowledge?: Uint8Array; readonly biometry?: Uint8Array }
}

/** A phone of either generation, as far as these tests are the same for both. */
interface Subject {
  readonly userId: string
  readonly code: 'pa_signature' | 'pa_auth_code'
  readonly keyLength: number
  readonly validate: (how?: Wrong) => HttpRequest
  readonly approve: (operation: { id: string; data: string }, how?: Wrong) => HttpRequest
  /** A password for the operation of this nonce. */
  readonly typeOtp: (operation: { id: string; data: string }, nonce: string, how?: Wrong) => string
  readonly failedAttempts: () => Promise<number>
}

async function openV3(version: PhoneVersion): Promise<Subject> {
  const { userId, phone } = await world.activePhone(version)
  return {
    userId,
    code: 'pa_signature',
    keyLength: 16,
    validate: (how = {}) => phone.prepareValidation(how),
    approve: (operation, how = {}) => phone.prepareAuthorize(operation, how),
    typeOtp: ({ id: operationId, data }, nonce, how = {}) =>
      phone.computeOtp({ operationId, data, nonce, title: '', message: '', flags: '', totp: undefined }, how),
    failedAttempts: async () => (await phone.readStatus({ withChallenge: version !== '3.0' })).failedAttempts,
  }
}

async function openV4(algorithm: PhoneAlgorithm): Promise<Subject> {
  const { userId, phone } = await phonesV4.activePhone(algorithm)
  return {
    userId,
    code: 'pa_auth_code',
    keyLength: 32,
    validate: (how = {}) => phone.prepareValidation(how),
    approve: ({ id, data }, how = {}) => {
      const body = JSON.stringify({ requestObject: { id, data } })
      return phone.prepareSigned({ path: AUTHORIZE, resourceId: '/operation/authorize', body, ...how })
    },
    typeOtp: ({ id: operationId, data: operationData }, nonce, how = {}) =>
      phone.typeOtp({ operationId, operationData, nonce, ...how }),
    failedAttempts: async () => (await phone.readStatus()).failedAttempts,
  }
}

const AUTHORIZE = '/api/auth/token/app/operation/authorize'
const ALGORITHMS = ['EC_P384', 'EC_P384_ML_L3', 'EC_P384_ML_L5'] as const
const SUBJECTS: readonly (readonly [string, () => Promise<Subject>])[] = [
  // Codes of digits, and codes of Base64.
  ...(['3.0', '3.3'] as const).map((version) => [version, () => openV3(version)] as const),
  ...ALGORITHMS.map((algorithm) => [algorithm, () => openV4(algorithm)] as const),
]

const status = async (request: HttpRequest, at = 0): Promise<number> =>
  (await send(world.urls[at % world.urls.length] ?? world.url, request)).status
const statuses = (requests: readonly HttpRequest[]): Promise<number[]> => Promise.all(requests.map(status))
const stored = async (id: string) => {
  const { status, failureCount } = await world.stored(id)
  return { status, failureCount }
}

describe.each(SUBJECTS)('of a phone of %s', (_, open) => {
  /** Codes that somebody without the key of possession can make up, with the phone's own id and the key of its app. */
  function strange(subject: Subject, make: (how?: Wrong) => HttpRequest): HttpRequest[] {
    const { code, keyLength } = subject
    const [genuine, first] = [codeOf(make(), code), codeOf(make({ factors: 'possession' }), code)]
    // The counter values of all of them are tried.
    const one = make()
    const isDecimal = /^[\d-]+$/.test(genuine)
    const garbage = () =>
      isDecimal ? genuine.replaceAll(/\d/g, () => String(Math.floor(Math.random() * 10))) : b64(random(keyLength * 2))
    const foreign = (factors: Factors) => make({ factors, wrongKeys: { possession: random(keyLength) } })
    const others = [
      foreign('possession'),
      foreign('possession_knowledge'),
      foreign('possession_biometry'),
      // Of another request, with one component too few or too many, and no code at all.
      withPair(make(), code, genuine),
      withPair(make(), code, first),
      withPair(make(), code, isDecimal ? `${genuine}-12345678` : b64(Buffer.concat([Buffer.from(genuine, 'base64'), random(1)]))),
      withPair(make(), code, ''),
      withBody(make(), '{"requestObject":{"id":"x"}}'),
    ]
    return [...Array.from({ length: 42 }, () => withPair(one, code, garbage())), ...others]
  }

  test('100 codes of a stranger change neither phone nor operation', async () => {
    const subject = await open()
    const operation = await world.operation(subject.userId)
    const codes = [
      ...strange(subject, (how) => subject.validate(how)),
      ...strange(subject, (how) => subject.approve(operation, how)),
    ]
    expect(codes).toHaveLength(100)
    for (let i = 0; i < codes.length; i += 10) {
      const answers = await statuses(codes.slice(i, i + 10))
      expect(new Set(answers)).toEqual(new Set([401]))
    }
    expect(await registrationOf(world, subject.userId)).toBe('ACTIVE')
    expect(await subject.failedAttempts()).toBe(0)
    expect(await stored(operation.id)).toEqual({ status: 'PENDING', failureCount: 0 })
  })

  test.each(['possession_knowledge', 'possession_biometry'] as const)('five wrong codes of %s block', async (factors) => {
    const subject = await open()
    const wrong = { factors, wrongKeys: { knowledge: random(subject.keyLength), biometry: random(subject.keyLength) } }
    const operation = await world.operation(subject.userId)
    for (let i = 1; i <= 5; i += 1) {
      const request = i % 2 ? subject.validate(wrong) : subject.approve(operation, wrong)
      expect(await status(request)).toBe(401)
      expect(await subject.failedAttempts()).toBe(i)
      expect(await registrationOf(world, subject.userId)).toBe(i < 5 ? 'ACTIVE' : 'BLOCKED')
      expect(await stored(operation.id)).toEqual({ status: 'PENDING', failureCount: Math.floor(i / 2) })
    }
  })

  test('ten codes that come at once out of their order leave it active, and so does one that comes nine times', async () => {
    const subject = await open()
    const codes = Array.from({ length: 10 }, () => subject.validate())
    const answers = await statuses(codes.toReversed())
    expect(answers.filter((answer) => answer === 200).length).toBeGreaterThanOrEqual(1)
    expect(await statuses([...codes, ...codes])).toEqual(Array.from({ length: 20 }, () => 401))
    const code = subject.validate()
    expect((await statuses(Array.from({ length: 9 }, () => code))).filter((answer) => answer === 200)).toHaveLength(1)
    expect(await subject.failedAttempts()).toBe(0)
    expect(await registrationOf(world, subject.userId)).toBe('ACTIVE')
    expect(await status(subject.validate())).toBe(200)
  })

  test('an offline password counts for the operation, and for the phone when its first group is right', async () => {
    const subject = await open()
    const { keyLength, userId, typeOtp } = subject
    const operation = await world.operation(userId, { template: await world.template({ maxFailureCount: 100 }) })
    const nonce = String(member(expectOk(await world.bank.offlineQr(operation.id)).json, 'nonce'))
    const type = async (otp: string) => (await world.bank.offlineOtp(operation.id, otp, nonce)).status
    const passwords = Array.from({ length: 9 }, () => typeOtp(operation, nonce, { wrongKeys: { possession: random(keyLength) } }))
    // The groups the other way round.
    passwords.push(typeOtp(operation, nonce).split('-').reverse().join('-'))
    for (const otp of passwords) expect(await type(otp)).toBe(400)
    expect(await stored(operation.id)).toEqual({ status: 'PENDING', failureCount: 10 })
    expect(await subject.failedAttempts()).toBe(0)
    for (let i = 1; i <= 5; i += 1) {
      expect(await type(typeOtp(operation, nonce, { wrongKeys: { knowledge: random(keyLength) } }))).toBe(400)
      expect(await subject.failedAttempts()).toBe(i)
    }
    expect(await stored(operation.id)).toEqual({ status: 'PENDING', failureCount: 15 })
    expect(await registrationOf(world, userId)).toBe('BLOCKED')
  })
})

describe.each(ALGORITHMS)('of a phone of %s that waits for its commit', (algorithm) => {
  test('a confirmation with a wrong key of knowledge uses an attempt up, and one of a stranger none', async () => {
    const { phone, userId } = await phonesV4.pendingPhone(algorithm)
    const confirm = (wrongKeys: NonNullable<Wrong['wrongKeys']>) => status(phone.prepareConfirm(true, { wrongKeys }))
    for (let i = 0; i < 8; i += 1) expect(await confirm({ possession: random(32) })).toBe(401)
    expect(await phone.readStatus()).toMatchObject({ failedAttempts: 0 })
    expect(await confirm({ knowledge: random(32) })).toBe(401)
    expect(await phone.readStatus()).toMatchObject({ failedAttempts: 1 })
    expectOk(await world.bank.commit(userId))
    expect(await confirm({})).toBe(200)
    expect(await registrationOf(world, userId)).toBe('ACTIVE')
  })
})

/** The code in an authorization header. */
const codeOf = ({ headers }: HttpRequest, name: string): string =>
  new RegExp(`${name}="([^"]*)"`).exec(Object.values(headers).join())?.[1] ?? ''
