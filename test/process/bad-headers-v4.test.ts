// Protocol headers that are not as they should be, and requests of one generation at the paths of the other: refused, nothing counted,
// nothing used up (v4 §6, §7.4, §12).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { member, send } from '../../phone/http.ts'
import { b64, random } from '../../phone/v3/crypto.ts'
import { ALL_PHONE_VERSIONS } from '../helpers/phone-versions.ts'
import { flipBit, withHeader, withPair } from '../../phone/header.ts'
import type { Prepared } from '../../phone/v3/state.ts'
import { deviceGroups } from '../../src/api/device/index.ts'
import { expectRefusedV4, readStored, type RefusalV4 } from '../helpers/refusals-v4.ts'
import { openUpgradingPhone } from '../helpers/upgrading-phone.ts'
import { expectOk } from '../helpers/world.ts'
import { type PhoneV4, startWorldV4, type WorldV4 } from '../helpers/world-v4.ts'

const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000'

let v4: WorldV4
beforeAll(async () => {
  v4 = await startWorldV4()
})
afterAll(() => v4.close())

interface Case {
  /** The header that is spoiled. */
  readonly kind: 'Authorization' | 'Encryption'
  readonly refusal: RefusalV4
  readonly prepare: (phone: PhoneV4) => Promise<Prepared<unknown>> | Prepared<unknown>
}

const signed = (prepare: Case['prepare'], refusal: RefusalV4 = 'code'): Case => ({ kind: 'Authorization', refusal, prepare })
const sealed = (prepare: Case['prepare']): Case => ({ kind: 'Encryption', refusal: 'encryption', prepare })

const CASES: Readonly<Record<string, Case>> = {
  'auth/validate': signed((phone) => phone.prepareValidation({ body: '{}' })),
  'activation/confirm': signed(async (phone) => phone.prepareConfirm(true)),
  'activation/remove': signed((phone) => phone.prepareRemove()),
  'token/create': signed((phone) => phone.prepareTokenCreate()),
  'token/remove': signed((phone) => phone.prepareTokenRemove('x')),
  'vault/unlock': signed((phone) => phone.prepareVaultUnlock('KDK_APP_VAULT_2FA')),
  'password/change': signed((phone) => phone.preparePasswordChange()),
  'biometry/add': signed((phone) => phone.prepareBiometryAdd()),
  'biometry/remove': signed((phone) => phone.prepareBiometryRemove()),
  'upgrade/confirm': signed((phone) => phone.prepareUpgradeConfirm(), 'upgrade'),
  'activation/rename': signed((phone) => phone.prepareRename('renamed')),
  'upgrade/start': {
    kind: 'Encryption',
    refusal: 'upgrade',
    prepare: async () => (await openUpgradingPhone(v4, 'EC_P384')).prepareStart(),
  },
  'activation/create': sealed(async (phone) => phone.prepareActivation((await v4.world.register()).code)),
  'config/application': sealed((phone) => phone.prepareConfiguration('application')),
  'config/activation': sealed((phone) => phone.prepareConfiguration('activation')),
  'activation/status': sealed((phone) => phone.prepareEncrypted('/pa/v4/activation/status', 'activation')),
  'user/info': sealed((phone) => phone.prepareUserInfo()),
}

test('every endpoint with a code or an envelope has a case here', () => {
  const endpoints = deviceGroups.filter(({ generations }) => generations.includes('v4')).flatMap((group) => group.endpoints)
  const headersOf = new Map(endpoints.map(({ path, flow }) => [path, flow.headers]))
  const missing = [...headersOf].filter(([path, headers]) => headers.length > 0 && !headers.includes('Token') && !(path in CASES))
  expect(missing.map(([path]) => path)).toEqual([])
})

const key = (bytes: number) => b64(random(bytes))
/** Pairs that make a header malformed; undefined leaves the pair out. */
const COMMON: readonly (readonly [string, string | undefined])[] = [
  ...[undefined, '', key(15), key(17), key(16).slice(0, 22), '='.repeat(24), 'A'.repeat(21) + 'B==', '\u00e9'].map(
    (value) => ['application_key', value] as const,
  ),
  ...[undefined, '', '3.3', '3.0', '4', '4.00', '4.1', '04.0', ' 4.0'].map((value) => ['version', value] as const),
  ...['', 'x', UNKNOWN_ID.replace('4000', '6000'), UNKNOWN_ID.slice(1), `${UNKNOWN_ID} `, `{${UNKNOWN_ID}}`].map(
    (value) => ['activation_id', value] as const,
  ),
]
const OF_CODES: readonly (readonly [string, string | undefined])[] = [
  ...COMMON.map(([name, value]) => [`pa_${name}`, value] as const),
  ['pa_activation_id', undefined],
  ...[undefined, '', key(15), key(17), b64(Buffer.alloc(16, 255)).replaceAll('/', '_')].map(
    (value) => ['pa_nonce', value] as const,
  ),
  ...[undefined, '', 'knowledge', 'biometry', 'possession_knowledge_biometry', 'posession', 'possession knowledge'].map(
    (value) => ['pa_auth_code_type', value] as const,
  ),
  // In upper case this letter is SS.
  ['pa_auth_code_type', 'po\u00dfession'],
  ['pa_auth_code_type', 'po\u00dfe\u00dfion_knowledge'],
  ...[undefined, '', key(31), key(33), key(63), key(65), key(97), '1'.repeat(44), '12345678-12345678'].map(
    (value) => ['pa_auth_code', value] as const,
  ),
]

