// POST /pa/v3/activation/status (v3 §9.2 to §9.5).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestServer } from '../../helpers/app.ts'
import { expectError, MINUTE, STATE } from '../../helpers/expectations.ts'
import type { HttpReply } from '../../../phone/http.ts'
import { member, sendJson } from '../../../phone/http.ts'
import { b64, ctrDataHash, hasNonce, nextCtrData, openStatusBlob, random, unb64 } from '../../../phone/v3/crypto.ts'
import { PHONE_VERSIONS } from '../../helpers/phone-versions.ts'
import { keysOf } from '../../../phone/v3/state.ts'
import type { World } from '../../helpers/world.ts'
import { expectOk, openWorld, startWorld } from '../../helpers/world.ts'

const UNKNOWN = '00000000-0000-4000-8000-000000000000'

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())

const ask = (requestObject: unknown): Promise<HttpReply> =>
  sendJson(world.url, 'POST', '/pa/v3/activation/status', { requestObject })

describe.each(PHONE_VERSIONS)('POST /pa/v3/activation/status in %s', (version) => {
  test('shows every state after the key exchange', async () => {
    const { phone, userId } = await world.pendingPhone(version)
    const state = async () => (await phone.readStatus()).state
    expect(await state()).toBe(STATE.PENDING_COMMIT)
    expectOk(await world.bank.commit(userId))
    expect(await state()).toBe(STATE.ACTIVE)
    expectOk(await world.bank.change(userId, 'BLOCK'))
    expect(await state()).toBe(STATE.BLOCKED)
    expectOk(await world.bank.change(userId, 'UNBLOCK'))
    expect(await state()).toBe(STATE.ACTIVE)
    expectOk(await world.bank.remove(userId))
    expect(await state()).toBe(STATE.REMOVED)
  })

  test('counts what the signatures of this version did', async () => {
    const { phone } = await world.activePhone(version)
    for (let i = 0; i < 3; i++) expectOk(await phone.send(phone.prepareValidation()))
    const atPhone = phone.state.ctrData
    await phone.send(phone.prepareValidation({ wrongKeys: { knowledge: random(16) } }))
    const status = await phone.readStatus({ withChallenge: true })
    expect(status).toMatchObject({
      state: STATE.ACTIVE,
      currentVersion: 3,
      ctrByte: 3,
      failedAttempts: 1,
      maxFailedAttempts: 5,
      lookAhead: 20,
    })
    expect([3, 4]).toContain(status.upgradeVersion)
    expect(b64(status.ctrDataHash)).toBe(b64(ctrDataHash(keysOf(phone.state), atPhone)))
    expect(b64(status.ctrDataHash)).not.toBe(b64(ctrDataHash(keysOf(phone.state), nextCtrData(atPhone))))
  })

  test('shows an activation whose commit came too late as removed', async () => {
    const { phone } = await world.pendingPhone(version)
    await world.advance(4 * MINUTE)
    expect((await phone.readStatus()).state).toBe(STATE.PENDING_COMMIT)
    await world.advance(2 * MINUTE)
    expect((await phone.readStatus()).state).toBe(STATE.REMOVED)
  })
})

describe('POST /pa/v3/activation/status, form of the answer', () => {
  test('with a challenge carries a nonce of 16 bytes, without one none', async () => {
    const { phone } = await world.activePhone('3.1')
    const { activationId } = phone.state
    const challenge = b64(random(16))
    const fields = { activationId, encryptedStatusBlob: expect.any(String) }
    const old = expectOk(await ask({ activationId }))
    expect(old.json).toEqual({ status: 'OK', responseObject: fields })
    const current = expectOk(await ask({ activationId, challenge }))
    expect(current.json).toEqual({ status: 'OK', responseObject: { ...fields, nonce: expect.any(String) } })
    expect(unb64(String(member(current.json, 'responseObject', 'nonce')))).toHaveLength(16)
    for (const reply of [old, current]) {
      expect(unb64(String(member(reply.json, 'responseObject', 'encryptedStatusBlob')))).toHaveLength(32)
    }
  })

  test('takes a null challenge for an absent one', async () => {
    const { phone } = await world.activePhone('3.0')
    const reply = expectOk(await ask({ activationId: phone.state.activationId, challenge: null }))
    expect(member(reply.json, 'responseObject', 'nonce')).toBeUndefined()
  })

  test('differs from answer to answer', async () => {
    const { phone } = await world.activePhone('3.1')
    const request = { activationId: phone.state.activationId, challenge: b64(random(16)) }
    const replies = [await ask(request), await ask(request)]
    const texts = replies.map((reply) => reply.text)
    expect(texts[0]).not.toBe(texts[1])
  })

  test('in the 3.0 form hides counter, look-ahead and hash behind random bytes and shows the failed attempts', async () => {
    const { phone } = await world.activePhone('3.0')
    for (let i = 0; i < 2; i++) await phone.send(phone.prepareValidation({ wrongKeys: { knowledge: random(16) } }))
    const blobs = await Promise.all(Array.from({ length: 8 }, () => phone.readStatus({ withChallenge: false })))
    for (const blob of blobs) expect(blob).toMatchObject({ state: STATE.ACTIVE, failedAttempts: 2, maxFailedAttempts: 5 })
    expect(new Set(blobs.map((blob) => b64(blob.ctrDataHash))).size).toBe(8)
    expect(new Set(blobs.map((blob) => `${blob.ctrByte}/${blob.lookAhead}`)).size).toBeGreaterThan(1)
  })
})

