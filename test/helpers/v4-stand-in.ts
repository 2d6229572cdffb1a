// The pure protocol 4.0 behind HTTP, with one application and one activation in memory: enough to talk to the phone of the tests.
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parseBase64, toBase64 } from '../../src/lib/base64.ts'
import { fromUtf8, utf8 } from '../../src/lib/bytes.ts'
import type { EnvelopeContext, OpenedEnvelope, SigningKeys } from '../../src/protocol/protocol.ts'
import { type ActivationKeys, v4 } from '../../src/protocol/v4/index.ts'
import { generateSigningKeyPairs } from '../../src/protocol/v4/key-pairs.ts'
import { createOfflinePayload } from '../../src/protocol/v4/offline.ts'
import { composeSdkConfiguration } from '../../src/protocol/v4/sdk-configuration.ts'
import type { AlgorithmV4 } from '../../src/protocol/v4/shared-secret.ts'
import { member } from './http.ts'
import { random } from './phone-crypto.ts'

const ACTIVATION_ID = '4797003e-9a97-43a5-9e12-3b643c65a045'
const KEY_ID = '52f54f6b-6fb6-4029-a840-76236dfd1c40'
const TOKEN_ID = '8139bf57-473c-4675-be47-a33ddf518464'
const LOOK_AHEAD = 20
const SCHEMES = ['PowerAuth']
const APPLICATION_LABELS = ['/pa/generic/application', '/pa/upgrade/start']

/** What the server remembers. */
interface Memory {
  activationSecret: Uint8Array | undefined
  ctrData: Uint8Array
  counter: number
  failedAttempts: number
  isBiometryEnabled: boolean
  serverKeys: SigningKeys | undefined
  fingerprint: string | undefined
  readonly temporaryKeys: Map<string, Uint8Array>
  readonly tokenSecret: Uint8Array
}

/** Starts a server for one algorithm. */
export async function startStandIn(algorithm: AlgorithmV4) {
  const master = await generateSigningKeyPairs(algorithm)
  const application = { key: toBase64(random(16)), secret: toBase64(random(16)) }
  const memory: Memory = {
    activationSecret: undefined,
    ctrData: random(32),
    counter: 0,
    failedAttempts: 0,
    isBiometryEnabled: false,
    serverKeys: undefined,
    fingerprint: undefined,
    temporaryKeys: new Map(),
    tokenSecret: random(v4.tokenSecretLength),
  }
  const stand = { algorithm, master: master.privateKeys, application, memory }
  const server = createServer((request, response) => {
    void readBody(request)
      .then((body) => serve(stand, request, body))
      .catch((error: unknown) => ({ status: 400, json: { status: 'ERROR', detail: String(error) } }))
      .then(({ status, json }) => response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(json)))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { ecdsa, mldsa } = master.publicKeys
  const mlDsaName = algorithm === 'EC_P384_ML_L3' ? 'ML-DSA-65' : 'ML-DSA-87'
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    memory,
    mobileSdkConfig: composeSdkConfiguration({
      applicationKey: parseBase64(application.key) ?? random(16),
      applicationSecret: parseBase64(application.secret) ?? random(16),
      masterPublicKeys: { 'P-384': ecdsa, ...(mldsa && { [mlDsaName]: mldsa }) },
    }),
    createPayload: (data: string, nonceBase64: string, totp?: string) => {
      const own = { keys: keysOf(memory), openServerKeys: () => memory.serverKeys ?? master.privateKeys }
      return v4.createPersonalizedPayload({ data, nonceBase64, ...(totp !== undefined && { totp }) }, own)
    },
    createMasterPayload: (data: string, nonceBase64: string) =>
      createOfflinePayload({ data, nonceBase64 }, master.privateKeys.ecdsa),
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
  }
}

interface Stand {
  readonly algorithm: AlgorithmV4
  readonly master: SigningKeys
  readonly application: { readonly key: string; readonly secret: string }
  readonly memory: Memory
}

interface Call extends Stand {
  /** The plaintext of an encrypted request, else the body. */
  readonly content: Uint8Array
  readonly factors: string
  readonly request: IncomingMessage
}

interface Endpoint {
  /** What the code covers; absent where there is none. */
  readonly covers?: 'body' | 'plaintext'
  /** The label of the envelope; absent where there is none. */
  readonly label?: string
  readonly handle: (call: Call) => unknown
}

async function serve(stand: Stand, request: IncomingMessage, body: Uint8Array) {
  const [path = '', query] = (request.url ?? '').split('?', 2)
  const name = path.replace('/pa/v4/', '')
  const endpoint = endpoints[name]
  if (!endpoint) return { status: 404, json: { status: 'ERROR' } }
  const opened = endpoint.label === undefined ? undefined : open(stand, request, endpoint.label, body)
  const covered = endpoint.covers === 'plaintext' && opened ? opened.plaintext : body
  const factors = endpoint.covers ? authenticate(stand, request, { resourceId: `/pa/${name}`, body: covered, query }) : ''
  if (factors === undefined) return { status: 401, json: { status: 'ERROR' } }
  const answer = await endpoint.handle({ ...stand, request, factors, content: opened?.plaintext ?? body })
  return { status: 200, json: opened ? seal(opened, answer) : answer }
}

