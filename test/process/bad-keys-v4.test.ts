// Keys, algorithms and requests for keys that are not as they should be: the documented refusal, and nothing is lost by it (v4 §2, §4).
import { createHmac } from 'node:crypto'
import { sql } from 'kysely'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { badDeviceKeys, badSharedSecretRequests } from '../helpers/bad-keys-v4.ts'
import { readApplication } from '../helpers/bank.ts'
import { type HttpReply, sendJson } from '../../phone/http.ts'
import { b64, random } from '../../phone/v3/crypto.ts'
import { hs384Jwt, newKemPair, PHONE_ALGORITHMS } from '../../phone/v4/crypto.ts'
import { codeOf, expectRefusedV4, MOVED_BY_A_CODE, readStored, type RefusalV4 } from '../helpers/refusals-v4.ts'
import { expectOk, registrationOf } from '../helpers/world.ts'
import { type PhoneV4, startWorldV4, type WorldV4 } from '../helpers/world-v4.ts'

let v4: WorldV4
beforeAll(async () => {
  v4 = await startWorldV4()
})
afterAll(() => v4.close())

const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000'
const createKey = (requestObject: unknown) => sendJson(v4.world.url, 'POST', '/pa/v4/keystore/create', { requestObject })
const countKeys = async () => (await sql`select from temporary_key`.execute(v4.server.context.db)).rows.length

describe.each(PHONE_ALGORITHMS)('a shared secret with %s', (algorithm) => {
  const bad = badSharedSecretRequests(algorithm)

  test('that cannot be agreed on gives no temporary key', async () => {
    const { phone } = await v4.activePhone(algorithm)
    for (const scope of ['application', 'activation'] as const) {
      const { claims, macKey, json } = phone.newTemporaryKeyRequest(scope)
      const before = await countKeys()
      for (const [what, sharedSecretRequest] of bad) {
        // Names of other algorithms have the wrong number of keys, or are not the activation's.
        if (scope === 'application' && what.startsWith('the name') && !what.endsWith('384')) continue
        const reply = await createKey({ jwt: hs384Jwt({ ...claims, sharedSecretRequest }, macKey) })
        expectRefusedV4(reply, 'temporaryKey', `${scope}, ${what}`)
      }
      expect(await countKeys()).toBe(before)
      expectOk(await createKey(json.requestObject))
    }
  })

  test('that cannot be agreed on leaves registration, factors and upgrade as they are', async () => {
    const { userId, code } = await v4.world.register()
    const fresh = v4.newPhone(algorithm)
    const { phone } = await v4.activePhone(algorithm)
    const { phone: old } = await v4.world.activePhone('3.3')
    const upgraded = v4.newPhone(algorithm)
    upgraded.state.activationId = old.state.activationId
    const authorize = (body: Uint8Array) =>
      old.prepareSigned({ path: '/pa/v4/upgrade/start', resourceId: '/pa/upgrade/start', body: Buffer.from(body).toString() })
        .headers
    const ofApplication = { temporaryKey: await fresh.fetchTemporaryKey('application'), timestamp: await fresh.serverTime() }
    // One pair for all: making them takes longer than all the rest.
    const pair = newKemPair(algorithm)
    const ofActivation = { ...ofApplication, temporaryKey: await phone.fetchTemporaryKey('activation'), pair }
    const before = await readStored(v4.server, MOVED_BY_A_CODE)
    for (const [what, sharedSecretRequest] of bad) {
      const plaintext = JSON.stringify(sharedSecretRequest)
      const created = await fresh.prepareActivation(code, { ...ofApplication, layer2: { sharedSecretRequest } })
      const { algorithm: name, encapsulationKeys: keys } = {
        encapsulationKeys: [],
        algorithm: '',
        ...Object(sharedSecretRequest),
      }
      expectNotActivated(
        await fresh.send(created),
        Array.isArray(keys) && keys.length > 0 ? [name, ...keys] : [],
        `create, ${what}`,
      )
      const change = await phone.preparePasswordChange({ ...ofActivation, plaintext })
      expectRefusedV4(await phone.send(change), 'password', `password, ${what}`)
      const add = await phone.prepareBiometryAdd({ ...ofActivation, plaintext })
      expectRefusedV4(await phone.send(add), 'biometry', `biometry, ${what}`)
      const start = await upgraded.prepareUpgradeStart(authorize, { ...ofApplication, members: { sharedSecretRequest } })
      const reply = await upgraded.send(start)
      // A request that lacks a member is not valid; with a wrong member the activation cannot be upgraded.
      expect(['ERR_UPGRADE', 'ERR_VALIDATION'], `upgrade, ${what}, ${reply.text}`).toContain(codeOf(reply))
    }
    expect((await readStored(v4.server, MOVED_BY_A_CODE)) === before, 'something was changed').toBe(true)
    expectOk(await fresh.send(await fresh.prepareActivation(code, ofApplication)))
    expect(await registrationOf(v4.world, userId)).toBe('PENDING_COMMIT')
    expectOk(await phone.send(await phone.preparePasswordChange(ofActivation)))
    expectOk(await upgraded.send(await upgraded.prepareUpgradeStart(authorize, ofApplication)))
  })

  test('device keys that are not valid cost neither registration nor upgrade', async () => {
    const { phone: old } = await v4.world.activePhone('3.3')
    const upgraded = v4.newPhone(algorithm)
    upgraded.state.activationId = old.state.activationId
    const authorize = (body: Uint8Array) =>
      old.prepareSigned({ path: '/pa/v4/upgrade/start', resourceId: '/pa/upgrade/start', body: Buffer.from(body).toString() })
        .headers
    const fresh = v4.newPhone(algorithm)
    const temporaryKey = await upgraded.fetchTemporaryKey('application')
    const timestamp = await upgraded.serverTime()
    const { userId, code } = await v4.world.register()
    for (const [what, devicePublicKeys] of badDeviceKeys(algorithm)) {
      const created = await fresh.prepareActivation(code, { temporaryKey, timestamp, layer2: { devicePublicKeys } })
      const { ecdsa, mldsa } = { ecdsa: undefined, mldsa: undefined, ...Object(devicePublicKeys) }
      expectNotActivated(await fresh.send(created), algorithm === 'EC_P384' ? [ecdsa] : [ecdsa, mldsa], what)
      expect(await registrationOf(v4.world, userId), what).toBe('CREATED')
      const start = await upgraded.prepareUpgradeStart(authorize, { temporaryKey, timestamp, members: { devicePublicKeys } })
      expect(['ERR_UPGRADE', 'ERR_VALIDATION'], what).toContain(codeOf(await upgraded.send(start)))
    }
    expectOk(await old.send(old.prepareValidation()))
    expectOk(await fresh.send(await fresh.prepareActivation(code, { temporaryKey, timestamp })))
  })
})

