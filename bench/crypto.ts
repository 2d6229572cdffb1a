// How fast the hot paths are, in this process and without HTTP or database: npm run bench -- crypto. Compare runs on one machine only.
import { randomBytes, randomUUID } from 'node:crypto'
import { generateKeyPair } from '../src/crypto/key.ts'
import { createRecordKeys } from '../src/domain/secrets/record-keys.ts'
import { systemPlatform } from '../src/lib/platform.ts'
import type { EnvelopeContext } from '../src/protocol/protocol.ts'
import { computeComponents, selectFactorKeys, toBinaryCode } from '../src/protocol/v3/authentication-code.ts'
import { v3 } from '../src/protocol/v3/index.ts'
import { b64 } from '../phone/v3/crypto.ts'
import { sealEnvelope } from '../phone/v3/envelope.ts'
import { measure } from './measure.ts'

const server = generateKeyPair('P-256')
const device = generateKeyPair('P-256')
const secret = v3.agreeMasterSecret(server.privateKey, device.publicKey) ?? new Uint8Array(16)
const keys = v3.deriveActivationKeys(secret)
const ctrData = randomBytes(16)
const applicationSecret = b64(randomBytes(16))
const signedData = v3.signedData({
  method: 'POST',
  resourceId: '/pa/signature/validate',
  nonce: randomBytes(16),
  body: randomBytes(200),
  applicationSecret,
})
const components = computeComponents(selectFactorKeys(keys, 'POSSESSION_KNOWLEDGE'), ctrData, signedData)
const right = { version: '3.3', factors: 'POSSESSION_KNOWLEDGE', code: b64(toBinaryCode(components)) } as const
const wrong = { ...right, code: b64(randomBytes(32)) }

await measure('verify a right code of possession and knowledge', () =>
  v3.verifyAuthenticationCode(keys, ctrData, signedData, right, 20),
)
await measure('verify a wrong code over 20 counter values', () =>
  v3.verifyAuthenticationCode(keys, ctrData, signedData, wrong, 20),
)

const applicationKey = b64(randomBytes(16))
const scope = { version: '3.2', applicationKey, activationId: randomUUID() } as const
const context: EnvelopeContext = { ...scope, scope: 'ACTIVATION_SCOPE', sharedInfo1: '/pa/token/create' }
const envelopeKeys = { applicationSecret, envelopeKey: server.privateKey, activationKeys: keys }
const { envelope } = sealEnvelope(
  { ...scope, label: context.sharedInfo1, applicationSecret, keyTransport: keys.keyTransport, publicKey: server.publicKey },
  Buffer.from('{}'),
  { timestamp: systemPlatform.now(), compressed: true },
)
const openEnvelope = () => v3.parseEnvelope(context, envelope)?.open(envelopeKeys)
const opened = openEnvelope()
if (opened === undefined) throw new Error('the envelope does not open')
const answer = { nonce: randomBytes(16), timestamp: systemPlatform.now() }

await measure('open an encrypted request', openEnvelope)
await measure('seal its answer', () => opened.seal(Buffer.from('{}'), answer))

const recordKeys = createRecordKeys([randomBytes(32)], { randomBytes: (length) => randomBytes(length) })
const place = { table: 'activation', column: 'ctr_data', row: randomUUID() }
const record = recordKeys.seal(place, ctrData)
await measure('seal a record', () => recordKeys.seal(place, ctrData))
await measure('open a record', () => recordKeys.open(place, record))
await measure('derive the keys of an activation', () => v3.deriveActivationKeys(secret))
await measure('create a key pair', () => generateKeyPair('P-256'))

await import('./crypto-v4.ts')
await import('./crypto-steps.ts')
