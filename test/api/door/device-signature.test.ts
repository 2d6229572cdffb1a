// POST /verification/device-signature: what phones of every kind sign with their device keys, in every form, and what is not that (cloud §14.1).
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { compactJws, type DeviceSigner, generalJws, signJwsPart } from '../../../phone/device-signature.ts'
import type { HttpReply } from '../../../phone/http.ts'
import { member } from '../../../phone/http.ts'
import { b64 } from '../../../phone/v3/crypto.ts'
import { newSigningPair } from '../../../phone/v4/crypto.ts'
import { v4DeviceSigners } from '../../../phone/device-signature.ts'
import { heldActivation, insertAuditEvent } from '../../../src/storage/audit/audit.ts'
import { inTransaction } from '../../../src/storage/database/database.ts'
import type { Bank } from '../../helpers/bank.ts'
import {
  auditLines,
  type DoorWorld,
  expectVerdict,
  type SigningPhone,
  signerOf,
  startDoorWorld,
} from '../../helpers/door-world.ts'
import { expectError, MINUTE, readCounters } from '../../helpers/expectations.ts'
import { upgradeOf } from '../../helpers/upgrading-phone.ts'
import { expectOk } from '../../helpers/world.ts'

let world: DoorWorld
beforeAll(async () => {
  world = await startDoorWorld()
})
afterAll(() => world.close())

const DATA = Buffer.from('{"contract":7,"text":"příliš"}')
const PATH = '/verification/device-signature'

const b64Url = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url')
const ask = (request: Readonly<Record<string, unknown>>, bank: Bank = world.bank): Promise<HttpReply> =>
  bank.call('POST', PATH, request)
/** A plain signature of the first key in DER, changed by `more`. */
const askDer = (phone: SigningPhone, more: Readonly<Record<string, unknown>> = {}, bank?: Bank): Promise<HttpReply> =>
  ask({ activationId: phone.activationId, data: b64(DATA), signature: b64(signerOf(phone).signDer(DATA)), ...more }, bank)
const askJws = (phone: SigningPhone, jws: unknown, more: Readonly<Record<string, unknown>> = {}): Promise<HttpReply> =>
  ask({ activationId: phone.activationId, jws, ...more })

const own = ({ activationId, userId }: SigningPhone, state = 'ACTIVE') => ({ activationId, userId, state })
const valid = (phone: SigningPhone, ...verified: readonly string[]) => ({ isValid: true, ...own(phone), verified })
const validJws = (phone: SigningPhone, ...verified: readonly string[]) => ({ ...valid(phone, ...verified), payload: b64(DATA) })
const invalid = (phone: SigningPhone, reason: string, ...verified: readonly string[]) => ({
  isValid: false,
  reason,
  ...own(phone),
  verified,
})
const UNKNOWN = { isValid: false, reason: 'UNKNOWN', verified: [] }
const FORM = { isValid: false, reason: 'FORM', verified: [] }