const isText = (value: unknown) => typeof value === 'string' && value.trim() !== ''

/** Refused as invalid when a member is missing, empty or no text, else as unusable keys (v4 §8.5). */
function expectNotActivated(reply: HttpReply, members: readonly unknown[], what: string): void {
  const isComplete = members.length > 0 && members.every(isText)
  expectRefusedV4(reply, isComplete ? 'activation' : 'validation', what)
}

describe('keystore/create', () => {
  const part = (value: unknown) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

  test('takes a request that is signed with HS384, and nothing like it', async () => {
    const { phone } = await v4.activePhone('EC_P384')
    const { claims, macKey, json } = phone.newTemporaryKeyRequest('activation')
    const { jwt } = json.requestObject
    const [head = '', body = '', mac = ''] = jwt.split('.')
    const signed = (header: unknown, payload: unknown = claims) => hs384Jwt(payload, macKey, header)
    const signedText = (header: string) => {
      const covered = `${part(header)}.${body}`
      return `${covered}.${createHmac('sha384', macKey).update(covered).digest('base64url')}`
    }
    const spoiled: Record<string, string> = {
      'alg none': `${part({ alg: 'none' })}.${body}.`,
      'alg none, signed': signed({ alg: 'none' }),
      HS256: signed({ alg: 'HS256' }),
      HS512: signed({ alg: 'HS512' }),
      ES384: signed({ alg: 'ES384' }),
      'alg in lower case': signed({ alg: 'hs384' }),
      'alg in a list': signed({ alg: ['HS384'] }),
      'no alg': signed({}),
      crit: signed({ alg: 'HS384', crit: ['exp'] }),
      'crit that is null': signed({ alg: 'HS384', crit: null }),
      'alg of the prototype': `${part('{"__proto__":{"alg":"HS384"}}')}.${body}.${mac}`,
      'a second alg': signedText('{"alg":"HS384","alg":"HS384"}'),
      'a header that is a list': signed(['HS384']),
      'no signature': `${head}.${body}.`,
      'two parts': `${head}.${body}`,
      'four parts': `${jwt}.${mac}`,
      'another signature': `${head}.${body}.${b64(random(48))}`,
      'half a signature': `${head}.${body}.${mac.slice(0, 32)}`,
      padding: `${head}.${body}==.${mac}`,
      'a blank': `${head}.${body}. ${mac}`,
      'claims of another': `${head}.${part({ ...claims, challenge: 'x' })}.${mac}`,
      'claims that are not JSON': `${head}.eA.${mac}`,
      'claims that are a list': signed({ alg: 'HS384' }, [claims]),
      'claims that are null': signed({ alg: 'HS384' }, null),
      'deep claims': `${head}.${part('['.repeat(4000))}.${mac}`,
      'the key of the other scope': hs384Jwt(claims, phone.newTemporaryKeyRequest('application').macKey),
      'no activation, and its key': signed({ alg: 'HS384' }, { ...claims, activationId: undefined }),
      'an activation that is null, and its key': signed({ alg: 'HS384' }, { ...claims, activationId: null }),
    }
    for (const [name, values] of Object.entries({
      applicationKey: [undefined, null, 7, '', b64(random(15)), b64(random(16)), `${String(claims['applicationKey'])}=`],
      activationId: ['', 'x', 7, {}, UNKNOWN_ID, phone.state.activationId.toUpperCase(), `${phone.state.activationId}\0`],
      challenge: [undefined, null, 7, {}],
      sharedSecretRequest: [undefined, null, 7, 'text', []],
    }))
      for (const value of values) spoiled[`${name} ${JSON.stringify(value)}`] = hs384Jwt({ ...claims, [name]: value }, macKey)
    const before = await countKeys()
    for (const [what, text] of Object.entries(spoiled)) expectRefusedV4(await createKey({ jwt: text }), 'temporaryKey', what)
    for (const text of [undefined, null, '', ' ', 7, {}, 'x'.repeat(8193)])
      expectRefusedV4(await createKey({ jwt: text }), 'validation', String(text).slice(0, 20))
    for (const body of [undefined, null, [], 'x']) expectRefusedV4(await createKey(body), 'validation')
    expect(await countKeys()).toBe(before)
    expectOk(await createKey({ jwt: signed({ alg: 'HS384', typ: 'JWT' }, { ...claims, exp: null, iat: 1, more: '\ud800' }) }))
    expectOk(await createKey({ jwt }))
  })

  test('refuses a request whose end is past by more than clocks may differ, and takes any other', async () => {
    const { claims, macKey } = (await v4.activePhone('EC_P384')).phone.newTemporaryKeyRequest('activation')
    const at = (exp: unknown) => createKey({ jwt: hs384Jwt({ ...claims, exp }, macKey) })
    const now = Math.floor(Date.now() / 1000)
    for (const exp of [1, now - 400, -1, 0, '1', {}, true]) expectRefusedV4(await at(exp), 'temporaryKey', String(exp))
    for (const exp of [now - 200, now, now + 0.5, now + 1e9, null, undefined]) expectOk(await at(exp))
  })

  test('knows no activation of another application, of protocol 3, or without keys', async () => {
    const { phone } = await v4.activePhone('EC_P384')
    const { phone: old } = await v4.world.activePhone('3.3')
    const other = readApplication(await v4.world.bank.createApplication('other-app'))
    const foreign = phone.speaking({ app: { ...v4.app, ...other } })
    await expect(foreign.fetchTemporaryKey('activation')).rejects.toThrow('ERR_TEMPORARY_KEY')
    const { userId } = await v4.world.register()
    const rows = v4.server.context.db.selectFrom('activation').select('activation_id').where('user_id', '=', userId)
    const created = (await rows.executeTakeFirstOrThrow()).activation_id
    for (const activationId of [created, old.state.activationId]) {
      const { claims, macKey } = phone.newTemporaryKeyRequest('activation')
      expectRefusedV4(await createKey({ jwt: hs384Jwt({ ...claims, activationId }, macKey) }), 'temporaryKey')
    }
  })
})

