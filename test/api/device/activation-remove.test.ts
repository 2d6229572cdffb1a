// POST /pa/v3/activation/remove (v3 §10.7).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { errorCode, expectRefused, expectUntouched, readCounters, STATE } from '../../helpers/expectations.ts'
import { b64, random } from '../../../phone/v3/crypto.ts'
import { PHONE_VERSIONS } from '../../helpers/phone-versions.ts'
import { withBody, withHeader, withPair } from '../../../phone/header.ts'
import type { PhoneFactors } from '../../../phone/v3/state.ts'
import type { World } from '../../helpers/world.ts'
import { expectOk, registrationOf, startWorld } from '../../helpers/world.ts'

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())

describe.each(PHONE_VERSIONS)('POST /pa/v3/activation/remove in %s', (version) => {
  test.each(['possession_knowledge', 'possession_biometry'] as const)('removes the activation by %s', async (factors) => {
    const { phone, userId } = await world.activePhone(version)
    const reply = expectOk(await phone.send(phone.prepareRemove({ factors })))
    expect(reply.json).toEqual({ status: 'OK', responseObject: { activationId: phone.state.activationId } })
    expect((await readCounters(phone)).state).toBe(STATE.REMOVED)
    expect(await registrationOf(world, userId)).toBe('NONE')
    expectRefused(await phone.send(phone.prepareValidation()), 'signature')
    expectRefused(await phone.send(phone.prepareRemove({ factors })), 'signature')
  })

  test('makes room for another phone of the same user', async () => {
    const { phone, userId } = await world.activePhone(version)
    expectOk(await phone.send(phone.prepareRemove()))
    const { code } = await world.register(userId)
    await world.newPhone(version).activate(code)
    expectOk(await world.bank.commit(userId))
    expect((await readCounters(phone)).state).toBe(STATE.REMOVED)
  })

  test('ends the tokens of the activation', async () => {
    const { phone } = await world.activePhone(version)
    const token = await phone.createToken()
    const request = await phone.prepareDetail(token)
    expectOk(await phone.send(phone.prepareRemove()))
    const reply = await phone.send(request)
    expect([400, 401]).toContain(reply.status)
    expect(['ERR_ENCRYPTION', 'ERR_AUTHENTICATION']).toContain(errorCode(reply))
  })

  test('ignores its body, which the signature covers', async () => {
    const signed = await world.activePhone(version)
    expectRefused(await signed.phone.send(withBody(signed.phone.prepareRemove({ body: '{}' }), '{"a":1}')), 'signature')
    expectOk(await signed.phone.send(signed.phone.prepareRemove({ body: '{"requestObject":{}}' })))
  })

  test.each(['possession', 'possession_knowledge_biometry', 'knowledge'] as const satisfies PhoneFactors[])(
    'refuses the factors %s without looking at the signature',
    async (factors) => {
      const { phone } = await world.activePhone(version)
      await expectUntouched(phone, async () => {
        expectRefused(await phone.send(phone.prepareRemove({ factors })), 'signature')
      })
    },
  )

  test('without its header says so', async () => {
    const { phone } = await world.activePhone(version)
    await expectUntouched(phone, async () => {
      expectRefused(await phone.send(withHeader(phone.prepareRemove(), 'X-PowerAuth-Authorization', undefined)), 'header')
    })
  })

  test('refuses broken headers and wrong signatures, and counts the guess among them', async () => {
    const { phone } = await world.activePhone(version)
    await expectUntouched(phone, async () => {
      expectRefused(await phone.send(withPair(phone.prepareRemove(), 'pa_nonce', 'AAAA')), 'signature')
      expectRefused(await phone.send(withPair(phone.prepareRemove(), 'pa_version', '9.9')), 'signature')
    })
    expectRefused(await phone.send(phone.prepareRemove({ wrongKeys: { knowledge: random(16) } })), 'signature')
    expectRefused(await phone.send(withPair(phone.prepareRemove(), 'pa_nonce', b64(random(16)))), 'signature')
    const elsewhere = phone.prepareSigned({ path: '/pa/v3/activation/remove', resourceId: '/pa/signature/validate' })
    expectRefused(await phone.send(elsewhere), 'signature')
    expect(await readCounters(phone)).toEqual({ state: STATE.ACTIVE, ctrByte: 0, failedAttempts: 1 })
  })

  test('refuses a used signature', async () => {
    const { phone } = await world.activePhone(version)
    const earlier = phone.prepareRemove()
    expectOk(await phone.send(phone.prepareValidation()))
    expectRefused(await phone.send(earlier), 'signature')
    expect((await readCounters(phone)).state).toBe(STATE.ACTIVE)
  })

  test('refuses a phone that is not active', async () => {
    const { phone, userId } = await world.pendingPhone(version)
    expectRefused(await phone.send(phone.prepareRemove()), 'signature')
    expect(await registrationOf(world, userId)).toBe('PENDING_COMMIT')
    expectOk(await world.bank.commit(userId))
    expectOk(await world.bank.change(userId, 'BLOCK'))
    expectRefused(await phone.send(phone.prepareRemove()), 'signature')
    expect(await registrationOf(world, userId)).toBe('BLOCKED')
  })

  test('sent twice at once removes once', async () => {
    const { phone, userId } = await world.activePhone(version)
    const request = phone.prepareRemove()
    const replies = await Promise.all([phone.send(request), phone.send(request)])
    expect(replies.map((reply) => reply.status).sort()).toEqual([200, 401])
    expect(await registrationOf(world, userId)).toBe('NONE')
  })
})
