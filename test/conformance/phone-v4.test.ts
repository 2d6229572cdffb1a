// The phone of 4.0 and the pure protocol, each written from the specification on its own, through a whole life (v4 §4 to §11).
import { describe, expect, test } from 'vitest'
import { toBase64 } from '../../src/lib/base64.ts'
import { v4 } from '../../src/protocol/v4/index.ts'
import { isEs384, PHONE_ALGORITHMS } from '../helpers/phone-v4-crypto.ts'
import { readSdkConfiguration } from '../helpers/phone-v4-state.ts'
import { startStandIn } from '../helpers/v4-stand-in.ts'
import { createPhoneV4 } from '../helpers/virtual-phone-v4.ts'

// The only activation of the stand-in.
const ACTIVATION_ID = '4797003e-9a97-43a5-9e12-3b643c65a045'

describe.each(PHONE_ALGORITHMS)('a phone with %s', (algorithm) => {
  async function startPhone() {
    const server = await startStandIn(algorithm)
    const phone = createPhoneV4({ url: server.url, app: readSdkConfiguration(server.mobileSdkConfig), algorithm })
    const { fingerprint } = await phone.activate('AAAAA-AAAAA-AAAAA-AAAAA')
    return { server, phone, fingerprint }
  }

  test('activates, confirms, authenticates, and is refused what it should be refused', async () => {
    const { server, phone, fingerprint } = await startPhone()
    expect(fingerprint).toBe(server.memory.fingerprint)
    await phone.exchange(phone.prepareConfirm(true))
    for (const factors of ['possession', 'possession_knowledge', 'possession_biometry'] as const) {
      for (const method of ['POST', 'PUT']) await phone.exchange(phone.prepareValidation({ factors, method, body: '{"a":1}' }))
      for (const method of ['GET', 'DELETE'])
        await phone.exchange(phone.prepareValidation({ factors, method, query: 'b=2&a=%C5%BE' }))
      await phone.exchange(phone.prepareValidation({ factors }))
    }
    const status = await phone.readStatus()
    expect(status).toMatchObject({ state: 3, currentVersion: 4, flags: 8, failedAttempts: 0, distance: 0, isDeadlocked: false })
    const request = phone.prepareValidation({ body: '{}' })
    expect((await phone.send({ ...request, body: Buffer.from('{ }') })).status).toBe(401)
    expect((await phone.send(request)).status).toBe(200)
    expect((await phone.send(request)).status).toBe(401)
    expect((await phone.send(phone.prepareValidation({ wrongKeys: { knowledge: Buffer.alloc(32) } }))).status).toBe(401)
    phone.skip(10)
    await phone.exchange(phone.prepareValidation())
    expect(await phone.readStatus()).toMatchObject({ failedAttempts: 3, distance: 0, isDeadlocked: false })
    await phone.exchange(phone.prepareRemove({ factors: 'possession_biometry' }))
    await server.close()
  })

  test('uses tokens, the vault, and encrypted requests', async () => {
    const { server, phone } = await startPhone()
    const token = await phone.createToken()
    expect(await phone.exchange(await phone.prepareDetail(token))).toMatchObject({ responseObject: {} })
    const keys = phone.state.keys
    for (const [identifier, expected] of [
      ['KEK_DEVICE_PRIVATE', keys?.kekDevicePrivate],
      ['KDK_APP_VAULT_KNOWLEDGE', keys?.kdkAppVaultKnowledge],
      ['KDK_APP_VAULT_2FA', keys?.kdkAppVault2fa],
    ] as const) {
      expect(toBase64(await phone.exchange(await phone.prepareVaultUnlock(identifier)))).toBe(expected && toBase64(expected))
    }
    expect(await phone.exchange(await phone.prepareRename('x'))).toEqual({
      status: 'OK',
      responseObject: { activationName: 'x' },
    })
    expect(await phone.exchange(await phone.prepareUserInfo())).toEqual({ sub: 'user' })
    for (const scope of ['application', 'activation'] as const) {
      expect(await phone.exchange(await phone.prepareConfiguration(scope))).toEqual({ config: [] })
    }
    const changed = await phone.prepareUserInfo({ alterEnvelope: (envelope) => ({ ...envelope, timestamp: 1 }) })
    expect((await phone.send(changed)).status).toBe(400)
    await server.close()
  })

  test('changes its password and its biometry', async () => {
    const { server, phone } = await startPhone()
    const knowledge = await phone.exchange(await phone.preparePasswordChange())
    await phone.exchange(phone.prepareValidation({ wrongKeys: { knowledge } }))
    expect((await phone.send(phone.prepareValidation())).status).toBe(401)
    phone.adopt({ knowledge })
    await phone.exchange(phone.prepareValidation())
    await phone.exchange(phone.prepareBiometryRemove())
    expect((await phone.send(phone.prepareValidation({ factors: 'possession_biometry' }))).status).toBe(401)
    phone.adopt({ biometry: await phone.exchange(await phone.prepareBiometryAdd()) })
    await phone.exchange(phone.prepareValidation({ factors: 'possession_biometry' }))
    await server.close()
  })

  test('types one-time passwords for QR codes that prove themselves', async () => {
    const { server, phone } = await startPhone()
    const nonce = toBase64(Buffer.alloc(16, 4))
    const payload = server.createPayload('1\nTitle\nText\nA1', nonce, '12345678')
    expect(phone.isPersonalized(payload)).toBe(true)
    expect(phone.isPersonalized(payload.replace('Title', 'title'))).toBe(false)
    const master = await server.createMasterPayload('1\nTitle', nonce)
    const [head, signature] = [`1\nTitle\n${nonce}\n0`, Buffer.from(master.split('\n0')[1] ?? '', 'base64')]
    expect(isEs384(phone.options.app.p384, Buffer.from(head), signature, 'der')).toBe(true)
    const { ctrData, activationSecret } = server.memory
    const request = { operationId: '1', operationData: 'A1', nonce, totp: '12345678' }
    const otp = phone.typeOtp({ ...request, factors: 'possession_biometry' })
    const keys = v4.deriveActivationKeys(activationSecret ?? new Uint8Array(0))
    const given = { ...request, otp, nonceBase64: nonce, componentLength: 8, isBiometryAllowed: true, totps: ['12345678'] }
    expect(v4.verifyOfflineOtp(keys, ctrData, given, 20)).toMatchObject({ steps: 1, factors: 'POSSESSION_BIOMETRY' })
    await server.close()
  })

  test('is upgraded, and its counter goes on', async () => {
    const server = await startStandIn(algorithm)
    const phone = createPhoneV4({ url: server.url, app: readSdkConfiguration(server.mobileSdkConfig), algorithm })
    phone.state.activationId = ACTIVATION_ID
    const authorize = () => ({ 'X-PowerAuth-Authorization': 'a code of 3.3' })
    const { fingerprint } = await phone.exchange(await phone.prepareUpgradeStart(authorize, { counter: 155 }))
    expect(fingerprint).toBe(server.memory.fingerprint)
    await phone.exchange(phone.prepareUpgradeConfirm())
    for (let i = 0; i < 100; i += 1) phone.skip(1)
    expect((await phone.send(phone.prepareValidation())).status).toBe(401)
    expect(await phone.readStatus()).toMatchObject({ ctrByte: 156, failedAttempts: 1 })
    await server.close()
  })
})