describe.each(Object.entries(CASES))('%s', (path, { kind, refusal, prepare }) => {
  test('refuses spoiled headers; the genuine request is good after all of them', async () => {
    const { phone } = await (path === 'activation/confirm' ? v4.pendingPhone('EC_P384') : v4.activePhone('EC_P384'))
    const request = await prepare(phone)
    const name = `X-PowerAuth-${kind}`
    const value = String(request.headers[name])
    const pairs = kind === 'Encryption' ? COMMON : OF_CODES
    const before = await readStored(v4.server)
    // A word for factors that the endpoint does not take gets another answer than a word for no factors at all.
    const refusalOf = (what: string): RefusalV4 => {
      if (!/^pa_auth_code_type="(knowledge|biometry|possession_knowledge_biometry)"/.test(what)) return refusal
      return path === 'vault/unlock' ? 'vault' : 'code'
    }
    const refused = async (what: string, spoiled: Prepared<unknown>) =>
      expectRefusedV4(await phone.send(spoiled), refusalOf(what), what)
    for (const [pair, text] of pairs) {
      const isAdded = pair === 'activation_id' && !value.includes('activation_id')
      const spoiled = isAdded ? withHeader(request, name, `${value}, activation_id="${text}"`) : withPair(request, pair, text)
      await refused(`${pair}="${text}"`, spoiled)
    }
    if (kind === 'Encryption' && !value.includes('activation_id')) {
      const text = `${value}, activation_id="${phone.state.activationId}"`
      await refused('the scope of an activation', withHeader(request, name, text))
    }
    const version = kind === 'Encryption' ? 'version="4.0"' : 'pa_version="4.0"'
    for (const text of [
      '',
      'PowerAuth',
      'Basic dXNlcjpwYXNz',
      value.replace('PowerAuth', 'Svc'),
      value.replace('PowerAuth', 'powerauth'),
    ])
      await refused(text, withHeader(request, name, text))
    for (const text of [
      `${value}, ${version}`,
      `${value}, ${value}`,
      `${value}, x`,
      value.replaceAll('"', "'"),
      value.slice(0, -1),
    ])
      await refused(text, withHeader(request, name, text))
    await refused('missing', withHeader(request, name, undefined))
    const other = withHeader(request, name.replace('PowerAuth', 'Svc'), value.replace('4.0', '4.1'))
    expectRefusedV4(await phone.send(other), refusal, 'both spellings')
    const mixed = withHeader(request, kind === 'Encryption' ? 'X-Svc-Authorization' : 'X-Svc-Token', value)
    expectRefusedV4(await phone.send(mixed), refusal, 'two spellings')
    expect((await readStored(v4.server)) === before, 'something was changed').toBe(true)
    if (path === 'upgrade/confirm') expectRefusedV4(await phone.send(request), 'upgrade', 'not version 3')
    else expectOk(await phone.send(request))
  })
})

