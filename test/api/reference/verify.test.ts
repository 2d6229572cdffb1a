// signature/verify, auth/verify and token/validate of the reference's back-end API: the stages of the doors under other words (cloud §15.3).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { headerName } from '../../../phone/header.ts'
import { random } from '../../../phone/v3/crypto.ts'
import type { Bank } from '../../helpers/bank.ts'
import { callDoor, createCaller, RESOURCE, verdictOf } from '../../helpers/door.ts'
import { expectError, MINUTE, readCounters } from '../../helpers/expectations.ts'
import { PHONE_VERSIONS, TESTED_ALGORITHMS } from '../../helpers/phone-versions.ts'
import { askReference, callReference, codeOf, DIALECTS, tokenOf, verifyAt, WORDS } from '../../helpers/reference.ts'
import { expectOk } from '../../helpers/world.ts'
import { startWorldV4, type WorldV4 } from '../../helpers/world-v4.ts'

let v4: WorldV4
let bank: Bank
let foreign: Bank
beforeAll(async () => {
  v4 = await startWorldV4({ env: { PAWL_REFERENCE_API: 'true' } })
  bank = await createCaller(v4.world.bank, 'spring', 'verification', v4.world.applicationId)
  await v4.world.bank.createApplication('other')
  foreign = await createCaller(v4.world.bank, 'other-spring', 'verification', 'other')
})
afterAll(() => v4.close())

const at = { path: '/bank/transfer', resourceId: RESOURCE }
const wrongPin = { wrongKeys: { knowledge: random(32) } }
const anId = '3f2504e0-4f89-41d3-9a0c-0305e82c3301'

async function countAudited(userId: string): Promise<number> {
  const path = `/admin/applications/${v4.world.applicationId}/audit?userId=${userId}&limit=500`
  const { items } = expectOk(await v4.world.bank.call('GET', path)).json as { items: readonly unknown[] }
  return items.length
}

