// The hot paths of protocol 4.0, each apart from the others; run by crypto.ts, or alone.
import { randomBytes, randomUUID } from 'node:crypto'
import { systemPlatform } from '../src/lib/platform.ts'
import type { EnvelopeContext } from '../src/protocol/protocol.ts'
import { replaceKnowledgeKey } from '../src/protocol/v4/factor-keys.ts'
import { v4 } from '../src/protocol/v4/index.ts'
import { exchangeKeys } from '../src/protocol/v4/key-exchange.ts'
import { generateSigningKeyPairs, parsePublicKeys } from '../src/protocol/v4/key-pairs.ts'
import { createInitialActivationSecret, deriveActivationKeys, importKdfKey } from '../src/protocol/v4/key-schedule.ts'
import { encapsulateSharedSecret, parseSharedSecretRequest } from '../src/protocol/v4/shared-secret.ts'
import { b64 } from '../phone/v3/crypto.ts'
import {
  deriveV4Keys,
  hs384Jwt,
  newKemPair,
  newSigningPair,
  onlineCode,
  PHONE_ALGORITHMS,
  sharedSecretRequest,
} from '../phone/v4/crypto.ts'
import { sealV4Envelope } from '../phone/v4/envelope.ts'
import { measure } from './measure.ts'

const root = randomBytes(32)
const stored = createInitialActivationSecret(root)
const phone = deriveV4Keys(root)
const keys = deriveActivationKeys(stored)
const whileChanging = deriveActivationKeys(replaceKnowledgeKey(stored, randomBytes(32)))
const ctrData = randomBytes(32)
const applicationSecret = b64(randomBytes(16))
const applicationKey = b64(randomBytes(16))
const signedData = v4.signedData({
  method: 'POST',
  resourceId: '/pa/auth/validate',
  nonce: randomBytes(16),
  body: randomBytes(200),
  applicationSecret,
})
const factors = 'POSSESSION_KNOWLEDGE'
const right = { version: '4.0', factors, code: onlineCode([phone.possession, phone.knowledge], ctrData, signedData) } as const
const wrong = { ...right, code: b64(randomBytes(64)) }

await measure('4.0: verify a right code of possession and knowledge', () =>
  v4.verifyAuthenticationCode(keys, ctrData, signedData, right, 20),
)
await measure('4.0: the same, keys derived first', () =>
  v4.verifyAuthenticationCode(deriveActivationKeys(stored), ctrData, signedData, right, 20),
)
await measure('4.0: verify a wrong code over 20 counter values', () =>
  v4.verifyAuthenticationCode(keys, ctrData, signedData, wrong, 20),
)
await measure('4.0: the same while the password changes', () =>
  v4.verifyAuthenticationCode(whileChanging, ctrData, signedData, wrong, 20),
)

const activationId = randomUUID()
const temporaryKey = { id: randomUUID(), secret: randomBytes(32) }
const context: EnvelopeContext = {
  version: '4.0',
  scope: 'ACTIVATION_SCOPE',
  sharedInfo1: '/pa/generic/activation',
  applicationKey,
  activationId,
}
const envelopeKeys = { applicationSecret, envelopeKey: importKdfKey(temporaryKey.secret), activationKeys: keys }
for (const length of [2, 4096]) {
  const sealing = {
    label: context.sharedInfo1,
    applicationKey,
    applicationSecret,
    activationId,
    keySharedInfo2: phone.sharedInfo2,
    temporaryKey,
  }
  const { envelope } = sealV4Envelope(sealing, randomBytes(length), systemPlatform.now())
  const openEnvelope = () => v4.parseEnvelope(context, envelope)?.open(envelopeKeys)
  const opened = openEnvelope()
  if (opened === undefined) throw new Error('the envelope does not open')
  const [plaintext, answer] = [randomBytes(length), { nonce: randomBytes(16), timestamp: systemPlatform.now() }]
  await measure(`4.0: open an encrypted request of ${length} bytes`, openEnvelope)
  await measure(`4.0: seal an answer of ${length} bytes`, () => opened.seal(plaintext, answer))
}

const status = {
  state: 'ACTIVE',
  currentVersion: 4,
  upgradeVersion: 4,
  isConfirmationPending: false,
  isUpgradePending: false,
  isAlgorithmUnsupported: false,
  isBiometryEnabled: true,
  counter: 7,
  ctrData,
  failedAttempts: 0,
  maxFailedAttempts: 5,
  lookAhead: 20,
} as const
const filler = randomBytes(4)
await measure('4.0: status blob', () => v4.composeStatusBlob(keys, status, filler))
const header = { version: '4.0', tokenId: activationId, nonce: randomBytes(16), timestamp: 1, digest: randomBytes(32) }
await measure('4.0: verify a token digest', () => v4.verifyTokenDigest(root, header))

for (const algorithm of PHONE_ALGORITHMS) {
  const pair = newKemPair(algorithm)
  const request = parseSharedSecretRequest(sharedSecretRequest(algorithm, pair))
  const device = newSigningPair(algorithm)
  const deviceKeys = parsePublicKeys(algorithm, { ecdsa: b64(device.ecPublic), ...(device.spki && { mldsa: b64(device.spki) }) })
  const claims = { applicationKey, challenge: 'c', sharedSecretRequest: sharedSecretRequest(algorithm, pair) }
  const asked = v4.parseTemporaryKeyRequest(hs384Jwt(claims, root))
  const { privateKeys } = await generateSigningKeyPairs(algorithm)
  if (!request || !deviceKeys || !asked) throw new Error('the keys are not valid')
  const salt = randomBytes(32)
  const terms = { temporaryKeyId: activationId, issuedAt: 0, expiresAt: 1, salt }
  await measure(`4.0: agree on a shared secret, ${algorithm}`, () => encapsulateSharedSecret(request, salt), 20)
  await measure(`4.0: issue a temporary key, ${algorithm}`, () => asked.issue(terms, privateKeys), 20)
  await measure(`4.0: exchange the keys of an activation, ${algorithm}`, () => exchangeKeys(request, deviceKeys, 'id', salt), 20)
}