test('arbitrary JSON where a request belongs is served or refused, and no more', async () => {
  const { phone } = await v4.activePhone('EC_P384_ML_L3')
  const { code } = await v4.world.register()
  const timestamp = await phone.serverTime()
  const ofActivation = { temporaryKey: await phone.fetchTemporaryKey('activation'), timestamp }
  const ofApplication = { temporaryKey: await phone.fetchTemporaryKey('application'), timestamp }
  const { claims, macKey } = phone.newTemporaryKeyRequest('activation')
  const text = fc.string({ unit: 'binary', maxLength: 20 })
  const name = fc.constantFrom('algorithm', 'encapsulationKeys', 'ecdsa', 'mldsa', 'code', 'type', 'keyIdentifier', 'reason')
  const { value } = fc.letrec((tie) => ({
    leaf: fc.oneof(text, fc.double(), fc.constantFrom<unknown>(null, true, 'EC_P384_ML_L3', 'CODE', 'AAAA')),
    value: fc.oneof(
      { maxDepth: 3 },
      tie('leaf'),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(fc.oneof(name, text), tie('value'), { maxKeys: 4 }),
    ),
  }))
  await fc.assert(
    fc.asyncProperty(value, async (json) => {
      const plaintext = JSON.stringify(json)
      const { ctrData } = phone.state
      const vault = await phone.send(await phone.prepareVaultUnlock('', { ...ofActivation, plaintext }))
      // What is refused before the code is looked at leaves the counter.
      phone.state.ctrData = ctrData
      const replies = [
        vault,
        await phone.send(await phone.prepareRename('', { ...ofActivation, plaintext })),
        await phone.send(await phone.preparePasswordChange({ ...ofActivation, plaintext })),
        await phone.send(await phone.prepareConfiguration('application', { ...ofApplication, plaintext })),
        await phone.send(await phone.prepareActivation(code, { ...ofApplication, plaintext })),
        await phone.send(await phone.prepareActivation('', { ...ofApplication, layer1: { identityAttributes: json } })),
        await phone.send(await phone.prepareActivation(code, { ...ofApplication, layer2: { sharedSecretRequest: json } })),
        await phone.send(await phone.prepareActivation(code, { ...ofApplication, alterInner: () => json })),
        await createKey({ jwt: hs384Jwt({ ...claims, sharedSecretRequest: json }, macKey) }),
        await createKey({ jwt: hs384Jwt(json, macKey) }),
        await createKey(json),
      ]
      for (const { status, text: body } of replies) expect([200, 400, 401], body).toContain(status)
    }),
    { numRuns: 15 },
  )
})