describe('a token header', () => {
  test('that is spoiled, late or early is refused; the genuine one is good after all of them, once', async () => {
    const { phone } = await v4.activePhone('EC_P384')
    const token = await phone.createToken()
    const weak = await phone.createToken('possession')
    const request = await phone.prepareDetail(token)
    const digest = /token_digest="([^"]*)"/.exec(String(request.headers['X-PowerAuth-Token']))?.[1] ?? ''
    const pairs: readonly (readonly [string, string | undefined])[] = [
      ...[undefined, '', 'x', UNKNOWN_ID, token.id.toUpperCase(), weak.id].map((value) => ['token_id', value] as const),
      ...[undefined, '', key(31), key(33), key(32), flipBit(digest)].map((value) => ['token_digest', value] as const),
      ...[undefined, '', key(15), key(17), key(16)].map((value) => ['nonce', value] as const),
      ...[undefined, '', '0', '-1', '1e12', '12345678', '1'.repeat(16), '0123456789012', '1735689600000'].map(
        (value) => ['timestamp', value] as const,
      ),
    ]
    const header = String(request.headers['X-PowerAuth-Token'])
    for (const [name, value] of pairs) {
      const { 'X-PowerAuth-Token': spoiled } = withPair(
        { ...request, headers: { 'X-PowerAuth-Token': header } },
        name,
        value,
      ).headers
      expectRefusedV4(await phone.send(withHeader(request, 'X-PowerAuth-Token', spoiled)), 'code', `${name}="${value}"`)
    }
    for (const seconds of [-302, 310]) {
      const tokenTimestamp = (await phone.serverTime()) + seconds * 1000
      expectRefusedV4(await phone.send(await phone.prepareDetail(token, { tokenTimestamp })), 'code', `${seconds} s`)
    }
    expectRefusedV4(await phone.send(withHeader(request, 'X-PowerAuth-Token', undefined)), 'code', 'missing')
    expectRefusedV4(await phone.send(await phone.prepareDetail(weak)), 'code', 'made with possession')
    const { phone: other } = await v4.activePhone('EC_P384')
    expectRefusedV4(await other.send(await other.prepareDetail(token)), 'code', 'of another activation')
    expectOk(await phone.send(request))
    const again = withHeader(await phone.prepareDetail(token), 'X-PowerAuth-Token', header)
    expectRefusedV4(await phone.send(again), 'code', 'again')
  })
})

describe('a code of an unknown or foreign application version', () => {
  test('can never be right, and is not counted', async () => {
    const { phone } = await v4.activePhone('EC_P384')
    const side = await v4.world.bank.createApplication('side-of-headers')
    const foreign = String(member(side.json, 'responseObject', 'appKey'))
    const counted = async () => (await phone.readStatus()).failedAttempts
    expectRefusedV4(await phone.send(phone.prepareValidation({ wrongKeys: { knowledge: random(32) } })), 'code')
    expect(await counted()).toBe(1)
    const before = await readStored(v4.server)
    for (const applicationKey of [key(16), foreign])
      for (const factors of ['possession', 'possession_knowledge', 'possession_biometry'] as const)
        expectRefusedV4(
          await phone.send(withPair(phone.prepareValidation({ factors }), 'pa_application_key', applicationKey)),
          'code',
        )
    expect((await readStored(v4.server)) === before).toBe(true)
    expectOk(await phone.send(phone.prepareValidation({ factors: 'possession' })))
    expect(await counted()).toBe(1)
  })

  test('of an unknown activation is refused alike', async () => {
    const { phone } = await v4.activePhone('EC_P384')
    const before = await readStored(v4.server)
    for (const id of [UNKNOWN_ID, phone.state.activationId.toUpperCase()])
      expectRefusedV4(await phone.send(withPair(phone.prepareValidation(), 'pa_activation_id', id)), 'code', id)
    expect((await readStored(v4.server)) === before).toBe(true)
  })
})

describe('the look-ahead', () => {
  test('takes a code 19 steps ahead and none 20 steps ahead', async () => {
    const { phone } = await v4.activePhone('EC_P384')
    phone.skip(19)
    expectOk(await phone.send(phone.prepareValidation()))
    const { ctrData, counter } = phone.state
    phone.skip(20)
    expectRefusedV4(await phone.send(phone.prepareValidation()), 'code')
    Object.assign(phone.state, { ctrData, counter })
    expectOk(await phone.send(phone.prepareValidation()))
    expect(await phone.readStatus()).toMatchObject({ distance: 0, isDeadlocked: false, failedAttempts: 0 })
  })
})