const ok = (responseObject?: unknown) => ({ status: 'OK', ...(responseObject !== undefined && { responseObject }) })

const endpoints: Readonly<Record<string, Endpoint>> = {
  status: { handle: () => ok({ serverTime: Date.now() }) },
  'keystore/create': { handle: issueTemporaryKey },
  'activation/create': { label: '/pa/generic/application', handle: activate },
  'activation/status': { label: '/pa/generic/activation', handle: ({ memory }) => ({ activationStatus: readStatus(memory) }) },
  'activation/confirm': {
    covers: 'body',
    handle({ memory, content }) {
      memory.isBiometryEnabled = member(parse(content), 'requestObject', 'enableBiometry') === true
      return ok()
    },
  },
  'activation/remove': { covers: 'body', handle: () => ok({ activationId: ACTIVATION_ID }) },
  'activation/detail': { label: '/pa/generic/activation', handle: readDetail },
  'activation/rename': { covers: 'plaintext', label: '/pa/generic/activation', handle: ({ content }) => ok(parse(content)) },
  'auth/validate': { covers: 'body', handle: () => ok() },
  'token/create': {
    covers: 'body',
    label: '/pa/token/create',
    handle: ({ memory }) => ({ tokenId: TOKEN_ID, tokenSecret: toBase64(memory.tokenSecret) }),
  },
  'vault/unlock': {
    covers: 'body',
    label: '/pa/vault/unlock',
    handle({ memory, content }) {
      const identifier = member(parse(content), 'keyIdentifier') as 'KEK_DEVICE_PRIVATE'
      return { vaultEncryptionKey: toBase64(v4.deriveVaultKey(keysOf(memory), identifier)) }
    },
  },
  'password/change': {
    covers: 'body',
    label: '/pa/password/change',
    handle: (call) => newFactorKey(call, v4.replaceKnowledgeKey),
  },
  'biometry/add': { covers: 'body', label: '/pa/biometry/add', handle: (call) => newFactorKey(call, v4.addBiometryKey) },
  'biometry/remove': {
    covers: 'body',
    handle({ memory }) {
      memory.activationSecret = v4.removeBiometryKeys(keysOf(memory).activationSecret)
      memory.isBiometryEnabled = false
      return ok()
    },
  },
  'upgrade/start': { label: '/pa/upgrade/start', handle: startUpgrade },
  'upgrade/confirm': { covers: 'body', handle: () => ok() },
  'user/info': { label: '/pa/generic/activation', handle: () => ({ sub: 'user' }) },
  'config/application': { label: '/pa/generic/application', handle: () => ({ config: [] }) },
  'config/activation': { label: '/pa/generic/activation', handle: () => ({ config: [] }) },
}

function open({ application, memory }: Stand, request: IncomingMessage, label: string, body: Uint8Array): OpenedEnvelope {
  const scope = APPLICATION_LABELS.includes(label) ? 'APPLICATION_SCOPE' : 'ACTIVATION_SCOPE'
  const encryption = request.headers['x-powerauth-encryption']
  if (encryption !== undefined) {
    const header = v4.parseEncryptionHeader(String(encryption), SCHEMES)
    const activationId = scope === 'ACTIVATION_SCOPE' ? ACTIVATION_ID : undefined
    if (header?.applicationKey !== application.key || header.activationId !== activationId) throw new Error('wrong header')
  }
  return openJson({ application, memory }, scope, label, parse(body))
}

function openJson(
  { application, memory }: Pick<Stand, 'application' | 'memory'>,
  scope: EnvelopeContext['scope'],
  sharedInfo1: string,
  json: unknown,
): OpenedEnvelope {
  const isBound = scope === 'ACTIVATION_SCOPE'
  const activationId = isBound ? ACTIVATION_ID : undefined
  const envelope = v4.parseEnvelope({ version: '4.0', scope, sharedInfo1, applicationKey: application.key, activationId }, json)
  const secret = memory.temporaryKeys.get(envelope?.temporaryKeyId ?? '')
  const opened =
    secret &&
    envelope?.open({
      applicationSecret: application.secret,
      envelopeKey: v4.importEnvelopeKey(secret),
      activationKeys: isBound ? keysOf(memory) : undefined,
    })
  if (!opened) throw new Error('the envelope does not open')
  return opened
}

const seal = (opened: OpenedEnvelope, value: unknown) =>
  opened.seal(utf8(JSON.stringify(value)), { nonce: random(16), timestamp: Date.now() })