describe.each([
  ['EC_P256', 'ES256'],
  ['EC_P384', 'ES384'],
] as const)('a phone of %s', (algorithm, name) => {
  let phone: SigningPhone
  let signer: DeviceSigner
  beforeAll(async () => {
    phone = await world.signingPhone(algorithm)
    signer = signerOf(phone)
  })

  test('has signed in DER, in JOSE and as a JWS of both kinds', async () => {
    const plain = { activationId: phone.activationId, data: b64(DATA) }
    expectVerdict(await askDer(phone), valid(phone, name))
    expectVerdict(await askDer(phone, { format: 'DER', algorithm: 'ECDSA', states: ['ACTIVE'] }), valid(phone, name))
    expectVerdict(await ask({ ...plain, signature: b64(signer.sign(DATA)), format: 'JOSE' }), valid(phone, name))
    expectVerdict(await askJws(phone, compactJws(signer, DATA)), validJws(phone, name))
    expectVerdict(await askJws(phone, generalJws([signer], DATA)), validJws(phone, name))
    expectVerdict(await askDer(phone, { keys: ['ECDSA'] }), valid(phone, name))
    const nothing = { ...plain, data: '', signature: b64(signer.signDer(new Uint8Array(0))) }
    expectVerdict(await ask(nothing), valid(phone, name))
  })

  test('has not signed other data, in another form, or with another key', async () => {
    const plain = { activationId: phone.activationId, data: b64(DATA) }
    const wrong = invalid(phone, 'SIGNATURE_WRONG')
    expectVerdict(await askDer(phone, { data: b64(Buffer.from('x')) }), wrong)
    expectVerdict(await askDer(phone, { format: 'JOSE' }), wrong)
    expectVerdict(await ask({ ...plain, signature: b64(signer.sign(DATA)), format: 'DER' }), wrong)
    for (const bytes of ['', 'AA', b64(new Uint8Array(64)), b64(new Uint8Array(96))]) {
      expectVerdict(await ask({ ...plain, signature: bytes }), wrong)
      expectVerdict(await ask({ ...plain, signature: bytes, format: 'JOSE' }), wrong)
    }
    const other = await world.signingPhone(algorithm)
    expectVerdict(await ask({ ...plain, signature: b64(signerOf(other).signDer(DATA)) }), wrong)
    expectVerdict(await askJws(phone, compactJws(signerOf(other), DATA)), wrong)
    expectVerdict(await askDer(other, { activationId: phone.activationId }), wrong)
    const [header, , signature] = compactJws(signer, DATA).split('.')
    expectVerdict(await askJws(phone, `${header}.${b64(Buffer.from('other data'))}.${signature}`.replaceAll('=', '')), wrong)
  })

  test('has no key of ML-DSA, nor one of another curve', async () => {
    const plain = { activationId: phone.activationId, data: b64(DATA) }
    const [strange = signer] = algorithm === 'EC_P256' ? v4DeviceSigners('EC_P384', newSigningPair('EC_P384')) : []
    expectVerdict(await askDer(phone, { keys: ['ECDSA', 'ML_DSA_65'] }), invalid(phone, 'KEYS_MISSING', name))
    expectVerdict(await askDer(phone, { keys: ['ML_DSA_87'] }), invalid(phone, 'KEYS_MISSING', name))
    expectVerdict(
      await ask({ ...plain, signature: b64(new Uint8Array(3309)), algorithm: 'ML_DSA' }),
      invalid(phone, 'KEYS_MISSING'),
    )
    if (strange !== signer) {
      expectVerdict(await askJws(phone, compactJws(strange, DATA)), invalid(phone, 'KEYS_MISSING'))
      expectVerdict(await askJws(phone, generalJws([signer, strange], DATA)), invalid(phone, 'KEYS_MISSING', name))
    }
  })
})

test.each(['EC_P256', 'EC_P384', 'EC_P384_ML_L3'] as const)(
  'a phone of %s whose keys somebody altered in the database so that they are none has none',
  async (algorithm) => {
    const phone = await world.signingPhone(algorithm)
    const keys = async () =>
      member(expectOk(await world.bank.call('GET', `/v2/registrations/${phone.activationId}/device-keys`)).json, 'keys')
    expect(await keys()).not.toEqual([])
    for (const key of [Buffer.of(4), Buffer.of()]) {
      await sql`update activation set device_public_key = ${key} where activation_id = ${phone.activationId}`.execute(
        world.server.context.db,
      )
      expectVerdict(await askDer(phone), invalid(phone, 'KEYS_MISSING'))
      expect(await keys()).toEqual([])
    }
  },
)

