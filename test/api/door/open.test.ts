// POST /encryption/open: a bank has an envelope opened that a phone sent to it (cloud §13.1).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { random } from '../../../phone/v3/crypto.ts'
import { type Bank, readApplication } from '../../helpers/bank.ts'
import { createCaller } from '../../helpers/door.ts'
import {
  type AnyPhone,
  callEncryption,
  isThree,
  openAt,
  sealAt,
  sealForBank,
  sealUnderLabel,
  signForBank,
  startEnvelopeWorld,
  textOf,
  type Version,
  VERSIONS,
} from '../../helpers/door-envelope.ts'
import { expectError, readCounters, SECOND } from '../../helpers/expectations.ts'
import { expectOk } from '../../helpers/world.ts'
import type { WorldV4 } from '../../helpers/world-v4.ts'

let v4: WorldV4
let bank: Bank
let tier: Bank
beforeAll(async () => {
  ;({ v4, bank, tier } = await startEnvelopeWorld())
})
afterAll(() => v4.close())

const isProtected = (version: Version): boolean => version !== '3.0' && version !== '3.1'
const versionText = (version: Version): string => (isThree(version) ? version : '4.0')
const REFUSED = { isOpened: false, reason: 'ENVELOPE' }

const activePhone = async (version: Version): Promise<{ phone: AnyPhone; userId: string }> =>
  isThree(version) ? v4.world.activePhone(version) : v4.activePhone(version)
const newPhone = (version: Version): AnyPhone => (isThree(version) ? v4.world.newPhone(version) : v4.newPhone(version))