describe('generations', () => {
  const request = (path: string, { headers, body }: Prepared<unknown>) =>
    send(v4.world.url, { method: 'POST', path, headers, body })

  test.each(ALL_PHONE_VERSIONS)('requests of %s at the paths of 4.0 are refused and cost nothing', async (version) => {
    const { phone } = await v4.world.activePhone(version)
    const { code } = await v4.world.register()
    const before = await readStored(v4.server)
    const create = await phone.prepareActivation(code)
    const [rename, tokenCreate, vault] = [
      await phone.prepareRename('x'),
      await phone.prepareTokenCreate(),
      await phone.prepareVaultUnlock(),
    ]
    expectRefusedV4(await request('/pa/v4/activation/create', create), 'encryption')
    expectRefusedV4(await request('/pa/v4/activation/rename', rename), 'code')
    expectRefusedV4(await request('/pa/v4/token/create', tokenCreate), 'code')
    expectRefusedV4(await request('/pa/v4/vault/unlock', vault), 'code')
    expectRefusedV4(await request('/pa/v4/config/application', create), 'encryption')
    expectRefusedV4(await request('/pa/v4/activation/status', rename), 'encryption')
    expect((await readStored(v4.server)) === before).toBe(true)
    expectOk(await phone.send(create))
    expectOk(await phone.send(rename))
    // The one path of 4.0 that serves protocol 3 too.
    expectOk(await request('/pa/v4/user/info', await phone.prepareUserInfo()))
  })

  test('requests of 4.0 at the paths of protocol 3 are refused and cost nothing', async () => {
    const { phone } = await v4.activePhone('EC_P384_ML_L3')
    const { code } = await v4.world.register()
    const before = await readStored(v4.server)
    const good = [
      ['/pa/v3/activation/create', await phone.prepareActivation(code)],
      ['/pa/v3/user/info', await phone.prepareUserInfo()],
      ['/pa/v3/activation/rename', await phone.prepareRename('x')],
      ['/pa/v3/token/create', await phone.prepareTokenCreate()],
      ['/pa/v3/vault/unlock', await phone.prepareVaultUnlock('KDK_APP_VAULT_2FA')],
    ] as const
    for (const [path, prepared] of good) expect([400, 401], path).toContain((await request(path, prepared)).status)
    expect((await readStored(v4.server)) === before).toBe(true)
    for (const [path, prepared] of good)
      if (path !== '/pa/v3/activation/create') expectOk(await phone.send(prepared as Prepared<unknown>))
  })

  test.each(ALL_PHONE_VERSIONS)('an envelope of %s opens neither with a key nor for an activation of 4.0', async (version) => {
    for (const algorithm of ['EC_P384', 'EC_P384_ML_L3'] as const) {
      const { phone } = await v4.activePhone(algorithm)
      const { phone: old } = await v4.world.activePhone(version)
      const spoil = async (name: string, value: string) => {
        const prepared = await old.prepareUserInfo()
        const json = JSON.parse(Buffer.from(prepared.body).toString()) as Record<string, unknown>
        return { ...prepared, body: Buffer.from(JSON.stringify({ ...json, [name]: value })) }
      }
      const paths = ['/pa/v3/user/info', '/pa/v4/user/info']
      // Before the phone has asked for anything: its keys are opened for the first time.
      for (const path of paths) {
        const foreign = withPair(await old.prepareUserInfo(), 'activation_id', phone.state.activationId)
        expectRefusedV4(await request(path, foreign), 'encryption', path)
      }
      const ofActivation = await phone.fetchTemporaryKey('activation')
      const ofApplication = await phone.fetchTemporaryKey('application')
      for (const path of version === '3.3' ? paths : []) {
        for (const { id } of [ofActivation, ofApplication])
          expectRefusedV4(await request(path, await spoil('temporaryKeyId', id)), 'encryption', path)
        // The key of the activation named, too.
        const both = withPair(await spoil('temporaryKeyId', ofActivation.id), 'activation_id', phone.state.activationId)
        expectRefusedV4(await request(path, both), 'encryption', path)
      }
      if (version === '3.3') {
        const { code } = await v4.world.register()
        const create = await old.prepareActivation(code, {
          alterEnvelope: (envelope) => ({ ...envelope, temporaryKeyId: ofApplication.id }),
        })
        expectRefusedV4(await request('/pa/v3/activation/create', create), 'encryption')
      }
      // What was named in a wrong place is still good in its own.
      expectOk(await phone.send(await phone.prepareUserInfo({ temporaryKey: ofActivation })))
      expectOk(await phone.send(await phone.prepareConfiguration('application', { temporaryKey: ofApplication })))
      expectOk(await old.send(await old.prepareUserInfo()))
      const status = JSON.stringify({ requestObject: { activationId: phone.state.activationId } })
      const headers = { 'Content-Type': 'application/json' }
      expectOk(await send(v4.world.url, { method: 'POST', path: '/pa/v3/activation/status', headers, body: Buffer.from(status) }))
    }
  })

  test('a key of 3.3 that was named in an envelope of 4.0 is still good in its own', async () => {
    const { phone: old } = await v4.world.activePhone('3.3')
    const phone = v4.newPhone('EC_P384')
    const temporaryKey = await old.fetchTemporaryKey('application')
    const named = { id: temporaryKey.id, secret: random(32), expiresAt: 0 }
    expectRefusedV4(await phone.send(await phone.prepareConfiguration('application', { temporaryKey: named })), 'encryption')
    const { code } = await v4.world.register()
    const fresh = v4.world.newPhone('3.3')
    expectOk(await fresh.send(await fresh.prepareActivation(code, { temporaryKey })))
  })
})
