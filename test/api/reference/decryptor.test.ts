// ecies/decryptor of the reference's back-end API: the keys of one envelope, behind a right of their own (cloud §15.3).
import { createDecipheriv, createHmac } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bytesOf, hasNonce, hasTimestamp, join, kdfInternal, random, sized, unb64 } from '../../../phone/v3/crypto.ts'
import type { EnvelopeOptions } from '../../../phone/v3/state.ts'
import { type Bank, readApplication } from '../../helpers/bank.ts'
import { createCaller } from '../../helpers/door.ts'
import { openAt, sealForBank, sealUnderLabel, signForBank, textOf } from '../../helpers/door-envelope.ts'
import { expectError, MINUTE } from '../../helpers/expectations.ts'
import { PHONE_VERSIONS } from '../../helpers/phone-versions.ts'
import { askReference, callReference } from '../../helpers/reference.ts'
import { expectOk } from '../../helpers/world.ts'
import { startWorldV4, type WorldV4 } from '../../helpers/world-v4.ts'

let v4: WorldV4
let bank: Bank
let both: Bank
let none: Bank
let foreign: Bank
beforeAll(async () => {
  v4 = await startWorldV4({ env: { PAWL_REFERENCE_API: 'true' } })
  const { applicationId } = v4.world
  await v4.world.bank.createApplication('other')
  const entitled = async (name: string, application: string, rights: readonly string[]) => {
    const caller = await createCaller(v4.world.bank, name, 'verification', application)
    expectOk(await v4.world.bank.call('PATCH', `/admin/users/${name}`, { rights }))
    return caller
  }
  bank = await entitled('derives', applicationId, ['keys:derive'])
  both = await entitled('derives-both', applicationId, ['keys:derive', 'envelopes:application'])
  none = await entitled('opens', applicationId, ['envelopes:application'])
  foreign = await entitled('derives-other', 'other', ['keys:derive', 'envelopes:application'])
})
afterAll(() => v4.close())

type Members = Readonly<Record<string, string | number>>
type Phone = Awaited<ReturnType<WorldV4['world']['activePhone']>>['phone']
const PATH = 'ecies/decryptor'

/** What the library of a bank asks for: neither ciphertext nor MAC. Absent members are null, as its client writes them. */
async function sealed(
  phone: Phone,
  plaintext: string,
  scope: 'activation' | 'application' = 'activation',
  options: EnvelopeOptions = {},
) {
  const sent = await sealForBank(phone, plaintext, { scope, ...(options as object) })
  const envelope = sent.body['envelope'] as Members
  const { version, app } = phone.options
  const asked = {
    activationId: scope === 'activation' ? phone.state.activationId : null,
    applicationKey: app.applicationKey,
    temporaryKeyId: envelope['temporaryKeyId'] ?? null,
    ephemeralPublicKey: envelope['ephemeralPublicKey'],
    nonce: envelope['nonce'] ?? null,
    protocolVersion: version,
    timestamp: envelope['timestamp'] ?? null,
  }
  return { sent, envelope, asked, version, applicationKey: app.applicationKey }
}

/** Opens as v3 §6.3 and §6.4 say, with nothing but the two answers; undefined when the MAC is wrong. */
function openWith(
  keys: Readonly<Record<string, unknown>>,
  { envelope, asked, version, applicationKey }: Awaited<ReturnType<typeof sealed>>,
) {
  const key = unb64(String(keys['secretKey']))
  const base = unb64(String(keys['sharedInfo2']))
  expect([key.length, base.length]).toEqual([48, 32])
  const nonce = hasNonce(version) ? unb64(String(envelope['nonce'])) : undefined
  const encrypted = unb64(String(envelope['encryptedData']))
  const time = Buffer.alloc(8)
  time.writeBigUInt64BE(BigInt(envelope['timestamp'] ?? 0))
  const bound = [version, applicationKey, asked.activationId, asked.temporaryKeyId].filter((part) => part !== null)
  const shared = hasTimestamp(version)
    ? sized(
        base,
        nonce ?? null,
        time,
        unb64(String(envelope['ephemeralPublicKey'])),
        sized(...bound.map((part) => bytesOf(String(part)))),
      )
    : base
  const mac = createHmac('sha256', key.subarray(16, 32)).update(join(encrypted, shared)).digest('base64')
  if (mac !== envelope['mac']) return undefined
  const iv = nonce ? kdfInternal(key.subarray(32), nonce) : Buffer.alloc(16)
  const decipher = createDecipheriv('aes-128-cbc', key.subarray(0, 16), iv)
  return Buffer.concat([decipher.update(encrypted), decipher.final()]).toString('utf8')
}