describe.each(VERSIONS)('a phone of %s', (version) => {
  test('has its envelope opened and the answer sealed', async () => {
    const { phone, userId } = await activePhone(version)
    const sent = await sealForBank(phone, '{"pin":"1234"}')
    const opened = await openAt(bank, sent)
    expect(opened).toEqual({
      isOpened: true,
      plaintext: Buffer.from('{"pin":"1234"}').toString('base64'),
      sealTicket: expect.stringMatching(/^[\w-]{1,1024}$/),
      protocolVersion: versionText(version),
      activationId: phone.state.activationId,
      userId,
      applicationVersion: 'default',
      isReplayProtected: isProtected(version),
    })
    const reply = expectOk(await sealAt(bank, opened.sealTicket, '{"ok":"příliš"}'))
    expect(sent.open(reply.json)).toBe('{"ok":"příliš"}')
  })

  test('has its envelope opened once where the version has replay protection', async () => {
    const { phone } = await activePhone(version)
    const sent = await sealForBank(phone, '{}')
    expect((await openAt(bank, sent)).isOpened).toBe(true)
    const again = await openAt(bank, sent)
    expect(again).toMatchObject(isProtected(version) ? REFUSED : { isOpened: true, isReplayProtected: false })
  })

  test('has an envelope of the application opened for who has the right', async () => {
    const sent = await sealForBank(newPhone(version), 'any bytes', { scope: 'application' })
    const forbidden = await callEncryption(bank, 'open', sent.body)
    expectError(forbidden, 403, 'HTTP_403')
    expect(forbidden.text).toContain('envelopes:application')
    const opened = await openAt(tier, sent)
    expect(opened).toEqual({
      isOpened: true,
      plaintext: Buffer.from('any bytes').toString('base64'),
      sealTicket: expect.any(String),
      protocolVersion: versionText(version),
      applicationVersion: 'default',
      isReplayProtected: isProtected(version),
    })
    expect(sent.open(expectOk(await sealAt(tier, opened.sealTicket, 'an answer')).json)).toBe('an answer')
    expect((await openAt(tier, sent)).isOpened).toBe(!isProtected(version))
  })

  test('has signed and encrypted checked in one call, over the plaintext', async () => {
    const { phone, userId } = await activePhone(version)
    const sent = await signForBank(phone, '{"limit":1}')
    const opened = await openAt(bank, sent)
    expect(opened).toMatchObject({
      isOpened: true,
      verdict: { isValid: true, covered: 'BODY', userId, remainingAttempts: 5, factors: 'POSSESSION_KNOWLEDGE' },
    })
    expect(textOf(opened)).toBe('{"limit":1}')
    expect(sent.open(expectOk(await sealAt(bank, opened.sealTicket, '{}')).json)).toBe('{}')
    // The code is used up, and from 3.2 on the envelope is, too.
    const again = await openAt(bank, sent)
    if (isProtected(version)) expect(again).toEqual(REFUSED)
    else expect(again).toMatchObject({ isOpened: true, verdict: { isValid: false, reason: 'CODE_WRONG' } })
    expect(again).not.toHaveProperty('plaintext')
  })

  test('whose code is refused keeps a good envelope, and nothing is handed out', async () => {
    const { phone } = await activePhone(version)
    const sent = await signForBank(phone, '{"limit":1}')
    const code = { method: 'POST', resourceId: '/other' }
    const refused = await openAt(bank, sent, { code })
    expect(refused).toMatchObject({ isOpened: true, verdict: { isValid: false, reason: 'CODE_WRONG' } })
    for (const member of ['plaintext', 'sealTicket']) expect(refused).not.toHaveProperty(member)
    const factors = { method: 'POST', resourceId: '/transfer', factors: ['POSSESSION_BIOMETRY'] }
    expect(await openAt(bank, sent, { code: factors })).toMatchObject({
      verdict: { isValid: false, reason: 'FACTORS_NOT_ALLOWED' },
    })
    expect(await openAt(bank, sent)).toMatchObject({ isOpened: true, verdict: { isValid: true } })
  })

  test('whose envelope lost or changed anything is refused, and the genuine one is as good as before', async () => {
    const { phone } = await activePhone(version)
    const sent = await sealForBank(phone, '{"pin":"1234"}')
    const envelope = sent.body['envelope'] as Record<string, string | number>
    for (const member of Object.keys(envelope)) {
      const { [member]: value, ...stripped } = envelope
      expect([member, await openAt(bank, sent, { envelope: stripped })]).toEqual([member, REFUSED])
      // Neither MAC nor label covers the nonce of 3.1.
      if (member === 'nonce' && version === '3.1') continue
      const changed = typeof value === 'number' ? value + 1 : flipLast(String(value))
      expect([member, await openAt(bank, sent, { envelope: { ...envelope, [member]: changed } })]).toEqual([member, REFUSED])
    }
    expect(await openAt(bank, sent)).toMatchObject({ isOpened: true })
  })

  test('that is blocked is refused', async () => {
    const { phone, userId } = await activePhone(version)
    const [plain, signed] = [await sealForBank(phone, '{}'), await signForBank(phone, '{}')]
    expectOk(await v4.world.bank.change(userId, 'BLOCK'))
    expect(await openAt(bank, plain)).toEqual(REFUSED)
    expect(await openAt(bank, signed)).toEqual(REFUSED)
    expectOk(await v4.world.bank.change(userId, 'UNBLOCK'))
    expect(await openAt(bank, plain)).toMatchObject({ isOpened: true })
  })

  test.each(['/pa/token/create', '/pa/vault/unlock'])('has no envelope of %s opened', async (label) => {
    const { phone } = await activePhone(version)
    expect(await openAt(bank, await sealUnderLabel(phone, label))).toEqual(REFUSED)
  })

  test('of another application is an unknown one, and its envelope stays good', async () => {
    const { phone } = await activePhone(version)
    const sent = await sealForBank(phone, '{}')
    readApplication(await v4.world.bank.createApplication(`other-${version}`))
    const stranger = await createCaller(v4.world.bank, `of-other-${version}`, 'integration', `other-${version}`)
    expect(await openAt(stranger, sent)).toEqual(REFUSED)
    expect(await openAt(bank, sent)).toMatchObject({ isOpened: true })
  })
})

/** Another text of the same form. */
const flipLast = (text: string): string => {
  const at = text.replace(/=+$/, '').length - 2
  return text.slice(0, at) + (text[at] === 'a' ? 'b' : 'a') + text.slice(at + 1)
}

test.each(['3.2', '3.3', 'EC_P384'] as const)('an envelope of %s outside of its window is refused', async (version) => {
  const { phone } = await activePhone(version)
  for (const distance of [-301 * SECOND, 301 * SECOND]) {
    const timestamp = (await phone.serverTime()) + distance
    expect(await openAt(bank, await sealForBank(phone, '{}', { timestamp }))).toEqual(REFUSED)
  }
})

test('the outer layer of activation/create is not opened for a bank', async () => {
  for (const version of VERSIONS) {
    const create = '{"type":"CODE","activationData":{"encryptedData":"x"},"identityAttributes":{"code":"AAAAA"}}'
    const sent = await sealForBank(newPhone(version), create, { scope: 'application' })
    expect(await openAt(tier, sent)).toEqual(REFUSED)
  }
})

