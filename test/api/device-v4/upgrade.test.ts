// From protocol 3 to protocol 4.0: two sides of one activation until the phone confirms (v4 §10).
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { member } from '../../../phone/http.ts'
import { b64 } from '../../../phone/v3/crypto.ts'
import { type PhoneAlgorithm } from '../../../phone/v4/crypto.ts'
import { expectOk, registrationOf } from '../../helpers/world.ts'
import { startWorldV4, type WorldV4 } from '../../helpers/world-v4.ts'
import { TESTED_ALGORITHMS } from '../../helpers/phone-versions.ts'

let v4: WorldV4
beforeAll(async () => {
  v4 = await startWorldV4()
})
afterAll(() => v4.close())

/** A phone of 3.3 and the same phone as it will be in 4.0. */
async function upgradingPhone(algorithm: PhoneAlgorithm) {
  const { userId, phone: old } = await v4.world.activePhone('3.3')
  expectOk(await old.send(old.prepareValidation()))
  const phone = v4.newPhone(algorithm)
  phone.state.activationId = old.state.activationId
  const authorize = (body: Uint8Array) =>
    old.prepareSigned({ path: '/pa/v4/upgrade/start', resourceId: '/pa/upgrade/start', body: Buffer.from(body).toString() })
      .headers
  // Two codes of 3.3 by the time the upgrade has started.
  const start = async (options: Parameters<typeof phone.prepareUpgradeStart>[1] = {}) =>
    phone.prepareUpgradeStart(authorize, options)
  return { userId, old, phone, authorize, start }
}

/** What administrators see of an activation. */
async function readDetail(activationId: string): Promise<unknown> {
  const { bank, applicationId } = v4.world
  return expectOk(await bank.call('GET', `/admin/applications/${applicationId}/registrations/${activationId}`)).json
}

const codeOf = (reply: { status: number; json: unknown }) => [reply.status, member(reply.json, 'responseObject', 'code')]

describe.each(TESTED_ALGORITHMS)('an upgrade to %s', (algorithm) => {
  test('keeps 3.3 good until it is confirmed, and 4.0 from then on', async () => {
    const { userId, old, phone, start } = await upgradingPhone(algorithm)
    const { fingerprint } = await phone.exchange(await start({ counter: 2, enableBiometry: true }))
    expect(await phone.readStatus()).toMatchObject({ currentVersion: 3, upgradeVersion: 4, flags: 10, ctrByte: 2, distance: 0 })
    expect(await readDetail(phone.state.activationId)).toMatchObject({ protocolVersion: 3, isUpgradePending: true })
    expectOk(await old.send(old.prepareValidation()))
    expect((await phone.send(phone.prepareValidation())).status).toBe(401)
    // The code that was refused has moved the phone only.
    await phone.exchange(phone.prepareUpgradeConfirm())
    const expected = { protocolVersion: 4, algorithm, isConfirmationPending: false, isBiometryEnabled: true }
    expect(await readDetail(phone.state.activationId)).toMatchObject(expected)
    expect(await phone.readStatus()).toMatchObject({
      currentVersion: 4,
      flags: 8,
      distance: 0,
      isDeadlocked: false,
      failedAttempts: 0,
    })
    expect((await old.send(old.prepareValidation())).status).toBe(401)
    for (const factors of ['possession_knowledge', 'possession_biometry'] as const)
      await phone.exchange(phone.prepareValidation({ factors }))
    expect(codeOf(await phone.send(phone.prepareUpgradeConfirm()))).toEqual([400, 'ERR_UPGRADE'])
    expect(await registrationOf(v4.world, userId)).toBe('ACTIVE')
    const stored = v4.server.context.db.selectFrom('activation').select('activation_fingerprint as fingerprint')
    expect(await stored.where('activation_id', '=', phone.state.activationId).executeTakeFirst()).toEqual({ fingerprint })
  })
})