describe.each(PHONE_VERSIONS)('keys of an envelope of %s', (version) => {
  test('open it, in both scopes', async () => {
    const { phone } = await v4.world.activePhone(version)
    const own = await sealed(phone, '{"pin":"1234"}')
    expect(openWith(await askReference(bank, 'v3', PATH, own.asked), own)).toBe('{"pin":"1234"}')
    const general = await sealed(phone, 'hello', 'application')
    expect(openWith(await askReference(both, 'v3', PATH, general.asked), general)).toBe('hello')
  })

  test('are given once where the version has replay protection, over both ways', async () => {
    const { phone } = await v4.world.activePhone(version)
    const first = await sealed(phone, 'x')
    await askReference(bank, 'v3', PATH, first.asked)
    const again = await callReference(bank, 'v3', PATH, first.asked)
    const opened = await openAt(bank, first.sent)
    if (hasTimestamp(version)) expectError(again, 400, 'ERR0018')
    else expectOk(again)
    expect(opened.isOpened).toBe(!hasTimestamp(version))
    const second = await sealed(phone, 'y')
    expect(textOf(await openAt(bank, second.sent))).toBe('y')
    if (hasTimestamp(version)) expectError(await callReference(bank, 'v3', PATH, second.asked), 400, 'ERR0018')
  })
})

test.each(['3.2', '3.3'] as const)(
  'keys of an envelope of %s are given once, whatever the caller says of nonce and time',
  async (version) => {
    const { phone } = await v4.world.activePhone(version)
    const { asked } = await sealed(phone, 'x')
    const otherwise = () => ({ ...asked, nonce: Buffer.from(random(16)).toString('base64'), timestamp: Date.now() + MINUTE })
    await askReference(bank, 'v3', PATH, otherwise())
    for (const more of [asked, otherwise(), { ...asked, timestamp: Date.now() - MINUTE }])
      expectError(await callReference(bank, 'v3', PATH, more), 400, 'ERR0018')
  },
)

test('an envelope that was opened, alone or with its code, or whose keys were given, is done with at the other way', async () => {
  const { phone } = await v4.world.activePhone('3.3')
  const nonce = () => ({ nonce: Buffer.from(random(16)).toString('base64') })
  for (const scope of ['activation', 'application'] as const) {
    const opened = await sealed(phone, 'x', scope)
    expect(textOf(await openAt(both, opened.sent))).toBe('x')
    expectError(await callReference(both, 'v3', PATH, { ...opened.asked, ...nonce() }), 400, 'ERR0018')
    const given = await sealed(phone, 'x', scope)
    await askReference(both, 'v3', PATH, { ...given.asked, ...nonce() })
    expect(await openAt(both, given.sent)).toMatchObject({ isOpened: false })
  }
})

test.each(['3.2', '3.3'] as const)('an envelope of %s that was opened with its code has no keys to give', async (version) => {
  const { phone } = await v4.world.activePhone(version)
  const sent = await signForBank(phone, 'x')
  expect(textOf(await openAt(bank, sent))).toBe('x')
  const { temporaryKeyId = null, ephemeralPublicKey, timestamp } = sent.body['envelope'] as Members
  const named = {
    activationId: phone.state.activationId,
    applicationKey: phone.options.app.applicationKey,
    protocolVersion: version,
  }
  const nonce = Buffer.from(random(16)).toString('base64')
  const asked = { ...named, temporaryKeyId, ephemeralPublicKey, nonce, timestamp }
  expectError(await callReference(bank, 'v3', PATH, asked), 400, 'ERR0018')
})

test('keys of one envelope open none of a thousand others of the same phone and temporary key', async () => {
  const { phone } = await v4.world.activePhone('3.3')
  const same = { temporaryKey: await phone.fetchTemporaryKey('activation'), timestamp: await phone.serverTime() }
  const own = await sealed(phone, 'mine', 'activation', same)
  const keys = await askReference(bank, 'v3', PATH, own.asked)
  expect(openWith(keys, own)).toBe('mine')
  let opened = 0
  for (let i = 0; i < 1000; i += 1)
    if (openWith(keys, await sealed(phone, `other ${i}`, 'activation', same)) !== undefined) opened += 1
  expect(opened).toBe(0)
})

test('a credential of another application uses up no envelope of this one', async () => {
  const other = readApplication(await v4.world.bank.call('GET', '/admin/application?id=other'))
  const { phone } = await v4.world.activePhone('3.2')
  const own = await sealed(phone, 'mine', 'application')
  // Neither MAC nor ciphertext comes with this call: whoever sees an envelope on its way can name its point and its nonce.
  await askReference(foreign, 'v3', PATH, { ...own.asked, applicationKey: other.applicationKey })
  expect(textOf(await openAt(both, own.sent))).toBe('mine')
})

test('fifty requests at once for one envelope get its keys once', async () => {
  const { phone } = await v4.world.activePhone('3.3')
  const { asked } = await sealed(phone, 'x')
  const replies = await Promise.all(Array.from({ length: 50 }, () => callReference(bank, 'v3', PATH, asked)))
  expect(replies.filter(({ status }) => status === 200)).toHaveLength(1)
})

