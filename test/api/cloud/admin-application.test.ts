// /admin/application of the contract, and the settings of applications beyond it (cloud §10).
import { execFile } from 'node:child_process'
import { verify } from 'node:crypto'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { publicKeyFromPoint } from '../../../src/crypto/key.ts'
import { basicAuthorization, readApplication, readQrCode } from '../../helpers/bank.ts'
import { errorCode, expectError, expectRefused } from '../../helpers/expectations.ts'
import { member, NO_BODY, send } from '../../../phone/http.ts'
import { b64, newKeyPair, random, unb64 } from '../../../phone/v3/crypto.ts'
import { readSdkConfiguration } from '../../../phone/v4/state.ts'
import { startTestServer, type TestServer } from '../../helpers/app.ts'
import type { World } from '../../helpers/world.ts'
import { expectOk, openWorldOn, registrationOf } from '../../helpers/world.ts'

const runFile = promisify(execFile)

let server: TestServer
let world: World
beforeAll(async () => {
  server = await startTestServer()
  world = await openWorldOn(server)
})
afterAll(() => world.close())

const read = (query: string) => world.bank.call('GET', `/admin/application${query}`)

describe('POST /admin/application', () => {
  test('answers with the configuration of a mobile app, in the order of the contract', async () => {
    const reply = expectOk(await world.bank.createApplication('shape'))
    expect(Object.keys(reply.json as object)).toEqual(['status', 'responseObject'])
    expect(member(reply.json, 'status')).toBe('OK')
    const config = member(reply.json, 'responseObject') as Record<string, string>
    expect(Object.keys(config)).toEqual(['serviceBaseUrl', 'masterServerPublicKey', 'appKey', 'appSecret'])
    expect(config.serviceBaseUrl).toMatch(/^https?:\/\/[^/]+(\/.*)?[^/]$/)
    const masterKey = unb64(String(config.masterServerPublicKey))
    expect([masterKey.length, masterKey[0]]).toEqual([65, 4])
    for (const key of [config.appKey, config.appSecret]) {
      expect(key).toMatch(/^[A-Za-z0-9+/]{22}==$/)
      expect(unb64(String(key))).toHaveLength(16)
    }
  })

  test('gives every application keys of its own', async () => {
    const apps = [
      readApplication(await world.bank.createApplication('own-1')),
      readApplication(await world.bank.createApplication('own-2')),
    ]
    const values = apps.flatMap((app) => [app.applicationKey, app.applicationSecret, b64(app.masterPublicKey)])
    expect(new Set(values).size).toBe(6)
  })

  test.each<[string, unknown]>([
    ['missing', undefined],
    ['null', null],
    ['empty', ''],
    ['blank', '  '],
    ['too long', 'x'.repeat(256)],
    ['taken', 'test-app'],
  ])('refuses an id that is %s', async (_, id) => {
    expectError(await world.bank.createApplication(id), 400, 'ERROR_ADMIN')
  })

  test.each([7, true, {}, ['x'], 'a\u0000b', 'a\nb', 'a\u007f'])('refuses the id %j', async (id) => {
    const reply = await world.bank.createApplication(id)
    expect(reply.status).toBe(400)
    expect(['ERROR_ADMIN', 'ERROR_REQUEST']).toContain(errorCode(reply))
  })

  test('leaves the taken application alone', async () => {
    expectError(await world.bank.createApplication('test-app'), 400, 'ERROR_ADMIN')
    expect(readApplication(await read('?id=test-app'))).toEqual(world.app)
  })

  test('refuses a body that is not JSON as a structural error', async () => {
    const reply = await world.bank.callRaw('POST', '/admin/application', '{', 'application/json')
    expect(reply.status).toBe(400)
    expect(['ERROR_ADMIN', 'ERROR_REQUEST']).toContain(errorCode(reply))
  })

  test.each(['a b', 'x'.repeat(255), 'Ähre/1?x=y&z#f', '../x', '📱'])('takes the id %j', async (id) => {
    const created = readApplication(await world.bank.createApplication(id))
    expect(readApplication(await read(`?id=${encodeURIComponent(id)}`))).toEqual(created)
  })
})

