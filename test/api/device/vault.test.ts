// POST /pa/v3/vault/unlock (v3 §12).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectError, expectRefused, expectUntouched, MINUTE, readCounters, STATE } from '../../helpers/expectations.ts'
import { b64, hasTemporaryKeys, hasTimestamp, newKeyPair, random } from '../../../phone/v3/crypto.ts'
import { PHONE_VERSIONS } from '../../helpers/phone-versions.ts'
import type { EnvelopeJson } from '../../../phone/v3/envelope.ts'
import { withBody, withHeader, withPair } from '../../../phone/header.ts'
import type { World } from '../../helpers/world.ts'
import { expectOk, startWorld } from '../../helpers/world.ts'

const HEADER = 'X-PowerAuth-Authorization'

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())

describe.each(PHONE_VERSIONS)('POST /pa/v3/vault/unlock in %s', (version) => {
  test('gives the vault key of the activation to possession and knowledge', async () => {
    const { phone } = await world.activePhone(version)
    for (let i = 1; i <= 2; i++) {
      const vaultKey = await phone.exchange(await phone.prepareVaultUnlock())
      expect(b64(vaultKey)).toBe(b64(phone.state.keys?.vault ?? random(16)))
      expect(await readCounters(phone)).toEqual({ state: STATE.ACTIVE, ctrByte: i, failedAttempts: 0 })
    }
  })

  test.each(['{}', '{"reason":null}', '{"reason":"FETCH_ENCRYPTION_KEY"}', '{"reason":"a.b-c_9","unknown":1}'])(
    'takes the plaintext %s',
    async (plaintext) => {
      const { phone } = await world.activePhone(version)
      await phone.exchange(await phone.prepareVaultUnlock({ plaintext }))
    },
  )

  test('tells the audit log why it was opened, and nothing else of the request', async () => {
    const { phone, userId } = await world.activePhone(version)
    await phone.exchange(await phone.prepareVaultUnlock({ plaintext: '{"reason":"ADD_BIOMETRY"}' }))
    const log = await world.bank.call('GET', `/audit/log?userId=${userId}`)
    expect(log.text).toContain(JSON.stringify('POST\n/pa/vault/unlock\n{"reason":"ADD_BIOMETRY"}'))
  })

  // What turns the direction of the text around it is shown escaped.
  test.each([
    ['', ''],
    ['ab', 'ab'],
    ['with blank, "ř" \\ <b>&🐈', 'with blank, "ř" \\ <b>&🐈'],
    ['x'.repeat(255), 'x'.repeat(255)],
    ['paid \u202Elaw\u2066', 'paid \\u202elaw\\u2066'],
  ])('stores the reason %j', async (reason, shown) => {
    const { phone, userId } = await world.activePhone(version)
    await phone.exchange(await phone.prepareVaultUnlock({ plaintext: JSON.stringify({ reason }) }))
    const log = await world.bank.call('GET', `/audit/log?userId=${userId}`)
    expect(log.text).toContain(JSON.stringify(`POST\n/pa/vault/unlock\n${JSON.stringify({ reason: shown })}`))
  })

  test.each(['possession', 'possession_biometry'] as const)('stays closed for %s, untouched', async (factors) => {
    const { phone } = await world.activePhone(version)
    await expectUntouched(phone, async () => {
      expectRefused(await phone.send(await phone.prepareVaultUnlock({ factors })), 'vault')
    })
    await phone.exchange(await phone.prepareVaultUnlock())
  })

  test('stays closed for three factors and for single ones, untouched', async () => {
    const { phone } = await world.activePhone(version)
    await expectUntouched(phone, async () => {
      for (const factors of ['possession_knowledge_biometry', 'knowledge', 'biometry'] as const) {
        expectRefused(await phone.send(await phone.prepareVaultUnlock({ factors })), 'vault')
      }
    })
  })

  test('counts a wrong signature and does not burn the envelope it came with', async () => {
    const { phone } = await world.activePhone(version)
    const genuine = await phone.prepareVaultUnlock()
    const wrong = phone.prepareSigned({
      path: genuine.path,
      resourceId: '/pa/vault/unlock',
      body: genuine.body,
      wrongKeys: { knowledge: random(16) },
    })
    expectRefused(await phone.send(wrong), 'signature')
    expect(await readCounters(phone)).toEqual({ state: STATE.ACTIVE, ctrByte: 0, failedAttempts: 1 })
    await phone.exchange(genuine)
    expect(await readCounters(phone)).toEqual({ state: STATE.ACTIVE, ctrByte: 1, failedAttempts: 0 })
  })

  test('refuses the same request again', async () => {
    const { phone } = await world.activePhone(version)
    const request = await phone.prepareVaultUnlock()
    await phone.exchange(request)
    // From 3.2 on the envelope is good once, and it is opened before the code is looked at.
    expectRefused(await phone.send(request), version === '3.0' || version === '3.1' ? 'signature' : 'vault')
    await phone.exchange(await phone.prepareVaultUnlock())
  })

  test('covers the envelope as sent and its own resource', async () => {
    const { phone } = await world.activePhone(version)
    const request = await phone.prepareVaultUnlock()
    const spaced = withBody(request, JSON.stringify(JSON.parse(Buffer.from(request.body).toString()), null, 1))
    const { body, path } = await phone.prepareVaultUnlock()
    await expectUntouched(phone, async () => {
      expectRefused(await phone.send(spaced), 'signature')
      expectRefused(await phone.send(phone.prepareSigned({ path, resourceId: '/pa/token/create', body })), 'signature')
    })
    await phone.exchange(await phone.prepareVaultUnlock())
  })

  test('tells only the owner of a code that the body it covers is no JSON', async () => {
    const { phone, userId } = await world.activePhone(version)
    const { path } = await phone.prepareVaultUnlock()
    const request = { path, resourceId: '/pa/vault/unlock', body: Buffer.from('{') }
    for (const wrongKeys of [{ possession: random(16) }, { knowledge: random(16) }])
      expectRefused(await phone.send(phone.prepareSigned({ ...request, wrongKeys })), 'signature')
    expect((await phone.send(phone.prepareSigned(request))).status).toBe(400)
    const log = await world.bank.call('GET', `/audit/log?userId=${userId}`)
    expect(log.text.match(/\[encrypted, 1 bytes\]/g)).toHaveLength(3)
    await phone.exchange(await phone.prepareVaultUnlock())
  })

  test('refuses a missing or broken header untouched', async () => {
    const { phone } = await world.activePhone(version)
    const request = await phone.prepareVaultUnlock()
    await expectUntouched(phone, async () => {
      expectError(await phone.send(withHeader(request, HEADER, undefined)), 401, 'ERR_AUTHENTICATION')
      expectRefused(await phone.send(withPair(request, 'pa_nonce', 'AAAA')), 'signature')
      expectRefused(await phone.send(withPair(request, 'pa_signature_type', undefined)), 'signature')
      expectError(await phone.send(withPair(request, 'pa_version', '9.9')), 401, 'ERR_AUTHENTICATION')
    })
    await phone.exchange(request)
  })

  test('refuses a phone that is not active as not authenticated', async () => {
    const { phone, userId } = await world.activePhone(version)
    const temporaryKey = hasTemporaryKeys(version) ? await phone.fetchTemporaryKey('activation') : undefined
    expectOk(await world.bank.change(userId, 'BLOCK'))
    await expectUntouched(phone, async () => {
      expectRefused(await phone.send(await phone.prepareVaultUnlock({ temporaryKey })), 'signature')
    })
    expectOk(await world.bank.change(userId, 'UNBLOCK'))
    await phone.exchange(await phone.prepareVaultUnlock({ temporaryKey }))
    expectOk(await world.bank.remove(userId))
    expectRefused(await phone.send(await phone.prepareVaultUnlock({ temporaryKey })), 'signature')
  })

  test('sent twice at once opens once', async () => {
    const { phone } = await world.activePhone(version)
    const request = await phone.prepareVaultUnlock()
    const replies = await Promise.all([phone.send(request), phone.send(request)])
    expect(replies.filter((reply) => reply.status === 200)).toHaveLength(1)
    expect((await readCounters(phone)).ctrByte).toBe(1)
  })
})

