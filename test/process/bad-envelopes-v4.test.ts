// Envelopes of protocol 4.0 that are not as they should be, on every endpoint that takes one: the documented refusal, nothing used up,
// nothing changed (v4 §5, §12).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readApplication } from '../helpers/bank.ts'
import { flipBit, withBody, withHeader } from '../../phone/header.ts'
import type { Prepared } from '../../phone/v3/state.ts'
import { b64, random } from '../../phone/v3/crypto.ts'
import type { V4TemporaryKey } from '../../phone/v4/envelope.ts'
import type { PhoneScope } from '../../phone/v3/state.ts'
import type { V4EnvelopeOptions, V4PlaintextOption } from '../../phone/v4/state.ts'
import { expectRefusedV4, MOVED_BY_A_CODE, readStored, type RefusalV4 } from '../helpers/refusals-v4.ts'
import { expectOk } from '../helpers/world.ts'
import { type PhoneV4, startWorldV4, type WorldV4 } from '../helpers/world-v4.ts'

let v4: WorldV4
beforeAll(async () => {
  v4 = await startWorldV4()
})
afterAll(() => v4.close())

type Options = V4EnvelopeOptions & V4PlaintextOption
type Envelope = Record<string, string | number>

interface Subject {
  readonly phone: PhoneV4
  /** Whose code it is, when not the phone's. */
  readonly signer?: { readonly state: { ctrData: Uint8Array } }
  /** A good request with these parts. */
  readonly prepare: (options: Options) => Promise<Prepared<unknown>>
}

interface Endpoint {
  readonly scope: PhoneScope
  /** Whether a code comes first, which moves the counter. */
  readonly isSigned?: boolean
  readonly malformed: RefusalV4
  readonly closed: RefusalV4
  /** The plaintext is no JSON; JSON of another shape. None where the plaintext is not looked at. */
  readonly plaintext?: RefusalV4
  readonly shape?: RefusalV4
  /** The body is no JSON. */
  readonly json?: RefusalV4
  readonly begin: () => Promise<Subject>
}

const active =
  (prepare: (phone: PhoneV4, options: Options) => Promise<Prepared<unknown>>): Endpoint['begin'] =>
  async () => {
    const { phone } = await v4.activePhone('EC_P384')
    return { phone, prepare: (options) => prepare(phone, options) }
  }
const open = { malformed: 'encryption', closed: 'encryption', plaintext: 'encryption', shape: 'validation' } as const
const one = (refusal: RefusalV4) => ({ closed: refusal, plaintext: refusal, shape: refusal })

const ENDPOINTS: Readonly<Record<string, Endpoint>> = {
  'activation/create': {
    scope: 'application',
    ...open,
    begin: async () => {
      const { code } = await v4.world.register()
      const phone = v4.newPhone('EC_P384')
      return { phone, prepare: (options) => phone.prepareActivation(code, options) }
    },
  },
  'config/application': {
    scope: 'application',
    ...open,
    begin: active((phone, options) => phone.prepareConfiguration('application', options)),
  },
  'config/activation': {
    scope: 'activation',
    ...open,
    begin: active((phone, options) => phone.prepareConfiguration('activation', options)),
  },
  'activation/status': {
    scope: 'activation',
    ...open,
    begin: active((phone, options) => phone.prepareEncrypted('/pa/v4/activation/status', 'activation', options)),
  },
  'user/info': { scope: 'activation', ...open, begin: active((phone, options) => phone.prepareUserInfo(options)) },
  'activation/detail': {
    scope: 'activation',
    malformed: 'encryption',
    closed: 'encryption',
    begin: async () => {
      const { phone } = await v4.activePhone('EC_P384')
      const token = await phone.createToken()
      return { phone, prepare: (options) => phone.prepareDetail(token, options) }
    },
  },
  'activation/rename': {
    scope: 'activation',
    ...open,
    isSigned: true,
    begin: active((phone, options) => phone.prepareRename('renamed', options)),
  },
  'token/create': {
    scope: 'activation',
    isSigned: true,
    malformed: 'request',
    ...one('token'),
    json: 'validation',
    begin: active((phone, options) => phone.prepareTokenCreate(options)),
  },
  'vault/unlock': {
    scope: 'activation',
    isSigned: true,
    malformed: 'vault',
    ...one('vault'),
    begin: active((phone, options) => phone.prepareVaultUnlock('KDK_APP_VAULT_2FA', options)),
  },
  'password/change': {
    scope: 'activation',
    isSigned: true,
    malformed: 'request',
    ...one('password'),
    begin: active((phone, options) => phone.preparePasswordChange(options)),
  },
  'biometry/add': {
    scope: 'activation',
    isSigned: true,
    malformed: 'request',
    ...one('biometry'),
    begin: active((phone, options) => phone.prepareBiometryAdd(options)),
  },
  'upgrade/start': {
    scope: 'application',
    isSigned: true,
    malformed: 'upgrade',
    closed: 'upgrade',
    plaintext: 'upgrade',
    shape: 'validation',
    begin: async () => {
      const { phone: old } = await v4.world.activePhone('3.3')
      const phone = v4.newPhone('EC_P384')
      phone.state.activationId = old.state.activationId
      const authorize = (body: Uint8Array) =>
        old.prepareSigned({ path: '/pa/v4/upgrade/start', resourceId: '/pa/upgrade/start', body: Buffer.from(body).toString() })
          .headers
      return { phone, signer: old, prepare: (options) => phone.prepareUpgradeStart(authorize, options) }
    },
  },
}