describe('GET /admin/application', () => {
  test('returns what the creation answered', async () => {
    const created = expectOk(await world.bank.createApplication('again'))
    expect((await read('?id=again')).json).toEqual(created.json)
    expect((await read('?id=again&version=default')).json).toEqual(created.json)
  })

  test.each(['?id=nobody', '?id=test-app&version=nope', '?id=TEST-APP', '?id=test-app%20'])(
    'knows nothing of %s',
    async (query) => {
      expectError(await read(query), 400, 'ERROR_ADMIN')
    },
  )

  test.each(['', '?id=', '?id=%20', `?id=${'x'.repeat(256)}`, '?id=%00', '?id=a&id=b', '?id=test-app&version=%00'])(
    'refuses the query %j',
    async (query) => {
      const reply = await read(query)
      expect(reply.status).toBe(400)
      expect(['ERROR_ADMIN', 'ERROR_REQUEST']).toContain(errorCode(reply))
    },
  )

  test.each([
    ['phones.bank.example:1', 200],
    ['a b', 400],
    ['a%zz', 400],
    ['[::1', 400],
  ])('names the host %j of the request for a listener on every interface: %i', async (host, status) => {
    const { publicListener } = server.context
    const before = publicListener.address
    publicListener.address = { address: '0.0.0.0', family: 'IPv4', port: 8080 }
    const headers = { Host: host, ...basicAuthorization(world.bank.credential) }
    const reply = await send(world.url, { method: 'GET', path: '/admin/application?id=test-app', headers, body: NO_BODY })
    publicListener.address = before
    expect(reply.status, reply.text).toBe(status)
    if (status === 200) expect(member(reply.json, 'responseObject', 'serviceBaseUrl')).toBe('http://phones.bank.example:8080')
    else expectError(reply, 400, 'ERROR_REQUEST')
  })

  test('shows the administrators of the contract only', async () => {
    const stranger = world.bank.as(undefined)
    expectError(await stranger.call('GET', '/admin/application?id=test-app'), 401, 'HTTP_401')
    expectError(await stranger.createApplication('stranger'), 401, 'HTTP_401')
  })
})

describe('/admin/applications', () => {
  test('lists applications and marks the default one', async () => {
    await world.bank.createApplication('listed')
    const list = member(expectOk(await world.bank.call('GET', '/admin/applications')).json, 'applications')
    expect(list).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ id: 'test-app', isDefault: true }),
        expect.objectContaining({ id: 'listed', isDefault: false }),
      ]),
    )
    expect(JSON.stringify(list)).not.toContain(world.app.applicationSecret)
  })

  test('shows one application and knows no other', async () => {
    const detail = expectOk(await world.bank.call('GET', '/admin/applications/test-app'))
    expect(member(detail.json, 'responseObject')).toMatchObject({
      id: 'test-app',
      isDefault: true,
      vaultFactors: ['POSSESSION_KNOWLEDGE'],
    })
    expectError(await world.bank.call('GET', '/admin/applications/nobody'), 400, 'ERROR_ADMIN')
    expectError(await world.bank.call('PATCH', '/admin/applications/nobody', { isDefault: true }), 400, 'ERROR_ADMIN')
  })

  test('moves the administrator to another default application and back', async () => {
    const { userId } = await world.register()
    expectOk(await world.bank.createApplication('moved'))
    expectOk(await world.bank.call('PATCH', '/admin/applications/moved', { isDefault: true }))
    expect(await registrationOf(world, userId)).toBe('NONE')
    expectOk(await world.bank.register(userId))
    expectOk(await world.bank.call('PATCH', '/admin/applications/test-app', { isDefault: true }))
    expect(await registrationOf(world, userId)).toBe('CREATED')
    const list = member((await world.bank.call('GET', '/admin/applications')).json, 'applications') as { isDefault: boolean }[]
    expect(list.filter((application) => application.isDefault)).toHaveLength(1)
  })

  test.each([
    { vaultFactors: ['EVERYTHING'] },
    { vaultFactors: 'POSSESSION_KNOWLEDGE' },
    { vaultFactors: ['POSSESSION_KNOWLEDGE_BIOMETRY'] },
    { isDefault: 'yes' },
    { algorithms: ['EC_P256'] },
    { algorithms: ['EC_P384', 'EC_P384'] },
    { algorithms: ['ML_L3'] },
    { algorithms: 'EC_P384' },
    { isProtocol3Admitted: null },
    { minimumProtocolVersion: '2.1' },
    { roles: ['a,b'] },
    { roles: [''] },
    { roles: ['a\u0000'] },
    { roles: Array.from({ length: 33 }, (_, i) => `r${i}`) },
  ])('refuses the change %j', async (change) => {
    const reply = await world.bank.call('PATCH', '/admin/applications/test-app', change)
    expect(reply.status).toBe(400)
    expect(['ERROR_ADMIN', 'ERROR_REQUEST']).toContain(errorCode(reply))
    const detail = await world.bank.call('GET', '/admin/applications/test-app')
    expect(member(detail.json, 'responseObject')).toMatchObject({
      isDefault: true,
      vaultFactors: ['POSSESSION_KNOWLEDGE'],
      algorithms: ['EC_P384', 'EC_P384_ML_L3', 'EC_P384_ML_L5'],
      isProtocol3Admitted: true,
      roles: [],
    })
  })
})