/** The factors of a right code, counter and keys moved; undefined for a wrong one, which is counted. */
function authenticate(
  { application, memory }: Stand,
  request: IncomingMessage,
  { resourceId, body, query }: { resourceId: string; body: Uint8Array; query: string | undefined },
): string | undefined {
  const header = v4.parseAuthorizationHeader(String(request.headers['x-powerauth-authorization']), SCHEMES)
  if (header?.activationId !== ACTIVATION_ID || header.applicationKey !== application.key) return undefined
  const method = request.method ?? ''
  for (const covered of v4.coveredBodies({ method, body, query })) {
    const signed = { method, resourceId, nonce: header.nonce, body: covered, applicationSecret: application.secret }
    const move = v4.verifyAuthenticationCode(keysOf(memory), memory.ctrData, v4.signedData(signed), header, LOOK_AHEAD)
    if (!move) continue
    memory.ctrData = move.ctrData
    memory.counter += move.steps
    memory.activationSecret = move.activationSecret ?? memory.activationSecret
    return header.factors
  }
  memory.failedAttempts += 1
  return undefined
}

async function issueTemporaryKey({ content, application, memory, master }: Call) {
  const asked = v4.parseTemporaryKeyRequest(String(member(parse(content), 'requestObject', 'jwt')))
  const isBound = asked?.activationId !== undefined
  const isGenuine = asked?.verify(application.secret, isBound ? keysOf(memory) : undefined)
  const signingKeys = isBound ? memory.serverKeys : master
  if (!asked || isGenuine !== true || !signingKeys) throw new Error('the request is not genuine')
  const temporaryKeyId = KEY_ID.slice(0, -4) + String(memory.temporaryKeys.size + 1000)
  const terms = { temporaryKeyId, issuedAt: Date.now(), expiresAt: Date.now() + 300_000, salt: random(32) }
  const issued = await asked.issue(terms, signingKeys)
  if (!issued) throw new Error('the keys of the request are not valid')
  memory.temporaryKeys.set(temporaryKeyId, issued.envelopeKey)
  return ok({ jwt: issued.jwt })
}

async function activate(call: Call) {
  const inner = openJson(call, 'APPLICATION_SCOPE', '/pa/activation', member(parse(call.content), 'activationData'))
  const answer = { ...(await exchangeKeys(call, parse(inner.plaintext))), activationId: ACTIVATION_ID }
  return { activationData: seal(inner, answer), customAttributes: null, userInfo: null }
}

/** The code of 3.x is not looked at: this server knows no 3.x. The counter goes on from where it was there. */
async function startUpgrade(call: Call) {
  if (call.request.headers['x-powerauth-authorization'] === undefined) throw new Error('no code')
  call.memory.counter = 155
  return exchangeKeys(call, parse(call.content))
}

async function exchangeKeys({ algorithm, memory }: Call, json: unknown) {
  const request = v4.parseSharedSecretRequest(member(json, 'sharedSecretRequest'))
  const deviceKeys = v4.parsePublicKeys(algorithm, member(json, 'devicePublicKeys'))
  const exchanged = request && deviceKeys && (await v4.exchangeKeys(request, deviceKeys, ACTIVATION_ID, random(32)))
  if (!exchanged) throw new Error('the keys of the request are not valid')
  memory.activationSecret = exchanged.activationSecret
  memory.serverKeys = exchanged.serverKeys.privateKeys
  memory.fingerprint = exchanged.activationFingerprint
  return { ...exchanged.answer, ctrData: toBase64(memory.ctrData) }
}

async function newFactorKey({ algorithm, memory, content }: Call, replace: (stored: Uint8Array, key: Uint8Array) => Uint8Array) {
  const request = v4.parseSharedSecretRequest(parse(content))
  const shared = request?.algorithm === algorithm ? await v4.encapsulateSharedSecret(request, random(32)) : undefined
  if (!shared) throw new Error('the keys of the request are not valid')
  memory.activationSecret = replace(keysOf(memory).activationSecret, shared.secret)
  return shared.response
}

function readDetail({ request, memory }: Call) {
  const header = v4.parseTokenHeader(String(request.headers['x-powerauth-token']), SCHEMES)
  if (header?.tokenId !== TOKEN_ID || !v4.verifyTokenDigest(memory.tokenSecret, header)) throw new Error('wrong token')
  return ok({ activationId: ACTIVATION_ID })
}

function readStatus(memory: Memory): string {
  const { counter, ctrData, failedAttempts, isBiometryEnabled } = memory
  const flags = { isConfirmationPending: false, isUpgradePending: false, isAlgorithmUnsupported: false, isBiometryEnabled }
  const counts = { counter, ctrData, failedAttempts, maxFailedAttempts: 5, lookAhead: LOOK_AHEAD }
  const status = { state: 'ACTIVE', currentVersion: 4, upgradeVersion: 4, ...flags, ...counts } as const
  return toBase64(v4.composeStatusBlob(keysOf(memory), status, random(4)))
}

function keysOf({ activationSecret }: Memory): ActivationKeys {
  if (!activationSecret) throw new Error('there is no activation yet')
  return v4.deriveActivationKeys(activationSecret)
}

const parse = (bytes: Uint8Array): unknown => (bytes.length === 0 ? undefined : JSON.parse(fromUtf8(bytes)))

async function readBody(request: IncomingMessage): Promise<Uint8Array> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}