const bytesIn = (envelope: Envelope, name: string): Buffer => Buffer.from(String(envelope[name]), 'base64')
const set =
  (name: string, value: unknown) =>
  (envelope: Envelope): unknown => ({ ...envelope, [name]: value })
const change =
  (name: string, change: (bytes: Buffer) => Uint8Array) =>
  (envelope: Envelope): unknown => ({ ...envelope, [name]: b64(change(bytesIn(envelope, name))) })
const flip = (at: number) => (bytes: Buffer) => {
  const changed = Buffer.from(bytes)
  changed.writeUInt8(changed.readUInt8(at) ^ 1, at)
  return changed
}

/** The envelope has another form. */
const MALFORMED: Readonly<Record<string, (envelope: Envelope) => unknown>> = {
  'no object': () => 'text',
  null: () => null,
  'an array': (envelope) => [envelope],
  'no members': () => ({}),
  ...Object.fromEntries(
    ['temporaryKeyId', 'encryptedData', 'nonce', 'timestamp'].flatMap((name) =>
      [undefined, null, true, '', {}, []].map((value) => [`${name} ${JSON.stringify(value)}`, set(name, value)]),
    ),
  ),
  'a key id that is not a UUID': set('temporaryKeyId', 'key'),
  'a key id of another version of UUID': set('temporaryKeyId', '018f3f2e-1b2a-7c3d-8e4f-5a6b7c8d9e0f'),
  'a key id with a zero byte': (envelope) => ({ ...envelope, temporaryKeyId: `${envelope['temporaryKeyId']}\0` }),
  'a key id that is half of a surrogate pair': set('temporaryKeyId', '\ud800'),
  'sealed bytes without a tag': change('encryptedData', (bytes) => bytes.subarray(0, 43)),
  'sealed bytes that are not Base64': set('encryptedData', '?'.repeat(80)),
  'sealed bytes in base64url': (envelope) => ({
    ...envelope,
    encryptedData: Buffer.concat([bytesIn(envelope, 'encryptedData').subarray(0, 12), Buffer.alloc(40, 255)]).toString(
      'base64url',
    ),
  }),
  'a nonce of 12 bytes': change('nonce', (bytes) => bytes.subarray(0, 12)),
  'a nonce of 23 bytes': change('nonce', (bytes) => bytes.subarray(0, 23)),
  'a nonce of 25 bytes': change('nonce', (bytes) => Buffer.concat([bytes, Buffer.alloc(1)])),
  'a nonce with its halves swapped': change('nonce', (bytes) => Buffer.concat([bytes.subarray(12), bytes.subarray(0, 12)])),
  'a nonce with equal halves': change('nonce', (bytes) => Buffer.concat([bytes.subarray(0, 12), bytes.subarray(0, 12)])),
  'another nonce': change('nonce', () => random(24)),
  'other sealed bytes than those of the nonce': change('encryptedData', flip(0)),
  ...Object.fromEntries(
    [-1, 1.5, 2 ** 53, 1e300, '1735689600000', '0x1', [1]].map((value) => [
      `the time ${JSON.stringify(value)}`,
      set('timestamp', value),
    ]),
  ),
}