describe.each([
  ['EC_P384_ML_L3', 'ML-DSA-65', 'ML_DSA_65', 'ML_DSA_87'],
  ['EC_P384_ML_L5', 'ML-DSA-87', 'ML_DSA_87', 'ML_DSA_65'],
] as const)('a phone of %s', (algorithm, second, keyName, otherName) => {
  let phone: SigningPhone
  beforeAll(async () => {
    phone = await world.signingPhone(algorithm)
  })
  const both = (): readonly DeviceSigner[] => [signerOf(phone), signerOf(phone, 1)]

  test('has signed when both of its keys have, in either order', async () => {
    expectVerdict(await askJws(phone, generalJws(both(), DATA)), validJws(phone, 'ES384', second))
    expectVerdict(await askJws(phone, generalJws(both().toReversed(), DATA)), validJws(phone, 'ES384', second))
    expectVerdict(await askJws(phone, generalJws(both(), DATA), { keys: ['ECDSA', keyName] }), validJws(phone, 'ES384', second))
  })

  test('has not signed when one of them has not', async () => {
    for (const [i, name] of ['ES384', second].entries()) {
      const signer = signerOf(phone, i)
      const verdict = invalid(phone, 'KEYS_MISSING', name)
      expectVerdict(await askJws(phone, generalJws([signer], DATA)), verdict)
      expectVerdict(await askJws(phone, compactJws(signer, DATA)), verdict)
      expectVerdict(await askJws(phone, compactJws(signer, DATA), { keys: ['ECDSA', keyName] }), verdict)
    }
    expectVerdict(await askDer(phone), invalid(phone, 'KEYS_MISSING', 'ES384'))
  })

  test('has signed enough when the bank names what is enough, and no other', async () => {
    const [ecdsa, mlDsa] = [signerOf(phone), signerOf(phone, 1)]
    const raw = { activationId: phone.activationId, data: b64(DATA), signature: b64(mlDsa.sign(DATA)), algorithm: 'ML_DSA' }
    expectVerdict(await askDer(phone, { keys: ['ECDSA'] }), valid(phone, 'ES384'))
    expectVerdict(await askJws(phone, compactJws(ecdsa, DATA), { keys: ['ECDSA'] }), validJws(phone, 'ES384'))
    expectVerdict(await askJws(phone, compactJws(mlDsa, DATA), { keys: [keyName] }), validJws(phone, second))
    expectVerdict(await ask({ ...raw, keys: [keyName] }), valid(phone, second))
    expectVerdict(await ask({ ...raw, format: 'RAW', keys: [keyName] }), valid(phone, second))
    expectVerdict(await askJws(phone, generalJws(both(), DATA), { keys: ['ECDSA'] }), validJws(phone, 'ES384', second))
    expectVerdict(await askJws(phone, compactJws(mlDsa, DATA), { keys: ['ECDSA'] }), invalid(phone, 'KEYS_MISSING', second))
    expectVerdict(await askJws(phone, compactJws(ecdsa, DATA), { keys: [keyName] }), invalid(phone, 'KEYS_MISSING', 'ES384'))
    expectVerdict(
      await askJws(phone, generalJws(both(), DATA), { keys: [otherName] }),
      invalid(phone, 'KEYS_MISSING', 'ES384', second),
    )
    expectVerdict(await ask(raw), invalid(phone, 'KEYS_MISSING', second))
  })

  test('is not helped by a right signature beside a wrong one, whatever is enough', async () => {
    const others = (await world.signingPhone(algorithm)).signers
    const [ecdsa, mlDsa] = both() as [DeviceSigner, DeviceSigner]
    for (const keys of [undefined, ['ECDSA'], [keyName]]) {
      expectVerdict(
        await askJws(phone, generalJws([ecdsa, others[1] as DeviceSigner], DATA), { keys }),
        invalid(phone, 'SIGNATURE_WRONG', 'ES384'),
      )
      expectVerdict(
        await askJws(phone, generalJws([others[0] as DeviceSigner, mlDsa], DATA), { keys }),
        invalid(phone, 'SIGNATURE_WRONG', second),
      )
    }
    const mixed = {
      payload: Buffer.from(DATA).toString('base64url'),
      signatures: [signJwsPart(ecdsa, DATA), signJwsPart(mlDsa, Buffer.from('y'))],
    }
    expectVerdict(await askJws(phone, JSON.stringify(mixed)), invalid(phone, 'SIGNATURE_WRONG', 'ES384'))
  })

  test('is not read where a signature is doubled, swapped, empty, or of an algorithm that proves nothing', async () => {
    const [ecdsa, mlDsa] = both() as [DeviceSigner, DeviceSigner]
    const jws = JSON.parse(generalJws(both(), DATA)) as {
      payload: string
      signatures: { protected: string; signature: string }[]
    }
    const [first, last] = jws.signatures
    const none = { protected: Buffer.from('{"alg":"none"}').toString('base64url'), signature: '' }
    for (const signatures of [
      [],
      [first, first],
      [first, last, first],
      [
        { ...first, signature: last?.signature },
        { ...last, signature: first?.signature },
      ],
      [first, none],
      [none],
      [{ ...first, header: { alg: second } }, last],
    ]) {
      expectVerdict(await askJws(phone, JSON.stringify({ ...jws, signatures })), FORM)
    }
    for (const header of [{ crit: ['b64'], b64: false }, { jwk: {} }, { jku: 'https://bank.example' }, { x5c: [] }])
      expectVerdict(
        await askJws(
          phone,
          generalJws([ecdsa, mlDsa], DATA, ({ alg }) => ({ alg, ...header })),
        ),
        FORM,
      )
    expectVerdict(await askJws(phone, generalJws([ecdsa, mlDsa], DATA).replace('"payload"', '"payload":"eA","payload"')), FORM)
    const [header, payload] = compactJws(ecdsa, DATA).split('.')
    expectVerdict(await askJws(phone, `${header}.${payload}.${Buffer.from(ecdsa.signDer(DATA)).toString('base64url')}`), FORM)
    expect(await world.auditOf(phone.activationId)).not.toContainEqual([expect.any(String), expect.stringContaining('FORM')])
  })
})