describe('POST /pa/v3/activation/status, unknown activations', () => {
  test.each(PHONE_VERSIONS)('answers %s with bytes that look like a status', async (version) => {
    const { phone } = await world.activePhone(version)
    const challenge = hasNonce(version) ? { challenge: b64(random(16)) } : {}
    const known = expectOk(await ask({ activationId: phone.state.activationId, ...challenge }))
    const unknown = expectOk(await ask({ activationId: UNKNOWN, ...challenge }))
    const shape = (reply: HttpReply) =>
      Object.entries(member(reply.json, 'responseObject') as object).map(([name, value]) => [name, String(value).length])
    expect(shape(unknown)).toEqual(shape(known))
    expect(member(unknown.json, 'responseObject', 'activationId')).toBe(UNKNOWN)
    const again = expectOk(await ask({ activationId: UNKNOWN, ...challenge }))
    expect(again.text).not.toBe(unknown.text)
  })

  test('compares identifiers as text', async () => {
    const { phone } = await world.activePhone('3.1')
    const { activationId } = phone.state
    const challenge = random(16)
    const reply = expectOk(await ask({ activationId: activationId.toUpperCase(), challenge: b64(challenge) }))
    expect(member(reply.json, 'responseObject', 'activationId')).toBe(activationId.toUpperCase())
    const blob = unb64(String(member(reply.json, 'responseObject', 'encryptedStatusBlob')))
    const nonce = unb64(String(member(reply.json, 'responseObject', 'nonce')))
    expect(openStatusBlob(keysOf(phone.state), blob, challenge, nonce)).toBeUndefined()
  })
})

describe('POST /pa/v3/activation/status before the key exchange', () => {
  test.each(PHONE_VERSIONS)('does not tell in %s whether there is a registration, nor that one was removed', async (version) => {
    const server = await startTestServer()
    const own = await openWorld({
      urls: [server.url],
      admin: `${server.admin.user}:${server.admin.password}`,
      advance: server.clock.advance,
      close: server.close,
    })
    const { userId, code } = await own.register()
    // The API reveals the identifier with the key exchange only.
    const { activation_id: activationId } = await server.context.db
      .selectFrom('activation')
      .select('activation_id')
      .executeTakeFirstOrThrow()
    const challenge = hasNonce(version) ? { challenge: b64(random(16)) } : {}
    const answer = async (): Promise<HttpReply> =>
      expectOk(await sendJson(own.url, 'POST', '/pa/v3/activation/status', { requestObject: { activationId, ...challenge } }))
    const phone = own.newPhone(version)
    const replies = [await answer(), await answer()]
    const layer2 = { devicePublicKey: b64(new Uint8Array(65).fill(1).with(0, 4)) }
    expect((await phone.send(await phone.prepareActivation(code, { layer2 }))).status).toBe(400)
    expect((await own.bank.view(userId)).json).toEqual({ registration: 'NONE' })
    replies.push(await answer(), await answer())
    const objects = replies.map((reply) => member(reply.json, 'responseObject') as Record<string, string>)
    for (const object of objects) {
      expect(Object.keys(object)).toEqual(['activationId', 'encryptedStatusBlob', ...(hasNonce(version) ? ['nonce'] : [])])
      expect(unb64(String(object.encryptedStatusBlob))).toHaveLength(32)
    }
    expect(new Set(objects.map((object) => object.encryptedStatusBlob)).size).toBe(4)
    await own.close()
  })
})

describe('POST /pa/v3/activation/status, structural errors', () => {
  test.each<[string, unknown]>([
    ['no request object', undefined],
    ['an empty request object', {}],
    ['a null activation id', { activationId: null }],
    ['an activation id that is not text', { activationId: 7 }],
    ['a challenge of 15 bytes', { activationId: UNKNOWN, challenge: b64(random(15)) }],
    ['a challenge of 17 bytes', { activationId: UNKNOWN, challenge: b64(random(17)) }],
    ['an empty challenge', { activationId: UNKNOWN, challenge: '' }],
    ['a challenge outside the Base64 alphabet', { activationId: UNKNOWN, challenge: '!'.repeat(24) }],
    ['a challenge that is not text', { activationId: UNKNOWN, challenge: 7 }],
  ])('refuses %s', async (_, requestObject) => {
    expectError(await ask(requestObject), 400, 'ERR_VALIDATION')
  })

  test.each(['x', '', ' ', 'a\u0000b', 'x'.repeat(5000), '\ud800'])(
    'does not fail on the activation id %j',
    async (activationId) => {
      const reply = await ask({ activationId, challenge: b64(random(16)) })
      expect([200, 400]).toContain(reply.status)
      if (reply.status === 400) expectError(reply, 400, 'ERR_VALIDATION')
    },
  )
})