test('expired temporary keys open nothing, on any endpoint', async () => {
  const { phone } = await v4.activePhone('EC_P384')
  const { phone: old } = await v4.world.activePhone('3.3')
  const { code } = await v4.world.register()
  const application = await phone.fetchTemporaryKey('application')
  const activation = await phone.fetchTemporaryKey('activation')
  const token = await phone.createToken()
  // A registration ends by the same time; what is asked here comes before.
  await v4.world.advance(300_001)
  const authorize = (body: Uint8Array) =>
    old.prepareSigned({ path: '/pa/v4/upgrade/start', resourceId: '/pa/upgrade/start', body: Buffer.from(body).toString() })
      .headers
  const upgraded = v4.newPhone('EC_P384')
  upgraded.state.activationId = old.state.activationId
  const sent = async (refusal: RefusalV4, request: Parameters<PhoneV4['send']>[0]) =>
    expectRefusedV4(await phone.send(request), refusal, request.path)
  const [ofApplication, ofActivation] = [{ temporaryKey: application }, { temporaryKey: activation }]
  await sent('encryption', await phone.prepareActivation(code, ofApplication))
  await sent('encryption', await phone.prepareConfiguration('application', ofApplication))
  await sent('encryption', await phone.prepareConfiguration('activation', ofActivation))
  await sent('encryption', await phone.prepareEncrypted('/pa/v4/activation/status', 'activation', ofActivation))
  await sent('encryption', await phone.prepareUserInfo(ofActivation))
  await sent('encryption', await phone.prepareDetail(token, ofActivation))
  const { ctrData } = phone.state
  await sent('encryption', await phone.prepareRename('x', ofActivation))
  await sent('vault', await phone.prepareVaultUnlock('KDK_APP_VAULT_2FA', ofActivation))
  phone.state.ctrData = ctrData
  await sent('token', await phone.prepareTokenCreate(ofActivation))
  await sent('password', await phone.preparePasswordChange(ofActivation))
  await sent('biometry', await phone.prepareBiometryAdd(ofActivation))
  await sent('upgrade', await upgraded.prepareUpgradeStart(authorize, ofApplication))
  const innerTemporaryKey = application
  const { code: another } = await v4.world.register()
  await sent('encryption', await phone.prepareActivation(another, { innerTemporaryKey }))
  expectOk(await phone.send(await phone.prepareActivation(another)))
})