test('a signature that is no Base64 is the fault of the phone; line breaks are none, and padding may be missing', async () => {
  const phone = await world.signingPhone('EC_P256')
  const signature = b64(signerOf(phone).signDer(DATA))
  for (const text of [`${signature.slice(0, 60)}\n${signature.slice(60)}`, `${signature}\n`, ` ${signature}`, '*', 'A', '-_'])
    expectVerdict(await askDer(phone, { signature: text }), FORM)
  expectVerdict(await askDer(phone, { signature: signature.replaceAll('=', '') }), valid(phone, 'ES256'))
})

test('the same signature is valid again, and nothing of the activation has moved', async () => {
  const { userId, phone } = await world.world.activePhone('3.3')
  const signing = { userId, activationId: phone.state.activationId, signers: phone.deviceSigners() }
  const before = await readCounters(phone)
  const request = { activationId: signing.activationId, data: b64(DATA), signature: b64(signerOf(signing).signDer(DATA)) }
  for (let i = 0; i < 3; i += 1) expectVerdict(await ask(request), valid(signing, 'ES256'))
  for (let i = 0; i < 10; i += 1) expectVerdict(await ask({ ...request, data: '' }), invalid(signing, 'SIGNATURE_WRONG'))
  expect(await readCounters(phone)).toEqual(before)
})

describe('states', () => {
  test('an activation that is blocked or removed signs only where the bank says so', async () => {
    for (const algorithm of ['EC_P256', 'EC_P384'] as const) {
      const phone = await world.signingPhone(algorithm)
      const name = signerOf(phone).alg
      expectOk(await world.bank.change(phone.userId, 'BLOCK'))
      expectVerdict(await askDer(phone), { ...invalid(phone, 'STATE', name), state: 'BLOCKED' })
      expectVerdict(await askDer(phone, { states: ['ACTIVE', 'BLOCKED'] }), { ...valid(phone, name), state: 'BLOCKED' })
      expectVerdict(await askDer(phone, { states: ['REMOVED'] }), { ...invalid(phone, 'STATE', name), state: 'BLOCKED' })
      expectVerdict(await askDer(phone, { data: '' }), { ...invalid(phone, 'SIGNATURE_WRONG'), state: 'BLOCKED' })
      expectOk(await world.bank.change(phone.userId, 'UNBLOCK'))
      expectVerdict(await askDer(phone), valid(phone, name))
      expectVerdict(await askDer(phone, { states: ['BLOCKED'] }), invalid(phone, 'STATE', name))
      expectOk(await world.bank.remove(phone.userId))
      expectVerdict(await askDer(phone), { ...invalid(phone, 'STATE', name), state: 'REMOVED' })
      expectVerdict(await askDer(phone, { states: ['REMOVED'] }), { ...valid(phone, name), state: 'REMOVED' })
    }
  })

  test('a registration signs before its commit only where the bank says so, and not at all before the key exchange', async () => {
    const { userId, phone } = await world.world.pendingPhone('3.3')
    const pending = { userId, activationId: phone.state.activationId, signers: phone.deviceSigners() }
    expectVerdict(await askDer(pending), { ...invalid(pending, 'STATE', 'ES256'), state: 'PENDING_COMMIT' })
    expectVerdict(await askDer(pending, { states: ['PENDING_COMMIT'] }), { ...valid(pending, 'ES256'), state: 'PENDING_COMMIT' })
    const waiting = { ...(await world.createdRegistration()), signers: pending.signers }
    expectVerdict(await askDer(waiting), { ...invalid(waiting, 'STATE'), state: 'CREATED' })
    expectVerdict(await askDer(waiting, { states: ['PENDING_COMMIT', 'ACTIVE', 'BLOCKED', 'REMOVED'] }), {
      ...invalid(waiting, 'STATE'),
      state: 'CREATED',
    })
    await world.world.advance(24 * 60 * MINUTE)
    expectVerdict(await askDer(waiting), { ...invalid(waiting, 'STATE'), state: 'REMOVED' })
    expectVerdict(await askDer(waiting, { states: ['REMOVED'] }), { ...invalid(waiting, 'KEYS_MISSING'), state: 'REMOVED' })
  })

  test('a phone that moves to protocol 4 signs with its old key until it has confirmed, and with its new ones from then on', async () => {
    const { userId, phone: old } = await world.world.activePhone('3.3')
    const upgrade = upgradeOf(world, { userId, old }, 'EC_P384_ML_L3')
    const before = { userId, activationId: old.state.activationId, signers: old.deviceSigners() }
    const after = { ...before, signers: upgrade.phone.deviceSigners() }
    await old.exchange(await upgrade.prepareStart())
    expectVerdict(await askDer(before), valid(before, 'ES256'))
    expect(member((await askJws(after, generalJws(after.signers, DATA))).json, 'reason')).toBe('KEYS_MISSING')
    await upgrade.phone.exchange(upgrade.phone.prepareUpgradeConfirm())
    expectVerdict(await askJws(after, generalJws(after.signers, DATA)), validJws(after, 'ES384', 'ML-DSA-65'))
    expectVerdict(await askDer(before), invalid(before, 'SIGNATURE_WRONG'))
    expectVerdict(await askJws(before, compactJws(signerOf(before), DATA)), invalid(before, 'KEYS_MISSING'))
  })
})