describe.each(PHONE_VERSIONS)('POST /pa/v3/vault/unlock in %s, a well-signed body', (version) => {
  test.each(['', 'null', '{}'])('that is %j is no request', async (body) => {
    const { phone } = await world.activePhone(version)
    const request = phone.prepareSigned({ path: '/pa/v3/vault/unlock', resourceId: '/pa/vault/unlock', body })
    expectRefused(await phone.send(request), 'request')
  })

  test.each<[string, (envelope: EnvelopeJson) => EnvelopeJson]>([
    ['ephemeral key', ({ ephemeralPublicKey: _, ...rest }) => rest],
    ['data', ({ encryptedData: _, ...rest }) => rest],
    ['MAC', ({ mac: _, ...rest }) => rest],
  ])('without %s is no request', async (_, alterEnvelope) => {
    const { phone } = await world.activePhone(version)
    expectRefused(await phone.send(await phone.prepareVaultUnlock({ alterEnvelope })), 'request')
  })

  test('that does not decrypt does not move the counter', async () => {
    const { phone } = await world.activePhone(version)
    const alterEnvelope = (envelope: EnvelopeJson) => ({ ...envelope, mac: b64(random(32)) })
    await expectUntouched(phone, async () => {
      expectRefused(await phone.send(await phone.prepareVaultUnlock({ alterEnvelope })), 'vault')
      const { uncompressed: publicKey } = newKeyPair()
      expectRefused(await phone.send(await phone.prepareVaultUnlock({ publicKey })), 'vault')
    })
  })

  test('whose plaintext is no JSON is not authenticated', async () => {
    const { phone } = await world.activePhone(version)
    expectError(await phone.send(await phone.prepareVaultUnlock({ plaintext: '{"reason":' })), 401, 'ERR_AUTHENTICATION')
  })

  test.each([`"${'x'.repeat(256)}"`, '"a\\u0000b"', '"a\\nb"', '"a\\u0085b"', '"\\ud800"', '7', '{}'])(
    'with the reason %s stays closed and does not move the counter',
    async (reason) => {
      const { phone } = await world.activePhone(version)
      await expectUntouched(phone, async () => {
        expectRefused(await phone.send(await phone.prepareVaultUnlock({ plaintext: `{"reason":${reason}}` })), 'vault')
      })
    },
  )

  test.runIf(hasTimestamp(version))('outside the time window stays closed and does not move the counter', async () => {
    const { phone } = await world.activePhone(version)
    const now = await phone.serverTime()
    await expectUntouched(phone, async () => {
      for (const timestamp of [now - 6 * MINUTE, now + 6 * MINUTE]) {
        expectRefused(await phone.send(await phone.prepareVaultUnlock({ timestamp })), 'vault')
      }
    })
  })
})

describe('the vault of an application that admits more factors', () => {
  test.each(PHONE_VERSIONS)('opens in %s for biometry as long as the setting says so', async (version) => {
    const path = `/admin/applications/${world.applicationId}`
    const { phone } = await world.activePhone(version)
    const factors = 'possession_biometry'
    expectOk(await world.bank.call('PATCH', path, { vaultFactors: ['POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY'] }))
    const vaultKey = await phone.exchange(await phone.prepareVaultUnlock({ factors }))
    expect(b64(vaultKey)).toBe(b64(phone.state.keys?.vault ?? random(16)))
    expectRefused(await phone.send(await phone.prepareVaultUnlock({ factors: 'possession' })), 'vault')
    expectOk(await world.bank.call('PATCH', path, { vaultFactors: ['POSSESSION_KNOWLEDGE'] }))
    expectRefused(await phone.send(await phone.prepareVaultUnlock({ factors })), 'vault')
  })
})