describe('what an application says of itself', () => {
  const detailOf = async (path: string, bank = world.bank) =>
    member(expectOk(await bank.call('GET', `/admin/applications/${path}`)).json, 'responseObject') as Record<string, unknown>

  test('has all that mobile apps of both protocols need, for the default version or another one', async () => {
    const created = member(expectOk(await world.bank.createApplication('sdk')).json, 'responseObject') as object
    const detail = await detailOf('sdk')
    expect(detail).toMatchObject({ id: 'sdk', roles: [], qrSignatureCurve: 'P-256', ...created })
    const configuration = readSdkConfiguration(String(detail.mobileSdkConfig))
    expect(configuration).toMatchObject({ applicationKey: detail.appKey, applicationSecret: detail.appSecret })
    expect(b64(configuration.p256 ?? random(1))).toBe(detail.masterServerPublicKey)
    const { p384, mlDsa65, mlDsa87 } = configuration
    expect([p384.length, mlDsa65?.length, mlDsa87?.length]).toEqual([97, 1974, 2614])
    expectOk(await world.bank.call('POST', '/admin/applications/sdk/versions', { name: '2.0' }))
    const other = await detailOf('sdk?version=2.0')
    expect(readApplication(await read('?id=sdk&version=2.0'))).toMatchObject({ applicationKey: other.appKey })
    expect(readSdkConfiguration(String(other.mobileSdkConfig))).toEqual({
      ...configuration,
      applicationKey: other.appKey,
      applicationSecret: other.appSecret,
    })
    expect(other.appKey).not.toBe(detail.appKey)
    expect((await detailOf('sdk')).mobileSdkConfig).toBe(detail.mobileSdkConfig)
    for (const query of ['?version=nope', '?version=', '?version=%00', '?version=a&version=b']) {
      expectError(await world.bank.call('GET', `/admin/applications/sdk${query}`), 400, 'ERROR_ADMIN')
    }
  })

  test('leaves out the application secret for callers who only read', async () => {
    const user = { username: 'reader-of-settings', role: 'read-only' }
    const { password } = expectOk(await world.bank.call('POST', '/admin/users', user)).json as { password: string }
    const reader = world.bank.as(`${user.username}:${password}`)
    const detail = await detailOf('test-app', reader)
    expect(detail).toMatchObject({ appKey: world.app.applicationKey })
    expect(Object.keys(detail)).not.toContain('mobileSdkConfig')
    expect(JSON.stringify(detail)).not.toContain(world.app.applicationSecret)
  })

  test('names the algorithms and roles that were set, and all algorithms when none is', async () => {
    const path = '/admin/applications/sdk'
    const changed = { algorithms: ['EC_P384', 'EC_P384_ML_L5'], roles: ['retail', 'x-1.y_Z'] }
    const reply = expectOk(await world.bank.call('PATCH', path, { ...changed, algorithms: changed.algorithms.toReversed() }))
    expect(member(reply.json, 'responseObject')).toMatchObject(changed)
    expect(await detailOf('sdk')).toMatchObject(changed)
    const { json } = expectOk(await world.bank.call('PATCH', path, { algorithms: [], roles: [] }))
    expect(member(json, 'responseObject')).toMatchObject({
      algorithms: ['EC_P384', 'EC_P384_ML_L3', 'EC_P384_ML_L5'],
      roles: [],
    })
  })

  test('decides what signs QR codes: P-256 as long as protocol 3 is admitted, else P-384', async () => {
    expectOk(await world.bank.createApplication('only-4'))
    const sign = async (userId: string) =>
      readQrCode(await world.bank.call('POST', '/admin/applications/only-4/registrations', { userId }))
    const { p256, p384 } = readSdkConfiguration(String((await detailOf('only-4')).mobileSdkConfig))
    const [old, recent] = [publicKeyFromPoint('P-256', p256 ?? random(65)), publicKeyFromPoint('P-384', p384)]
    if (!old || !recent) throw new Error('the configuration has a key that is not a point')
    const keyOf = async () => member(expectOk(await read('?id=only-4')).json, 'responseObject') as Record<string, string>
    const first = await keyOf()
    expect(first['masterServerPublicKey']).toBe(b64(p256 ?? random(1)))
    expect(Object.keys(first)).not.toContain('qrSignatureCurve')
    const before = await sign('before')
    expect(verify('sha256', Buffer.from(before.code), old, before.signature)).toBe(true)
    const changed = await world.bank.call('PATCH', '/admin/applications/only-4', { isProtocol3Admitted: false })
    expect(member(expectOk(changed).json, 'responseObject')).toMatchObject({ qrSignatureCurve: 'P-384' })
    const after = await sign('after')
    expect(verify('sha384', Buffer.from(after.code), recent, after.signature)).toBe(true)
    // What reads the application alone verifies them, too.
    expect(await keyOf()).toEqual({ ...first, masterServerPublicKey: b64(p384), qrSignatureCurve: 'P-384' })
    const verifying = { masterServerPublicKey: b64(p384), qrSignatureCurve: 'P-384' }
    expect(await detailOf('only-4')).toMatchObject(verifying)
    expectOk(await world.bank.call('PATCH', '/admin/applications/only-4', { isProtocol3Admitted: true }))
    const again = await sign('again')
    expect(verify('sha256', Buffer.from(again.code), old, again.signature)).toBe(true)
    expect(await keyOf()).toEqual(first)
  })
})