describe('an activation that is not of the application of the credential', () => {
  test('is unknown, in every form, with any states, and leaves no row', async () => {
    const foreign = await world.foreignPhone()
    expectVerdict(await askDer(foreign, {}, foreign.bank), valid(foreign, 'ES256'))
    expect(await world.auditOf(foreign.activationId)).toHaveLength(1)
    expectVerdict(await askDer(foreign), UNKNOWN)
    expectVerdict(await askDer(foreign, { states: ['ACTIVE', 'BLOCKED', 'REMOVED', 'PENDING_COMMIT'], keys: ['ECDSA'] }), UNKNOWN)
    expectVerdict(await askDer(foreign, { data: '' }), UNKNOWN)
    expectVerdict(await askJws(foreign, compactJws(signerOf(foreign), DATA)), UNKNOWN)
    expectVerdict(await askJws(foreign, generalJws([signerOf(foreign)], DATA)), UNKNOWN)
    expect(await world.auditOf(foreign.activationId)).toHaveLength(1)
    const phone = await world.signingPhone('EC_P384_ML_L5')
    expectVerdict(await askDer(phone, {}, foreign.bank), UNKNOWN)
    expectVerdict(
      await foreign.bank.call('POST', PATH, { activationId: phone.activationId, jws: generalJws(phone.signers, DATA) }),
      UNKNOWN,
    )
  })

  test.each(['3f2504e0-4f89-41d3-9a0c-0305e82c3301', 'x', "' or true --", '\u202e', 'x'.repeat(255)])(
    'nor is %j',
    async (activationId) => {
      const hybrid = v4DeviceSigners('EC_P384_ML_L3', newSigningPair('EC_P384_ML_L3'))
      const raw = { activationId, data: b64(DATA), algorithm: 'ML_DSA' }
      expectVerdict(await ask({ activationId, jws: generalJws(hybrid, DATA) }), UNKNOWN)
      for (const length of [1, 3309, 4627]) expectVerdict(await ask({ ...raw, signature: b64(new Uint8Array(length)) }), UNKNOWN)
      for (const length of [1, 71, 103])
        expectVerdict(await ask({ activationId, data: '', signature: b64(new Uint8Array(length)) }), UNKNOWN)
      expect(await world.auditOf(activationId)).toEqual([])
    },
  )
})