describe.each(DIALECTS)('a code in the words of %s', (dialect) => {
  const { place, isValid, factors, code, version: versionWord } = WORDS[dialect]
  const right = { [isValid]: true }
  const wrong = { [isValid]: false }

  test.each(PHONE_VERSIONS)('of %s is right once, and says whose it is', async (version) => {
    const { phone, userId } = await v4.world.activePhone(version)
    const request = phone.prepareSigned({ ...at, body: '{"amount": 1}' })
    expect(await verifyAt(bank, dialect, request)).toEqual({
      ...right,
      activationId: phone.state.activationId,
      activationStatus: 'ACTIVE',
      userId,
      applicationId: v4.world.applicationId,
      [factors]: 'POSSESSION_KNOWLEDGE',
      remainingAttempts: 5,
      applicationRoles: [],
      activationFlags: [],
    })
    expect(await verifyAt(bank, dialect, request)).toMatchObject({ ...wrong, remainingAttempts: 5, activationStatus: 'ACTIVE' })
    const { db } = v4.server.context
    const rows = await db.selectFrom('audit_trail').selectAll().where('user_id', '=', userId).orderBy('sequence').execute()
    expect(rows.slice(-2)).toMatchObject([
      {
        event_type: 'signature_ok',
        event_data: expect.stringMatching(/^POST\n\/transfer\n13\n[0-9a-f]{64}$/),
        verified_by: 'spring',
      },
      { event_type: 'signature_does_not_match', verified_by: 'spring' },
    ])
  })

  test.each(TESTED_ALGORITHMS)('of 4.0 with %s is right once', async (algorithm) => {
    const { phone, userId } = await v4.activePhone(algorithm)
    const request = phone.prepareSigned({ ...at, body: 'x' })
    expect(await verifyAt(bank, dialect, request)).toMatchObject({ ...right, userId })
    expect(await verifyAt(bank, dialect, request)).toMatchObject(wrong)
  })

  test('of GET covers what the library has composed of the query', async () => {
    const { phone } = await v4.world.activePhone('3.3')
    const request = phone.prepareSigned({ ...at, method: 'GET', query: 'b=2&a=1' })
    const asked = codeOf(dialect, request, { covered: 'a=1&b=2' })
    expect(await askReference(bank, dialect, `${place}/verify`, asked)).toMatchObject(right)
  })

  test('passes once over both ways, whichever is first', async () => {
    const { phone } = await v4.world.activePhone('3.3')
    const first = phone.prepareSigned({ ...at, body: 'x' })
    expect(await verifyAt(bank, dialect, first)).toMatchObject(right)
    expect(await verdictOf(bank, first)).toMatchObject({ isValid: false, reason: 'CODE_WRONG' })
    const second = phone.prepareSigned({ ...at, body: 'x' })
    expect(await verdictOf(bank, second)).toMatchObject({ isValid: true })
    expect(await verifyAt(bank, dialect, second)).toMatchObject(wrong)
  })

  test('fifty times at once over both ways is right exactly once', async () => {
    const { phone } = await v4.world.activePhone('3.3')
    const request = phone.prepareSigned({ ...at, body: 'x' })
    const verdicts = await Promise.all(
      Array.from({ length: 50 }, async (_, i) =>
        i % 2 === 0 ? (await verifyAt(bank, dialect, request))[isValid] : (await verdictOf(bank, request))['isValid'],
      ),
    )
    expect(verdicts.filter((one) => one === true)).toHaveLength(1)
    expect(await readCounters(phone)).toMatchObject({ failedAttempts: 0 })
  })

  test('wrong PINs count and block, and further ones do not', async () => {
    const { phone } = await v4.world.activePhone('3.3')
    for (let left = 4; left >= 0; left -= 1) {
      const verdict = await verifyAt(bank, dialect, phone.prepareSigned({ ...at, body: 'x', ...wrongPin }))
      expect(verdict).toMatchObject({ ...wrong, remainingAttempts: left, activationStatus: left === 0 ? 'BLOCKED' : 'ACTIVE' })
    }
    expect(await verifyAt(bank, dialect, phone.prepareSigned({ ...at, body: 'x' }))).toMatchObject({
      ...wrong,
      activationStatus: 'BLOCKED',
      blockedReason: 'MAX_FAILED_ATTEMPTS',
    })
  })

  test('strangers do not use up what the owner has, though all phones come from one address', async () => {
    const { phone } = await v4.world.activePhone('3.3')
    const request = phone.prepareSigned({ ...at, body: 'x' })
    const garbage = { [code]: '00000000-00000000' }
    for (let i = 0; i < 70; i += 1) expect(await verifyAt(bank, dialect, request, garbage)).toMatchObject(wrong)
    expect(await verifyAt(bank, dialect, request)).toMatchObject(right)
  })

  test('codes of possession are looked at sixty times a minute, and then neither judged nor audited; those of two factors go on', async () => {
    const { phone, userId } = await v4.world.activePhone('3.0')
    const request = phone.prepareSigned({ ...at, body: 'x', factors: 'possession' })
    const guess = () => verifyAt(bank, dialect, request, { [code]: '00000000' })
    for (let i = 0; i < 60; i += 1) expect(await guess()).toMatchObject({ ...wrong, activationStatus: 'ACTIVE' })
    const audited = await countAudited(userId)
    for (let i = 0; i < 40; i += 1) expect(await guess()).not.toHaveProperty('activationStatus')
    expect(await verifyAt(bank, dialect, request)).toMatchObject(wrong)
    expect(await countAudited(userId)).toBe(audited)
    expect(await readCounters(phone)).toMatchObject({ failedAttempts: 0 })
    expect(await verifyAt(bank, dialect, phone.prepareSigned({ ...at, body: 'x' }))).toMatchObject({
      ...right,
      activationStatus: 'ACTIVE',
    })
  })

  test('a credential of another application takes no place of the activation, at doors as well', async () => {
    const { phone } = await v4.world.activePhone('3.3')
    const request = phone.prepareSigned({ ...at, body: 'x' })
    for (let i = 0; i < 61; i += 1) {
      await verdictOf(foreign, request, { client: { address: '127.0.0.1' } })
      await verifyAt(foreign, dialect, request)
    }
    expect(await verifyAt(bank, dialect, request)).toMatchObject(right)
    const next = phone.prepareSigned({ ...at, body: 'x' })
    expect(await verdictOf(bank, next, { client: { address: '127.0.0.1' } })).toMatchObject({ isValid: true })
  })

  test('a tier that says which address a phone has does not hold up the one that cannot', async () => {
    const { phone } = await v4.world.activePhone('3.3')
    const client = { client: { address: '127.0.0.1' } }
    const elsewhere = phone.prepareSigned({ ...at, resourceId: '/elsewhere', body: 'x' })
    for (let i = 0; i < 61; i += 1) await verdictOf(bank, elsewhere, client)
    expect(await verifyAt(bank, dialect, phone.prepareSigned({ ...at, body: 'x' }))).toMatchObject(right)
  })

  test('of an unknown activation, an unknown key or another application tells nothing', async () => {
    const { phone } = await v4.world.activePhone('3.3')
    const request = phone.prepareSigned({ ...at, body: 'x' })
    const nothing = {
      ...wrong,
      activationStatus: 'REMOVED',
      [factors]: 'POSSESSION_KNOWLEDGE',
      applicationRoles: [],
      activationFlags: [],
    }
    expect(await verifyAt(bank, dialect, request, { activationId: anId })).toEqual({ ...nothing, activationId: anId })
    expect(await verifyAt(foreign, dialect, request)).toEqual({ ...nothing, activationId: phone.state.activationId })
    const otherKey = { applicationKey: Buffer.from(random(16)).toString('base64') }
    expect(await verifyAt(bank, dialect, request, otherKey)).toMatchObject(wrong)
    expect(await verifyAt(bank, dialect, request)).toMatchObject(right)
  })

  test('over a base string that pawl would not write so is wrong, and counts nothing', async () => {
    const { phone } = await v4.world.activePhone('3.3')
    const request = phone.prepareSigned({ ...at, body: '{"amount": 1}' })
    const { data } = codeOf(dialect, request) as { readonly data: string }
    const [method = '', resource = '', nonce = '', body = ''] = data.split('&')
    const spoiled = [
      '',
      data.toLowerCase(),
      `${data}&`,
      [method, resource, nonce].join('&'),
      [method, resource, nonce, body.replace(/=+$/, '')].join('&'),
      [method, resource, nonce.replace(/=+$/, ''), body].join('&'),
      [method, Buffer.from('/a\n/b').toString('base64'), nonce, body].join('&'),
      [method, Buffer.from([0xff]).toString('base64'), nonce, body].join('&'),
      [method, resource, `${nonce}"`, body].join('&'),
      ['BREW', resource, nonce, body].join('&'),
    ]
    for (const text of spoiled)
      expect([text, await verifyAt(bank, dialect, request, { data: text })]).toMatchObject([text, wrong])
    for (const [name, value] of [
      ['activationId', `${phone.state.activationId}", pa_version="3.3`],
      [versionWord, '9.9'],
      [code, 'x'],
    ] as const)
      expect([name, await verifyAt(bank, dialect, request, { [name]: value })]).toMatchObject([name, wrong])
    expect(await verifyAt(bank, dialect, request)).toMatchObject({ ...right, remainingAttempts: 5 })
  })

  test.each(['KNOWLEDGE', 'POSSESSION_KNOWLEDGE_BIOMETRY'])('of the factors %s is wrong', async (type) => {
    const { phone } = await v4.world.activePhone('3.3')
    const request = phone.prepareSigned({ ...at, body: 'x' })
    expect(await verifyAt(bank, dialect, request, { [factors]: type })).toMatchObject(wrong)
  })

  test('for resources of pawl itself is verified: a bank may have served them, and nothing of pawl is approved by it', async () => {
    const { phone } = await v4.world.activePhone('3.3')
    const resourceId = '/operation/authorize'
    const request = phone.prepareSigned({ ...at, resourceId, body: 'x' })
    expect(await askReference(bank, dialect, `${place}/verify`, codeOf(dialect, request, { resourceId }))).toMatchObject(right)
  })

  test('lets flags pass: the library looks at them', async () => {
    const { phone } = await v4.world.activePhone('3.3')
    const flags = ['VERIFICATION_PENDING']
    expectOk(await v4.world.bank.call('PUT', `/admin/activations/${phone.state.activationId}/flags`, { flags }))
    const verdict = await verifyAt(bank, dialect, phone.prepareSigned({ ...at, body: 'x' }))
    expect(verdict).toMatchObject({ ...right, activationFlags: flags })
  })

  test('in a request that lacks a member, or asks for what is not offered, is an error', async () => {
    const { phone } = await v4.world.activePhone('3.3')
    const asked = codeOf(dialect, phone.prepareSigned({ ...at, body: 'x' }))
    const spoil = (more: object) => callReference(bank, dialect, `${place}/verify`, { ...asked, ...more })
    for (const name of Object.keys(asked).slice(0, 6)) expectError(await spoil({ [name]: undefined }), 400, 'ERR0024')
    expectError(await spoil({ [factors]: 'EYES' }), 400, 'ERR0024')
    expectError(
      await spoil(dialect === 'v3' ? { forcedSignatureVersion: 3 } : { allowedStates: ['PENDING_COMMIT'] }),
      400,
      'ERR0024',
    )
  })
})