test('an envelope of one scope does not open in the other', async () => {
  const { phone } = await activePhone('3.3')
  const sent = await sealForBank(phone, '{}')
  expect(await openAt(tier, sent, { scope: 'APPLICATION' })).toEqual(REFUSED)
  expect(await openAt(tier, await sealForBank(phone, '{}', { scope: 'application' }), { scope: 'ACTIVATION' })).toEqual(REFUSED)
  expect(await openAt(bank, sent)).toMatchObject({ isOpened: true })
})

test('an authorization header stands in the place of the encryption header, and its code is not looked at', async () => {
  const { phone } = await activePhone('EC_P384')
  const sent = await signForBank(phone, '{}')
  const before = await readCounters(phone as never)
  expect(await openAt(bank, sent, { code: undefined })).toMatchObject({ isOpened: true, isReplayProtected: true })
  expect(await readCounters(phone as never)).toEqual(before)
})

test.each([
  ['no header', { encryption: undefined }],
  ['two headers', { authorization: 'PowerAuth x="y"' }],
  ['a code without its header', { code: { method: 'POST', resourceId: '/transfer' } }],
  ['no envelope', { envelope: undefined }],
  ['an envelope that is a text', { envelope: 'abc' }],
  ['no scope', { scope: undefined }],
  ['no address', { client: {} }],
  ['an address that is none', { client: { address: 'phone' } }],
])('%s is an error of the bank', async (_, more) => {
  const { phone } = await activePhone('3.3')
  const sent = await sealForBank(phone, '{}')
  const refused = await callEncryption(bank, 'open', { ...sent.body, ...more })
  expectError(refused, 400, 'ERROR_REQUEST')
  expect(refused.text).toContain('"violations":[{')
})

test('a code with an envelope of the application, and a resource id of pawl, are errors of the bank', async () => {
  const { phone } = await activePhone('3.3')
  const sent = await signForBank(phone, '{}')
  expectError(await callEncryption(tier, 'open', { ...sent.body, scope: 'APPLICATION' }), 400, 'ERROR_REQUEST')
  const code = { method: 'POST', resourceId: '/pa/token/create' }
  expectError(await callEncryption(bank, 'open', { ...sent.body, code }), 400, 'ERROR_REQUEST')
  expect(await openAt(bank, sent)).toMatchObject({ verdict: { isValid: true } })
})

test.each(['', 'x', 'PowerAuth version="9.9"'])('the header %j opens nothing', async (encryption) => {
  const { phone } = await activePhone('3.3')
  const reply = await callEncryption(bank, 'open', { ...(await sealForBank(phone, '{}')).body, encryption })
  if (encryption === '') expectError(reply, 400, 'ERROR_REQUEST')
  else expect(expectOk(reply).json).toEqual(REFUSED)
})

test('of ten copies at once one opens, with a code as well as without', async () => {
  for (const make of [sealForBank, signForBank]) {
    const { phone } = await activePhone('EC_P384')
    const sent = await make(phone, '{}')
    const answers = await Promise.all(Array.from({ length: 10 }, () => openAt(bank, sent)))
    expect(answers.filter(({ plaintext }) => plaintext !== undefined)).toHaveLength(1)
  }
})

test('a wrong PIN counts, and a right code under an envelope that was used meanwhile is not taken', async () => {
  const { phone } = await activePhone('3.3')
  const wrong = await signForBank(phone, '{}', { wrongKeys: { knowledge: random(16) } })
  expect(await openAt(bank, wrong)).toMatchObject({ verdict: { isValid: false, reason: 'CODE_WRONG', remainingAttempts: 4 } })
  const sent = await signForBank(phone, '{"a":1}')
  expect(await openAt(bank, sent, { code: undefined })).toMatchObject({ isOpened: true })
  expect(await openAt(bank, sent)).toEqual(REFUSED)
})