test('a credential without the right is refused, whatever it asks for, and the envelope stays good', async () => {
  const { phone } = await v4.world.activePhone('3.3')
  const own = await sealed(phone, 'x')
  expectError(await callReference(none, 'v3', PATH, own.asked), 403, 'HTTP_403')
  expectError(await callReference(v4.world.bank, 'v3', PATH, own.asked), 403, 'HTTP_403')
  const general = await sealed(phone, 'x', 'application')
  expectError(await callReference(none, 'v3', PATH, general.asked), 403, 'HTTP_403')
  // What is sealed for everybody is also what phones send that are not bound yet.
  expectError(await callReference(bank, 'v3', PATH, general.asked), 403, 'HTTP_403')
  expectOk(await callReference(bank, 'v3', PATH, own.asked))
})

test('what is wrong with an envelope is one error, and uses nothing up', async () => {
  const { phone, userId } = await v4.world.activePhone('3.3')
  const own = await sealed(phone, 'x')
  const { asked } = own
  const refused = async (more: object, caller = bank) =>
    expectError(await callReference(caller, 'v3', PATH, { ...asked, ...more }), 400, 'ERR0018')
  await refused({}, foreign)
  await refused({ activationId: '3f2504e0-4f89-41d3-9a0c-0305e82c3301' })
  await refused({ activationId: 'x"' })
  await refused({ applicationKey: Buffer.from(random(16)).toString('base64') })
  await refused({ temporaryKeyId: '3f2504e0-4f89-41d3-9a0c-0305e82c3301' })
  await refused({ temporaryKeyId: null })
  // Random bytes are a point now and then; these never are.
  await refused({ ephemeralPublicKey: Buffer.from(random(33).with(0, 5)).toString('base64') })
  await refused({ nonce: null })
  await refused({ protocolVersion: '3.9' })
  await refused({ protocolVersion: '4.0' })
  await refused({ timestamp: Number(asked.timestamp) - 10 * MINUTE })
  const blocked = await sealed(phone, 'x')
  expectOk(await v4.world.bank.change(userId, 'BLOCK'))
  expectError(await callReference(bank, 'v3', PATH, blocked.asked), 400, 'ERR0018')
  expectOk(await v4.world.bank.change(userId, 'UNBLOCK'))
  expect(openWith(await askReference(bank, 'v3', PATH, asked), own)).toBe('x')
})

test('keys are of the generic labels: those of pawl’s own endpoints stay closed', async () => {
  const { phone } = await v4.world.activePhone('3.3')
  const sent = await sealUnderLabel(phone, '/pa/token/create')
  const envelope = sent.body['envelope'] as Members
  const asked = { ...(await sealed(phone, 'x')).asked, ...envelope, encryptedData: undefined, mac: undefined }
  const keys = await askReference(bank, 'v3', PATH, asked)
  const { version, app } = phone.options
  expect(openWith(keys, { sent, envelope, asked, version, applicationKey: app.applicationKey } as never)).toBeUndefined()
})

test('the audit log says who was given keys, and neither it nor the log has them', async () => {
  const { phone, userId } = await v4.world.activePhone('3.3')
  const { asked } = await sealed(phone, 'x')
  const keys = await askReference(bank, 'v3', PATH, asked)
  const { db } = v4.server.context
  const rows = await db.selectFrom('audit_trail').selectAll().where('user_id', '=', userId).orderBy('sequence').execute()
  expect(rows.at(-1)).toMatchObject({
    event_type: 'envelope_keys_derived',
    event_data: '/pa/generic/activation',
    activation_id: phone.state.activationId,
    verified_by: 'derives',
  })
  for (const key of Object.values(keys)) expect(v4.server.log() + JSON.stringify(rows)).not.toContain(String(key))
})

test('a version that is switched off has no keys', async () => {
  const { phone } = await v4.world.activePhone('3.3')
  const { asked } = await sealed(phone, 'x')
  const off = { isSupported: false }
  const path = `/admin/applications/${v4.world.applicationId}/versions/default`
  expectOk(await v4.world.bank.call('PATCH', path, off))
  expectError(await callReference(bank, 'v3', PATH, asked), 400, 'ERR0018')
  expectOk(await v4.world.bank.call('PATCH', path, { isSupported: true }))
  expectOk(await callReference(bank, 'v3', PATH, asked))
})

test('there is no such path in the dialect of 2.x: its client has none', async () => {
  const { phone } = await v4.world.activePhone('3.3')
  const { asked } = await sealed(phone, 'x')
  expect((await callReference(both, 'v4', PATH, asked)).status).toBe(404)
  expect((await callReference(both, 'v4', 'encryptor', asked)).status).toBe(404)
})