describe.each(DIALECTS)('a token in the words of %s', (dialect) => {
  const { factors } = WORDS[dialect]
  const validate = (asked: object, caller = bank) => askReference(caller, dialect, 'token/validate', asked)
  const write = async (version: '3.0' | '3.3' = '3.3') => {
    const { phone, userId } = await v4.world.activePhone(version)
    const headers = phone.tokenHeader(await phone.createToken(), await phone.serverTime())
    return { phone, userId, header: headers[headerName('PowerAuth', 'Token')] ?? '' }
  }

  test('is good once over both ways, and says whose it is', async () => {
    const { phone, userId, header } = await write()
    expect(await validate(tokenOf(header))).toEqual({
      tokenValid: true,
      activationId: phone.state.activationId,
      activationStatus: 'ACTIVE',
      userId,
      applicationId: v4.world.applicationId,
      [factors]: 'POSSESSION_KNOWLEDGE',
      applicationRoles: [],
      activationFlags: [],
    })
    expect(await validate(tokenOf(header))).toMatchObject({ tokenValid: false, userId })
    const again = await callDoor(bank, 'token', { token: header, client: { address: '203.0.113.7' } })
    expect(expectOk(again).json).toMatchObject({ isValid: false, reason: 'USED' })
  })

  test('with another digest, nonce or time, of another application or of none is wrong, and stays good', async () => {
    const { phone, header } = await write()
    const asked = tokenOf(header)
    const unknown = { tokenValid: false, activationStatus: 'REMOVED', applicationRoles: [], activationFlags: [] }
    expect(await validate({ ...asked, tokenId: anId })).toEqual(unknown)
    expect(await validate(asked, foreign)).toEqual(unknown)
    const other = { ...asked, nonce: Buffer.from(random(16)).toString('base64') }
    expect(await validate(other)).toMatchObject({ tokenValid: false, activationId: phone.state.activationId })
    expect(await validate({ ...asked, timestamp: Number(asked['timestamp']) - 10 * MINUTE })).toMatchObject({ tokenValid: false })
    expect(await validate({ ...asked, tokenDigest: 'x"' })).toEqual({
      tokenValid: false,
      applicationRoles: [],
      activationFlags: [],
    })
    expect(await validate(asked)).toMatchObject({ tokenValid: true })
  })

  test('of 3.0 and of 4.0 is good', async () => {
    const { header } = await write('3.0')
    expect(await validate(tokenOf(header))).toMatchObject({ tokenValid: true })
    const { phone } = await v4.activePhone('EC_P384')
    const headers = phone.tokenHeader(await phone.createToken(), await phone.serverTime())
    expect(await validate(tokenOf(Object.values(headers)[0] ?? ''))).toMatchObject({ tokenValid: true })
  })

  test('in a request that lacks a member is an error', async () => {
    const { header } = await write()
    const asked = tokenOf(header)
    for (const name of Object.keys(asked))
      expectError(await callReference(bank, dialect, 'token/validate', { ...asked, [name]: undefined }), 400, 'ERR0024')
    expect(await validate(asked)).toMatchObject({ tokenValid: true })
  })
})