test('hundreds of signatures of one credential do not have those of another refused', async () => {
  const phone = await world.signingPhone('EC_P384')
  const { deviceSignatureTurns } = world.server.context
  const open = async (username: string): Promise<Bank> => {
    const user = { username, role: 'verification', application: world.world.applicationId }
    const { json } = expectOk(await world.bank.call('POST', '/admin/users', user))
    return world.bank.as(`${username}:${String(member(json, 'password'))}`)
  }
  const [greedy, other] = [await open('greedy'), await open('other')]
  const over = Promise.withResolvers<void>()
  const held = Array.from({ length: 1_008 }, () => deviceSignatureTurns.run(() => over.promise, { key: 'greedy' }))
  const ends = Promise.allSettled(held)
  expectError(await askDer(phone, {}, greedy), 503, 'HTTP_503')
  const asked = askDer(phone, {}, other)
  // It waits in the place of the last one of the long line.
  await expect(held.at(-1)).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  over.resolve()
  expectVerdict(await asked, valid(phone, 'ES384'))
  await ends
})

test('each verdict but of what cannot be read has a row with the hash of the data, not the data', async () => {
  const phone = await world.signingPhone('EC_P384_ML_L3')
  await askJws(phone, generalJws(phone.signers, DATA))
  await askDer(phone, { keys: ['ECDSA'] })
  await askDer(phone)
  await askDer(phone, { data: b64(Buffer.from('y')) })
  await askJws(phone, 'x.y.z')
  expect(await world.auditOf(phone.activationId)).toEqual([
    ['device_signature_ok', auditLines('JWS ES384 ML-DSA-65', DATA)],
    ['device_signature_ok', auditLines('DER ES384', DATA)],
    ['device_signature_invalid', auditLines('DER ES384', DATA, 'KEYS_MISSING')],
    ['device_signature_invalid', auditLines('DER', Buffer.from('y'), 'SIGNATURE_WRONG')],
  ])
  const { items } = expectOk(await world.bank.call('GET', `/audit/log?userId=${phone.userId}`)).json as {
    items: { eventType: string }[]
  }
  expect(items.filter(({ eventType }) => eventType.startsWith('device_signature'))).toHaveLength(4)
  const path = `/admin/applications/${world.world.applicationId}/audit?userId=${phone.userId}&limit=4`
  const shown = expectOk(await world.bank.call('GET', path)).json as { items: { verifiedBy?: string }[] }
  const [asker = ''] = (world.bank.credential ?? '').split(':')
  expect(shown.items.map(({ verifiedBy }) => verifiedBy)).toEqual(Array(4).fill(asker))
  const metrics = expectOk(await world.bank.call('GET', '/metrics')).text
  expect(metrics).toMatch(/^pawl_verifications_total\{version="4",type="device_signature",result="accepted"\} [1-9]/m)
  expect(metrics).toMatch(/^pawl_verifications_total\{version="4",type="device_signature",result="keys_missing"\} [1-9]/m)
  expect(metrics).toMatch(/^pawl_verifications_total\{version="unknown",type="device_signature",result="form"\} [1-9]/m)
})

test('an activation that is deleted while it is looked at is unknown, and so has no verdict without a row', async () => {
  const phone = await world.signingPhone('EC_P256')
  const { db } = world.server.context
  const judged = await inTransaction(db, async (tx) => {
    await sql`delete from activation_history where activation_id = ${phone.activationId}`.execute(tx)
    await sql`delete from activation where activation_id = ${phone.activationId}`.execute(tx)
    const event = {
      applicationId: world.world.applicationId,
      userId: phone.userId,
      activationId: phone.activationId,
      eventType: 'device_signature_ok',
      eventData: '',
      occurredAt: new Date(),
    }
    return await insertAuditEvent(tx, event, heldActivation(phone.activationId, event.applicationId))
  })
  expect(judged).toBe(false)
  expectVerdict(await askDer(phone), UNKNOWN)
  expect(await world.auditOf(phone.activationId)).toEqual([])
})

test('30 at once are judged each by itself', async () => {
  const phones = [await world.signingPhone('EC_P384_ML_L3'), await world.signingPhone('EC_P256')]
  const asked = Array.from({ length: 30 }, (_, i) => {
    const phone = phones[i % 2] as SigningPhone
    const jws = generalJws(phone.signers, DATA)
    const isGood = i % 3 > 0
    const sent = isGood ? jws : jws.replace(b64Url(DATA), b64Url(Buffer.from('other data')))
    return { phone, isGood, reply: askJws(phone, sent) }
  })
  for (const { phone, isGood, reply } of asked)
    expectVerdict(
      await reply,
      isGood ? validJws(phone, ...phone.signers.map(({ alg }) => alg)) : invalid(phone, 'SIGNATURE_WRONG'),
    )
  const rows = await Promise.all(phones.map(({ activationId }) => world.auditOf(activationId)))
  expect(rows.flat().filter(([type]) => type === 'device_signature_ok')).toHaveLength(20)
  expect(rows.flat()).toHaveLength(30)
})