describe('pawl app sdk-config', () => {
  const run = async (...given: string[]) =>
    runFile(process.execPath, [
      'bin/pawl.mjs',
      'app',
      'sdk-config',
      '--url',
      world.url,
      '--admin',
      world.bank.credential ?? '',
      ...given,
    ])

  test('prints the configuration, whole or with the keys of one algorithm, and draws it', async () => {
    const { stdout } = await run('--app', 'test-app')
    const whole = readSdkConfiguration(stdout.trim())
    expect(whole).toMatchObject({ applicationKey: world.app.applicationKey, p256: world.app.masterPublicKey })
    const short = (await run('--app', 'test-app', '--version', 'default', '--algorithm', 'EC_P384')).stdout
    const { applicationKey, applicationSecret, p256, p384 } = whole
    expect(readSdkConfiguration(short.trim())).toEqual({ applicationKey, applicationSecret, p256, p384 })
    expect((await run('--app', 'test-app', '--algorithm', 'EC_P384', '--qr', 'terminal')).stdout).toMatch(/[█▀▄]{10}/)
    const svg = (await run('--app', 'test-app', '--algorithm', 'EC_P384_ML_L3', '--qr', 'svg')).stdout
    expect(svg).toMatch(/^<svg [^]*<\/svg>\s*$/)
  })

  test('says what is wrong', async () => {
    const refusal = (code: number, stderr: string) => ({ code, stdout: '', stderr: expect.stringContaining(stderr) as unknown })
    await expect(run('--app')).rejects.toMatchObject(refusal(2, '--app'))
    await expect(run('--app', 'nobody')).rejects.toMatchObject(refusal(4, 'there is no application nobody'))
    await expect(run('--app', 'test-app', '--algorithm', 'ML_L3')).rejects.toMatchObject(refusal(2, 'EC_P384_ML_L3'))
    await expect(run('--app', 'test-app', '--qr', 'svg')).rejects.toMatchObject(refusal(1, 'too long for a QR code'))
    await expect(run('--app', 'test-app', '--qr', 'png')).rejects.toMatchObject(refusal(2, 'terminal'))
  })
})

