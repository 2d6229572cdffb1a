// The life of an activation of protocol 4.0 in each algorithm: what its phone and its bank see (v4 §8 to §9).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createShared } from '../../../phone/handset.ts'
import { member } from '../../../phone/http.ts'
import { expectOk, registrationOf } from '../../helpers/world.ts'
import { startWorldV4, type WorldV4 } from '../../helpers/world-v4.ts'
import { TESTED_ALGORITHMS } from '../../helpers/phone-versions.ts'

let v4: WorldV4
beforeAll(async () => {
  v4 = await startWorldV4()
})
afterAll(() => v4.close())

const PENDING = 1
const BIOMETRY = 8

describe.each(TESTED_ALGORITHMS)('a phone with %s', (algorithm) => {
  test('activates, waits for the commit, confirms once, authenticates, and ends its activation', async () => {
    const { userId, code } = await v4.world.register()
    const phone = v4.newPhone(algorithm)
    const { fingerprint, layer1, layer2 } = await phone.activate(code)
    expect(Object.keys(layer2).toSorted()).toEqual(['activationId', 'ctrData', 'serverPublicKeys', 'sharedSecretResponse'])
    expect(layer1.customAttributes).toEqual({})
    const seen = { name: 'Test phone', platform: 'ios', deviceInfo: 'iPhone16,2', activationFingerprint: fingerprint }
    expect(expectOk(await v4.world.bank.view(userId)).json).toEqual({ registration: 'PENDING_COMMIT', ...seen })
    expect(await phone.readStatus()).toMatchObject({ state: 2, currentVersion: 4, flags: PENDING, ctrByte: 0, distance: 0 })
    expect((await phone.send(phone.prepareValidation())).status).toBe(401)
    expectOk(await v4.world.bank.commit(userId))
    await phone.exchange(phone.prepareValidation())
    await phone.exchange(phone.prepareConfirm(true))
    expect(await phone.readStatus()).toMatchObject({
      state: 3,
      flags: BIOMETRY,
      failedAttempts: 0,
      distance: 0,
      isDeadlocked: false,
    })
    const again = await phone.send(phone.prepareConfirm(false))
    expect([again.status, member(again.json, 'responseObject', 'code')]).toEqual([400, 'ERR_ACTIVATION'])
    for (const factors of ['possession', 'possession_knowledge', 'possession_biometry'] as const) {
      for (const method of ['POST', 'PUT', 'DELETE', 'GET'])
        await phone.exchange(
          phone.prepareValidation({ factors, method, ...(method === 'GET' ? { query: 'b=2&a=1' } : { body: '{}' }) }),
        )
    }
    // The body is what is covered wherever there is one, the query elsewhere.
    for (const parts of [{ method: 'GET', body: '{}', query: 'a=1' }, { query: 'a=1' }])
      await phone.exchange(phone.prepareValidation(parts))
    const request = phone.prepareValidation({ body: '{}' })
    expect((await phone.send({ ...request, body: Buffer.from('{ }') })).status).toBe(401)
    await phone.exchange(request)
    expect((await phone.send(request)).status).toBe(401)
    phone.skip(10)
    await phone.exchange(phone.prepareValidation({ body: '' }))
    expect(await phone.readStatus()).toMatchObject({ flags: BIOMETRY, distance: 0, isDeadlocked: false })
    await phone.exchange(phone.prepareRemove({ factors: 'possession_biometry' }))
    expect(await registrationOf(v4.world, userId)).toBe('NONE')
    expect(await phone.readStatus()).toMatchObject({ state: 5 })
    expect((await phone.send(phone.prepareValidation())).status).toBe(401)
  })

  test('has tokens, a name, a vault and user information', async () => {
    const { phone, userId } = await v4.activePhone(algorithm)
    const token = await phone.createToken()
    expect(token.secret).toHaveLength(32)
    expect(await phone.exchange(await phone.prepareRename('renamed'))).toMatchObject({ status: 'OK' })
    expect(await phone.exchange(await phone.prepareDetail(token))).toEqual({
      status: 'OK',
      responseObject: { activationId: phone.state.activationId, activationName: 'renamed' },
    })
    for (const [identifier, name] of [
      ['KEK_DEVICE_PRIVATE', 'kekDevicePrivate'],
      ['KDK_APP_VAULT_KNOWLEDGE', 'kdkAppVaultKnowledge'],
      ['KDK_APP_VAULT_2FA', 'kdkAppVault2fa'],
    ] as const) {
      const key = await phone.exchange(await phone.prepareVaultUnlock(identifier))
      expect(Buffer.from(key)).toEqual(Buffer.from(phone.state.keys?.[name] ?? []))
    }
    const audited = await v4.world.bank.call('GET', `/audit/log?userId=${userId}`)
    const event = JSON.stringify({ keyIdentifier: 'KDK_APP_VAULT_2FA', reason: 'FETCH_ENCRYPTION_KEY' })
    expect(audited.text).toContain(JSON.stringify(`POST\n/pa/vault/unlock\n${event}`))
    for (const reason of [null, '', 'Why not? "ř"']) {
      const plaintext = JSON.stringify({ keyIdentifier: 'KDK_APP_VAULT_2FA', reason })
      await phone.exchange(await phone.prepareVaultUnlock('KDK_APP_VAULT_2FA', { plaintext }))
    }
    const shown = JSON.stringify({ keyIdentifier: 'KDK_APP_VAULT_2FA', reason: 'Why not? "ř"' })
    expect((await v4.world.bank.call('GET', `/audit/log?userId=${userId}`)).text).toContain(JSON.stringify(shown).slice(1, -1))
    expect(await phone.exchange(await phone.prepareUserInfo())).toMatchObject({ sub: expect.any(String) as unknown })
    const altered = await phone.prepareUserInfo({ alterEnvelope: (envelope) => ({ ...envelope, timestamp: 1 }) })
    expect((await phone.send(altered)).status).toBe(400)
    await phone.exchange(phone.prepareTokenRemove(token.id))
    expect((await phone.send(await phone.prepareDetail(token))).status).toBe(401)
  })

  test('knows the QR codes that are meant for it, and types one-time passwords for them', async () => {
    const { userId, phone } = await v4.activePhone(algorithm)
    for (const factors of ['possession_knowledge', 'possession_biometry'] as const) {
      const created = expectOk(await v4.world.bank.createOperation({ userId, template: 'login' })).json
      const operationId = String(member(created, 'operationId'))
      const { operationQrCodeData, nonce } = expectOk(await v4.world.bank.offlineQr(operationId)).json as Record<string, string>
      const [id, title = '', , operationData = ''] = (operationQrCodeData ?? '').split('\n')
      expect(id).toBe(operationId)
      expect(phone.isPersonalized(operationQrCodeData ?? '')).toBe(true)
      expect(phone.isPersonalized(operationQrCodeData?.replace(title, 'Another') ?? '')).toBe(false)
      const request = { operationId, operationData, nonce: nonce ?? '', factors }
      const wrong = phone.typeOtp({ ...request, operationData: `${operationData}0` })
      expect((await v4.world.bank.offlineOtp(operationId, wrong, nonce)).status).toBe(400)
      expectOk(await v4.world.bank.offlineOtp(operationId, phone.typeOtp(request), nonce))
    }
    expect(await phone.readStatus()).toMatchObject({ failedAttempts: 0, distance: 0, isDeadlocked: false })
  })

  test('changes its password and its biometry', async () => {
    const { phone } = await v4.activePhone(algorithm, { enableBiometry: false })
    expect((await phone.send(phone.prepareValidation({ factors: 'possession_biometry' }))).status).toBe(401)
    expect(await phone.readStatus()).toMatchObject({ failedAttempts: 0, flags: 0 })
    const knowledge = await phone.exchange(await phone.preparePasswordChange())
    await phone.exchange(phone.prepareValidation())
    // The old key was used, so the new one is forgotten.
    const old = phone.state.keys?.knowledge ?? new Uint8Array(0)
    phone.adopt({ knowledge })
    expect((await phone.send(phone.prepareValidation())).status).toBe(401)
    phone.adopt({ knowledge: old })
    const next = await phone.exchange(await phone.preparePasswordChange())
    phone.adopt({ knowledge: next })
    await phone.exchange(phone.prepareValidation())
    phone.adopt({ knowledge: old })
    expect((await phone.send(phone.prepareValidation())).status).toBe(401)
    phone.adopt({ knowledge: next })
    phone.adopt({ biometry: await phone.exchange(await phone.prepareBiometryAdd()) })
    await phone.exchange(phone.prepareValidation({ factors: 'possession_biometry' }))
    expect(await phone.readStatus()).toMatchObject({ flags: BIOMETRY, isDeadlocked: false })
    await phone.exchange(phone.prepareBiometryRemove())
    expect((await phone.send(phone.prepareValidation({ factors: 'possession_biometry' }))).status).toBe(401)
    expect(await phone.readStatus()).toMatchObject({ flags: 0 })
  })
})

test('a phone whose status has two counters that disagree does not go on from either', async () => {
  const { phone } = await v4.activePhone('EC_P384')
  const { counter } = phone.state
  const read = async () => ({ ...(await phone.readStatus()), distance: 3, isDeadlocked: true })
  await expect(createShared({ ...phone, readStatus: read }).readStatus()).rejects.toThrow('disagree')
  expect(phone.state.counter).toBe(counter)
})