/** The envelope is well-formed and does not open. */
const CLOSED: Readonly<Record<string, (envelope: Envelope) => unknown>> = {
  'an unknown key id': set('temporaryKeyId', '00000000-0000-4000-8000-000000000000'),
  'the key id in upper case': (envelope) => ({ ...envelope, temporaryKeyId: String(envelope['temporaryKeyId']).toUpperCase() }),
  'another tag': change('encryptedData', flip(12)),
  'another end of the tag': change('encryptedData', flip(43)),
  'other sealed bytes': (envelope) => ({ ...envelope, encryptedData: flipBit(String(envelope['encryptedData'])) }),
  'sealed bytes that were cut': change('encryptedData', (bytes) => bytes.subarray(0, bytes.length - 1)),
  'more sealed bytes': change('encryptedData', (bytes) => Buffer.concat([bytes, Buffer.alloc(1)])),
  'another half of the nonce for the answer': change('nonce', flip(23)),
  'another time': (envelope) => ({ ...envelope, timestamp: Number(envelope['timestamp']) + 1 }),
  'the time 0': set('timestamp', 0),
  'the last time there is': set('timestamp', Number.MAX_SAFE_INTEGER),
}

const NO_JSON: readonly (string | Uint8Array)[] = [
  '{',
  '{"a":1}}',
  '\ufeff{}',
  Buffer.from([0x7b, 0xff, 0x7d]),
  '{"__proto__":{"a":1}}',
  '{"constructor":{"prototype":{}}}',
  `${'['.repeat(65)}${']'.repeat(65)}`,
  '['.repeat(10_000),
]
const OTHER_SHAPES: readonly string[] = ['[]', 'null', '1', '"text"', '{"a":"\\u0000"}', '{"a":"\\ud800"}', '{"\\u0000":1}']

/** Sends a spoiled request and expects its refusal; takes the code back that was refused before anybody looked at it. */
async function refuse({ phone, signer = phone, prepare }: Subject, what: string, refusal: RefusalV4, options: Options) {
  const counter = await readCounter(phone)
  const { ctrData } = signer.state
  expectRefusedV4(await phone.send(await prepare(options)), refusal, what)
  if ((await readCounter(phone)) === counter) {
    signer.state.ctrData = ctrData
    if (signer === phone) phone.state.counter = counter
  }
}

async function readCounter({ state: { activationId } }: PhoneV4): Promise<number> {
  const rows = v4.server.context.db.selectFrom('activation').select('counter').where('activation_id', '=', activationId)
  return (await rows.executeTakeFirst())?.counter ?? 0
}