describe('application versions', () => {
  const versions = '/admin/applications/test-app/versions'

  test('have keys of their own under one master key, and phones use any of them', async () => {
    expectOk(await world.bank.call('POST', versions, { name: '2.0' }))
    const app = readApplication(await read('?id=test-app&version=2.0'))
    expect(app.applicationKey).not.toBe(world.app.applicationKey)
    expect(app.applicationSecret).not.toBe(world.app.applicationSecret)
    expect(b64(app.masterPublicKey)).toBe(b64(world.app.masterPublicKey))
    const { phone } = await world.activePhone('3.3', { app })
    expectOk(await phone.send(phone.prepareValidation()))
    expectOk(await phone.send(phone.speaking({ app: world.app }).prepareValidation()))
  })

  test('stop working when they are switched off, and work again when they are switched on', async () => {
    expectOk(await world.bank.call('POST', versions, { name: 'switch' }))
    const app = readApplication(await read('?id=test-app&version=switch'))
    const { phone } = await world.activePhone('3.2', { app })
    const path = `${versions}/switch`
    expectOk(await world.bank.call('PATCH', path, { isSupported: false }))
    expectRefused(await phone.send(phone.prepareValidation({ factors: 'possession' })), 'signature')
    expectRefused(await phone.send(await phone.prepareUserInfo()), 'encryption')
    expectOk(await world.bank.call('PATCH', path, { isSupported: true }))
    expectOk(await phone.send(phone.prepareValidation()))
    await phone.exchange(await phone.prepareUserInfo())
  })

  test('are not added twice, without a name, or to an application nobody knows', async () => {
    expectOk(await world.bank.call('POST', versions, { name: 'once' }))
    expectError(await world.bank.call('POST', versions, { name: 'once' }), 400, 'ERROR_ADMIN')
    expectError(await world.bank.call('POST', '/admin/applications/nobody/versions', { name: 'x' }), 400, 'ERROR_ADMIN')
    expectError(await world.bank.call('PATCH', `${versions}/nope`, { isSupported: false }), 400, 'ERROR_ADMIN')
    for (const name of [undefined, '', ' ', 7, 'x'.repeat(256), 'a\u0000']) {
      const reply = await world.bank.call('POST', versions, { name })
      expect(reply.status).toBe(400)
      expect(['ERROR_ADMIN', 'ERROR_REQUEST']).toContain(errorCode(reply))
    }
  })

  test('of another application do not sign for a phone', async () => {
    const foreign = readApplication(await world.bank.createApplication('foreign'))
    const { phone } = await world.activePhone('3.1')
    expectRefused(await phone.send(phone.speaking({ app: foreign }).prepareValidation({ factors: 'possession' })), 'signature')
    const unknown = {
      applicationKey: b64(random(16)),
      applicationSecret: b64(random(16)),
      masterPublicKey: newKeyPair().uncompressed,
    }
    expectRefused(await phone.send(phone.speaking({ app: unknown }).prepareValidation({ factors: 'possession' })), 'signature')
  })
})