describe('a request that comes again under its key', () => {
  const newKey = (): string => Buffer.from(random(16)).toString('hex')

  test.each(['3.0', '3.3', 'EC_P384'] as const)('of %s opens again and has the same ticket', async (version) => {
    const { phone } = await activePhone(version)
    for (const make of [sealForBank, signForBank]) {
      const sent = await make(phone, '{"a":1}')
      const key = newKey()
      const first = await openAt(bank, sent, {}, key)
      const again = await openAt(bank, sent, {}, key)
      expect({ ...again, sealTicket: '' }).toEqual({ ...first, sealTicket: '' })
      const answer = expectOk(await sealAt(bank, first.sealTicket, 'one')).json
      expect(expectOk(await sealAt(bank, again.sealTicket, 'one')).json).toEqual(answer)
      expectError(await sealAt(bank, again.sealTicket, 'two'), 400, 'ERROR_REQUEST')
      if (isProtected(version)) expect((await openAt(bank, sent, {}, newKey())).isOpened).toBe(false)
    }
  })

  test('in application scope opens again, too', async () => {
    const sent = await sealForBank(newPhone('3.3'), '{}', { scope: 'application' })
    const key = newKey()
    expect((await openAt(tier, sent, {}, key)).isOpened).toBe(true)
    expect((await openAt(tier, sent, {}, key)).isOpened).toBe(true)
    expect((await openAt(tier, sent, {}, newKey())).isOpened).toBe(false)
  })

  test('with another request, or with a key of the phone, is an error', async () => {
    const { phone } = await activePhone('3.3')
    const key = newKey()
    const sent = await sealForBank(phone, '{}')
    expect((await openAt(bank, sent, {}, key)).isOpened).toBe(true)
    const other = await sealForBank(phone, '{}')
    expectError(await callEncryption(bank, 'open', other.body, key), 400, 'ERROR_REQUEST')
    const nonce = String((other.body['envelope'] as Record<string, unknown>)['nonce'])
    expectError(await callEncryption(bank, 'open', other.body, `key-${nonce}`), 400, 'ERROR_REQUEST')
    expect((await openAt(bank, other)).isOpened).toBe(true)
  })

  test('with a wrong PIN is told the same verdict and counts once', async () => {
    const { phone } = await activePhone('3.3')
    const key = newKey()
    const wrong = await signForBank(phone, '{}', { wrongKeys: { knowledge: random(16) } })
    const first = await openAt(bank, wrong, {}, key)
    expect(first).toMatchObject({ verdict: { isValid: false, remainingAttempts: 4 } })
    expect(await openAt(bank, wrong, {}, key)).toEqual(first)
  })

  test.each([sealForBank, signForBank])('at once opens for all, and spends one envelope', async (make) => {
    const { phone } = await activePhone('EC_P384')
    const [sent, key] = [await make(phone, '{}'), newKey()]
    const answers = await Promise.all(Array.from({ length: 6 }, () => openAt(bank, sent, {}, key)))
    expect(answers.filter(({ plaintext }) => plaintext !== undefined)).toHaveLength(6)
    expect((await openAt(bank, sent)).isOpened).toBe(false)
  })
})

test('the audit log has the label and the length of what was opened, and who had it opened', async () => {
  const { phone, userId } = await activePhone('3.3')
  await openAt(bank, await sealForBank(phone, '{"pin":"1234"}'))
  await openAt(bank, await signForBank(phone, '{"pin":"12345"}'))
  const { db } = v4.server.context
  const rows = await db.selectFrom('audit_trail').selectAll().where('user_id', '=', userId).orderBy('sequence').execute()
  expect(rows.slice(-3)).toMatchObject([
    { event_type: 'envelope_opened', event_data: '/pa/generic/activation\n14', verified_by: 'web-tier' },
    { event_type: 'signature_ok', verified_by: 'web-tier' },
    { event_type: 'envelope_opened', event_data: '/pa/generic/activation\n15', verified_by: 'web-tier' },
  ])
})

test('the metrics count a refused code as refused, and a request that comes again as repeated', async () => {
  const counted = async () => {
    const metrics = expectOk(await v4.world.bank.call('GET', '/metrics')).text
    const lines = metrics.matchAll(/^pawl_door_answers_total\{door="open",verdict="(\w+)"\} (\d+)/gm)
    return new Map([...lines].map(([, verdict = '', n]) => [verdict, Number(n)]))
  }
  const { phone } = await activePhone('EC_P384')
  const before = await counted()
  const signed = await signForBank(phone, '{}')
  const plain = await sealForBank(phone, '{}')
  await openAt(bank, signed, { code: { method: 'POST', resourceId: '/other' } })
  await openAt(bank, signed, { code: { method: 'POST', resourceId: '/transfer', factors: ['POSSESSION_BIOMETRY'] } })
  for (const sent of [signed, plain]) {
    const key = Buffer.from(random(16)).toString('hex')
    const first = await openAt(bank, sent, {}, key)
    expect({ ...(await openAt(bank, sent, {}, key)), sealTicket: '' }).toEqual({ ...first, sealTicket: '' })
  }
  await openAt(bank, plain)
  const grown = [...(await counted())].map(([verdict, n]) => [verdict, n - (before.get(verdict) ?? 0)] as const)
  expect(Object.fromEntries(grown.filter(([, n]) => n > 0))).toEqual({
    code_wrong: 1,
    factors_not_allowed: 1,
    valid: 2,
    repeated: 2,
    envelope: 1,
  })
})