describe.each(Object.entries(ENDPOINTS))('%s', (name, endpoint) => {
  const stored = () => readStored(v4.server, endpoint.isSigned ? MOVED_BY_A_CODE : [])

  test('refuses every spoiled envelope, and uses up and changes nothing', async () => {
    const subject = await endpoint.begin()
    const { phone, prepare } = subject
    const temporaryKey = await phone.fetchTemporaryKey(endpoint.scope)
    const fixed = { temporaryKey, nonce: random(24), timestamp: await phone.serverTime() }
    const before = await stored()
    const spoil = (what: string, refusal: RefusalV4, options: Options) => refuse(subject, what, refusal, { ...fixed, ...options })
    for (const [what, alterEnvelope] of Object.entries(MALFORMED)) await spoil(what, endpoint.malformed, { alterEnvelope })
    for (const [what, alterEnvelope] of Object.entries(CLOSED)) await spoil(what, endpoint.closed, { alterEnvelope })
    // From the time of now: what was 310 seconds ahead when the test began is not any more when it took long.
    for (const seconds of [-302, 310])
      await spoil(`${seconds} s`, endpoint.closed, { timestamp: (await phone.serverTime()) + seconds * 1000 })
    const { plaintext, shape } = endpoint
    if (plaintext) for (const text of NO_JSON) await spoil(String(text).slice(0, 40), plaintext, { plaintext: text })
    if (shape) for (const text of OTHER_SHAPES) await spoil(text, shape, { plaintext: text })
    expectSame(await stored(), before)
    const good = await prepare(fixed)
    expectOk(await phone.send(good))
    // Now its nonce is used up, in another envelope too.
    if (endpoint.isSigned) await spoil('the nonce again', endpoint.closed, {})
    else expectRefusedV4(await phone.send(good), endpoint.closed)
  })

  test('refuses keys that were made for somebody or something else', async () => {
    const keys = await foreignKeys()
    const subject = await endpoint.begin()
    const nonce = random(24)
    const before = await stored()
    for (const [what, temporaryKey] of Object.entries(keys))
      if (what !== endpoint.scope) await refuse(subject, what, endpoint.closed, { temporaryKey, nonce })
    expectSame(await stored(), before)
    expectOk(await subject.phone.send(await subject.prepare({ nonce })))
  })

  test('refuses a body that is not JSON, a missing one, one that is too long, and another method', async () => {
    const { phone, prepare } = await endpoint.begin()
    const request = await prepare({})
    const before = await stored()
    for (const body of ['', '{', '['.repeat(30_000), Buffer.from([0xff])]) {
      const { status, text } = await phone.send(withBody(request, body))
      // Where a code covers the body it is wrong then.
      expect([400, 401], text).toContain(status)
    }
    if (!endpoint.isSigned) expectSame(await stored(), before)
    const long = withBody(request, Buffer.concat([request.body, Buffer.alloc(64 * 1024, ' ')]))
    expectRefusedV4(await phone.send(long), 'validation', 'too long')
    const limit = name === 'activation/create' ? 64 * 1024 : 16 * 1024
    const longer = withBody(request, Buffer.concat([request.body, Buffer.alloc(limit + 1 - request.body.length, ' ')]))
    expectRefusedV4(await phone.send(longer), 'validation', 'a byte too long')
    expectRefusedV4(await phone.send(withHeader(request, 'Content-Type', 'text/plain')), 'validation', 'no JSON by its type')
    for (const method of ['GET', 'PUT', 'DELETE', 'PATCH']) expect((await phone.send({ ...request, method })).status).toBe(404)
    expectOk(await phone.send(request))
  })
})

/** The whole text would be shown, were it compared as it is. */
const expectSame = (after: string, before: string) => expect(after === before, 'something was changed').toBe(true)

let made: Record<string, V4TemporaryKey> | undefined
/** Keys that are good for others, one of each kind. */
async function foreignKeys(): Promise<Record<string, V4TemporaryKey>> {
  if (made) return made
  const { phone } = await v4.activePhone('EC_P384')
  const { phone: old } = await v4.world.activePhone('3.3')
  const path = `/admin/applications/${v4.world.applicationId}/versions`
  expectOk(await v4.world.bank.call('POST', path, { name: 'second' }))
  const config = readApplication(
    await v4.world.bank.call('GET', `/admin/application?id=${v4.world.applicationId}&version=second`),
  )
  const { applicationKey, applicationSecret } = config
  const second = v4.newPhone('EC_P384', { app: { ...v4.app, applicationKey, applicationSecret } })
  const ofV3 = async (scope: 'application' | 'activation') => ({
    id: (await old.fetchTemporaryKey(scope)).id,
    secret: random(32),
    expiresAt: 0,
  })
  made = {
    application: await phone.fetchTemporaryKey('application'),
    'another activation': await phone.fetchTemporaryKey('activation'),
    'another version of the application': await second.fetchTemporaryKey('application'),
    'protocol 3, application': await ofV3('application'),
    'protocol 3, activation': await ofV3('activation'),
  }
  return made
}