describe('what the bank composes wrongly is an error', () => {
  const plain = { data: 'eA==', signature: 'eA==' }
  test.each<[string, Record<string, unknown>, string]>([
    ['nothing', {}, 'data'],
    ['no signature', { data: 'eA==' }, 'signature'],
    ['no data', { signature: 'eA==' }, 'data'],
    ['data that is no Base64', { ...plain, data: 'e*' }, 'data'],
    ['data in base64url', { ...plain, data: '-_-_' }, 'data'],
    ['data of more than 128 KiB', { ...plain, data: b64(new Uint8Array(128 * 1024 + 1)) }, 'data'],
    ['data that is a number', { ...plain, data: 7 }, 'data'],
    ['a JWS beside data', { ...plain, jws: 'a.b.c' }, 'data'],
    ['a JWS beside a format', { format: 'DER', jws: 'a.b.c' }, 'format'],
    ['a JWS beside an algorithm', { algorithm: 'ECDSA', jws: 'a.b.c' }, 'algorithm'],
    ['a JWS that is an object', { jws: { payload: '' } }, 'jws'],
    ['a JWS that is too long', { jws: 'x'.repeat(192 * 1024 + 1) }, 'jws'],
    ['another format', { ...plain, format: 'PEM' }, 'format'],
    ['another algorithm', { ...plain, algorithm: 'RSA' }, 'algorithm'],
    ['ECDSA in RAW', { ...plain, format: 'RAW' }, 'format'],
    ['ML-DSA in DER', { ...plain, format: 'DER', algorithm: 'ML_DSA' }, 'format'],
    ['ML-DSA in JOSE', { ...plain, format: 'JOSE', algorithm: 'ML_DSA' }, 'format'],
    ['an empty list of keys', { ...plain, keys: [] }, 'keys'],
    ['an unknown key', { ...plain, keys: ['ES256'] }, 'keys'],
    ['keys that are a word', { ...plain, keys: 'ALL' }, 'keys'],
    ['an empty list of states', { ...plain, states: [] }, 'states'],
    ['CREATED as a state', { ...plain, states: ['CREATED'] }, 'states'],
    ['an activation that is blank', { ...plain, activationId: ' ' }, 'activationId'],
    ['an activation that is a number', { ...plain, activationId: 7 }, 'activationId'],
  ])('%s', async (_, more, fieldName) => {
    const reply = await ask({ activationId: 'x', ...more })
    expectError(reply, 400, 'ERROR_REQUEST')
    const violations = member(reply.json, 'responseObject', 'violations') as { fieldName: string }[]
    expect(violations.map((one) => one.fieldName.replace(/[./[].*/, ''))).toContain(fieldName)
  })

  test('whereas 128 KiB are judged, plain and as a JWS', async () => {
    const phone = await world.signingPhone('EC_P384_ML_L3')
    const data = new Uint8Array(128 * 1024).fill(7)
    const plain = {
      activationId: phone.activationId,
      data: b64(data),
      signature: b64(signerOf(phone).signDer(data)),
      keys: ['ECDSA'],
    }
    expectVerdict(await ask(plain), valid(phone, 'ES384'))
    expectVerdict(await askJws(phone, generalJws(phone.signers, data)), {
      ...valid(phone, 'ES384', 'ML-DSA-65'),
      payload: b64(data),
    })
  })
})

test('callers are integration and admin', async () => {
  const phone = await world.signingPhone('EC_P256')
  expectVerdict(await askDer(phone, {}, await world.openBank('integration', world.world.applicationId)), valid(phone, 'ES256'))
  for (const bank of [
    await world.openBank('read-only', world.world.applicationId),
    await world.openBank('read-only'),
    await world.openBank('internal'),
  ])
    expectError(await askDer(phone, {}, bank), 403, 'HTTP_403')
  expectError(await askDer(phone, {}, world.bank.as(undefined)), 401, 'HTTP_401')
  expectError(await askDer(phone, {}, world.bank.as('nobody:nothing')), 401, 'HTTP_401')
})