describe('an upgrade', () => {
  test('may be started again; only the last one is confirmed, once of many', async () => {
    const { phone, start } = await upgradingPhone('EC_P384')
    await phone.exchange(await start({ counter: 2 }))
    const early = phone.prepareUpgradeConfirm()
    await phone.exchange(await start({ counter: 3 }))
    expect((await phone.send(early)).status).toBe(401)
    const confirm = phone.prepareUpgradeConfirm()
    const replies = await Promise.all(Array.from({ length: 20 }, () => phone.send(confirm)))
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1)
    await phone.exchange(phone.prepareValidation())
    expect(await phone.readStatus()).toMatchObject({ failedAttempts: 0, isDeadlocked: false })
  })

  test('is refused for keys that are missing or not valid, and the activation of 3.3 stays', async () => {
    const { userId, old, phone, start } = await upgradingPhone('EC_P384_ML_L3')
    const refused = async (members: Record<string, unknown>) => codeOf(await phone.send(await start({ members })))
    expect(await refused({ sharedSecretRequest: undefined })).toEqual([400, 'ERR_VALIDATION'])
    expect(await refused({ devicePublicKeys: undefined })).toEqual([400, 'ERR_VALIDATION'])
    for (const mldsa of [undefined, null, '', ' ', 7])
      expect(await refused({ devicePublicKeys: { ecdsa: 'AAAA', mldsa } })).toEqual([400, 'ERR_VALIDATION'])
    for (const sharedSecretRequest of [
      {},
      { algorithm: null, encapsulationKeys: ['AAAA'] },
      { algorithm: 'EC_P384_ML_L3', encapsulationKeys: null },
      { algorithm: 'EC_P384_ML_L3', encapsulationKeys: [] },
    ])
      expect(await refused({ sharedSecretRequest })).toEqual([400, 'ERR_VALIDATION'])
    expect(await refused({ devicePublicKeys: { ecdsa: null, mldsa: 'AAAA' } })).toEqual([400, 'ERR_VALIDATION'])
    expect(await refused({ devicePublicKeys: { ecdsa: 'AAAA', mldsa: 'AAAA' } })).toEqual([400, 'ERR_UPGRADE'])
    expect(await refused({ sharedSecretRequest: { algorithm: 'ML_L3', encapsulationKeys: ['AAAA'] } })).toEqual([
      400,
      'ERR_UPGRADE',
    ])
    expect(await registrationOf(v4.world, userId)).toBe('ACTIVE')
    expectOk(await old.send(old.prepareValidation()))
  })

  test.each([7, {}, null, '', 'text'])('ignores an ML-DSA key that is %j beside an algorithm without one', async (mldsa) => {
    const { phone, start } = await upgradingPhone('EC_P384')
    const devicePublicKeys = { ecdsa: b64(phone.state.device.ecCompressed), mldsa }
    await phone.exchange(await start({ counter: 2, members: { devicePublicKeys } }))
    await phone.exchange(phone.prepareUpgradeConfirm())
  })

  test('is refused without headers, with headers of one generation only, for another application, and with a wrong code', async () => {
    const { phone, start } = await upgradingPhone('EC_P384')
    const strip = async (...names: string[]) => {
      const request = await start()
      const headers = Object.fromEntries(Object.entries(request.headers).filter(([name]) => !names.includes(name)))
      return codeOf(await phone.send({ ...request, headers }))
    }
    expect(await strip('X-PowerAuth-Authorization')).toEqual([400, 'ERR_UPGRADE'])
    expect(await strip('X-PowerAuth-Encryption')).toEqual([400, 'ERR_UPGRADE'])
    const request = await start()
    const changed = async (name: string, from: string, to: string) =>
      codeOf(
        await phone.send({
          ...request,
          headers: { ...request.headers, [name]: String(request.headers[name]).replace(from, to) },
        }),
      )
    expect(await changed('X-PowerAuth-Encryption', '"4.0"', '"3.3"')).toEqual([400, 'ERR_UPGRADE'])
    expect(await changed('X-PowerAuth-Authorization', '"3.3"', '"4.0"')).toEqual([400, 'ERR_UPGRADE'])
    const other = Buffer.alloc(16, 7).toString('base64')
    expect(await changed('X-PowerAuth-Encryption', v4.app.applicationKey, other)).toEqual([400, 'ERR_UPGRADE'])
    expect(codeOf(await phone.send({ ...request, body: Buffer.concat([Buffer.from(request.body), Buffer.from(' ')]) }))).toEqual([
      401,
      'ERR_AUTHENTICATION',
    ])
    await phone.exchange(request)
    expect(codeOf(await phone.send({ ...phone.prepareUpgradeConfirm(), headers: {} }))).toEqual([400, 'ERR_UPGRADE'])
  })

  test('cannot be confirmed when none was started', async () => {
    const { phone, old } = await upgradingPhone('EC_P384')
    const { phone: stranger } = await v4.activePhone('EC_P384')
    phone.state.keys = stranger.state.keys
    phone.state.ctrData = stranger.state.ctrData
    expect(codeOf(await phone.send(phone.prepareUpgradeConfirm()))).toEqual([401, 'ERR_AUTHENTICATION'])
    expectOk(await old.send(old.prepareValidation()))
  })

  test('is confirmed under a version that is switched on, whatever algorithms its application admits by then', async () => {
    const { old, phone, start } = await upgradingPhone('EC_P384_ML_L3')
    await phone.exchange(await start({ counter: 2 }))
    const temporaryKey = await phone.fetchTemporaryKey('activation')
    const application = `/admin/applications/${v4.world.applicationId}`
    const administer = async (path: string, change: unknown) =>
      expectOk(await v4.world.bank.call('PATCH', application + path, change))
    await administer('/versions/default', { isSupported: false })
    expect(codeOf(await phone.send(phone.prepareUpgradeConfirm()))).toEqual([401, 'ERR_AUTHENTICATION'])
    await administer('/versions/default', { isSupported: true })
    await administer('', { algorithms: ['EC_P384'] })
    await phone.exchange(phone.prepareUpgradeConfirm())
    // Bit 2: it must be activated anew, sooner or later.
    expect(await phone.readStatus({ temporaryKey })).toMatchObject({ currentVersion: 4, flags: 4, failedAttempts: 0 })
    await expect(phone.fetchTemporaryKey('activation')).rejects.toThrow('ERR_TEMPORARY_KEY')
    await administer('', { algorithms: [] })
    expect((await old.send(old.prepareValidation())).status).toBe(401)
  })

  test('whose confirmation meets attempts at the maximum is refused, and 3.3 keeps its counter', async () => {
    const { old, phone, start } = await upgradingPhone('EC_P384')
    await phone.exchange(await start({ counter: 2 }))
    const { db } = v4.server.context
    const setFailedAttempts = (count: number) =>
      db.updateTable('activation').set({ failed_attempts: count }).where('activation_id', '=', phone.state.activationId).execute()
    await setFailedAttempts(5)
    expect(codeOf(await phone.send(phone.prepareUpgradeConfirm()))).toEqual([401, 'ERR_AUTHENTICATION'])
    await setFailedAttempts(0)
    expectOk(await old.send(old.prepareValidation()))
    await phone.exchange(phone.prepareUpgradeConfirm())
    await phone.exchange(phone.prepareValidation())
  })

  test.each(['bank', 'phone'])('that waits when the %s removes the activation is forgotten with its keys', async (who) => {
    const { userId, old, phone, start } = await upgradingPhone('EC_P384_ML_L3')
    await phone.exchange(await start())
    const count = async () => {
      const kept = sql`select from activation_upgrade where activation_id = ${phone.state.activationId}`
      return (await kept.execute(v4.server.context.db)).rows.length
    }
    expectOk(await v4.world.bank.change(userId, 'BLOCK'))
    expectOk(await v4.world.bank.change(userId, 'UNBLOCK'))
    expect(await count()).toBe(1)
    if (who === 'bank') expectOk(await v4.world.bank.remove(userId))
    else expectOk(await old.send(old.prepareRemove()))
    expect(await count()).toBe(0)
    expect((await old.readStatus()).state).toBe(5)
    await expect(phone.readStatus()).rejects.toThrow('ERR_TEMPORARY_KEY')
    expect((await phone.send(phone.prepareUpgradeConfirm())).status).toBe(401)
  })

  test('that a failover lost makes no code of 3.3 good again, where codes of 4.0 were accepted', async () => {
    const { old, phone, start } = await upgradingPhone('EC_P384')
    const { db } = v4.server.context
    await sql`create table put_back as select * from activation`.execute(db)
    await phone.exchange(await start({ counter: 2 }))
    await phone.exchange(phone.prepareUpgradeConfirm())
    await phone.exchange(phone.prepareValidation())
    await sql`update activation a set protocol_version = p.protocol_version, highest_version = p.highest_version, algorithm = p.algorithm,
        master_secret = p.master_secret, ctr_data = p.ctr_data, counter = p.counter, row_version = p.row_version
      from put_back p where p.activation_id = a.activation_id`.execute(db)
    for (let i = 0; i < 3; i += 1) expect((await old.send(old.prepareValidation())).status).toBe(401)
  })

  test('refuses requests of 3.x in any version afterwards, and counts none of them', async () => {
    const { old, phone, start } = await upgradingPhone('EC_P384')
    const token = await old.createToken()
    await phone.exchange(await start({ counter: 3 }))
    await phone.exchange(phone.prepareUpgradeConfirm())
    for (const version of ['3.0', '3.1', '3.2'] as const) {
      const older = old.speaking({ version })
      const requests = [
        older.prepareValidation(),
        older.prepareRemove(),
        await older.prepareUserInfo().catch(() => undefined),
        await older.prepareTokenCreate().catch(() => undefined),
        await older.prepareVaultUnlock().catch(() => undefined),
        await older.prepareRename('x').catch(() => undefined),
        await older.prepareDetail(token).catch(() => undefined),
      ]
      for (const request of requests) {
        if (request) expect([400, 401], `${version} ${request.path}`).toContain((await old.send<unknown>(request)).status)
      }
    }
    expect(await phone.readStatus()).toMatchObject({ state: 3, failedAttempts: 0, distance: 0, isDeadlocked: false })
  })
})
