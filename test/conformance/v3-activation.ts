// Vectors of activation codes, fingerprints and the status blob (v3 §4, §9).
import { expect } from 'vitest'
import { crc16 } from '../../src/crypto/hash.ts'
import { publicKeyFromPoint, publicKeyOf } from '../../src/crypto/key.ts'
import { concat, equalPublic } from '../../src/lib/bytes.ts'
import {
  composeActivationQrText,
  createActivationCode,
  parseActivationCode,
  signActivationCode,
} from '../../src/domain/activation/code.ts'
import { minimalX } from '../../src/protocol/wire/decimal.ts'
import { activationFingerprint, fingerprintOf } from '../../src/protocol/v3/fingerprint.ts'
import { advanceCounter, kdf } from '../../src/protocol/v3/key-schedule.ts'
import {
  deriveCtrDataHash,
  deriveStatusBlobIv,
  encryptStatusBlob,
  layoutStatusBlob,
  layoutStatusBlobWithoutCounter,
} from '../../src/protocol/v3/status-blob.ts'
import { bytes, type Handler, has, integer, type Members, optional, text } from './vector.ts'
import { aesCbcDecryptUnpadded, privateKeyFromScalar, verifyActivationCode } from '../helpers/crypto.ts'

const activationCode: Handler = ({ input }) => {
  if (!has(input, 'random')) return { valid: parseActivationCode(text(input, 'code')) !== undefined }
  const random = bytes(input, 'random')
  const code = createActivationCode(random)
  expect(parseActivationCode(code)).toEqual(random)
  return { code, crc16: crc16(random).toString(16).padStart(4, '0') }
}

const activationCodeSignature: Handler = ({ input, output }) => {
  const code = text(input, 'code')
  const signature = text(input, 'signature')
  const publicKey = publicKeyFromPoint('P-256', bytes(input, 'masterPublicKey'))
  if (!publicKey) throw new Error('masterPublicKey is not valid')
  const valid = verifyActivationCode(code, signature, publicKey)
  if (has(input, 'qr') && output['valid'] === true) expect(composeActivationQrText(code, signature)).toBe(text(input, 'qr'))
  const privateKey = has(input, 'masterPrivateKey') ? privateKeyFromScalar('P-256', bytes(input, 'masterPrivateKey')) : undefined
  if (privateKey && equalPublic(publicKeyOf(privateKey), bytes(input, 'masterPublicKey'))) {
    expect(verifyActivationCode(code, signActivationCode(code, privateKey), publicKey)).toBe(true)
  }
  return { valid }
}

const fingerprint: Handler = ({ input }) => ({
  deviceX: minimalX(bytes(input, 'devicePublicKey'), 32),
  serverX: minimalX(bytes(input, 'serverPublicKey'), 32),
  fingerprint: activationFingerprint(
    bytes(input, 'devicePublicKey'),
    text(input, 'activationId'),
    bytes(input, 'serverPublicKey'),
  ),
})

const statusBlob: Handler = ({ input }) => {
  expect(integer(input, 'currentVersion')).toBe(3)
  const keys = statusKeys(input)
  const isOldForm = !has(input, 'challenge')
  const ctrData = optional(bytes, input, 'ctrData') ?? new Uint8Array(16)
  const status = {
    state: readState(integer(input, 'activationStatus')),
    counter: optional(integer, input, 'ctr') ?? 0,
    ctrData,
    failedAttempts: integer(input, 'failedAttempts'),
    maxFailedAttempts: integer(input, 'maxFailedAttempts'),
    lookAhead: integer(input, 'ctrLookAhead'),
    upgradeVersion: integer(input, 'upgradeVersion'),
  }
  // In the 3.0 form the members of the counter are random: they are given, and stand in the filler at their place.
  const filler = concat(
    new Uint8Array(7),
    bytes(input, 'reserved'),
    Buffer.of(isOldForm ? integer(input, 'ctrByte') : 0, 0, 0, isOldForm ? integer(input, 'ctrLookAhead') : 0),
    isOldForm ? bytes(input, 'ctrDataHash') : new Uint8Array(16),
  )
  if (isOldForm) {
    return {
      statusBlob: layoutStatusBlobWithoutCounter(status, filler),
      iv: new Uint8Array(16),
      encryptedStatusBlob: encryptStatusBlob(keys, status, undefined, filler),
    }
  }
  if (has(input, 'ctrDataHash')) {
    expect(deriveCtrDataHash(keys.keyTransportCtr, ctrData)).toEqual(bytes(input, 'ctrDataHash'))
  }
  const iv = { challenge: bytes(input, 'challenge'), nonce: bytes(input, 'nonce') }
  return {
    statusBlob: layoutStatusBlob(keys.keyTransportCtr, status, filler),
    iv: deriveStatusBlobIv(keys.keyTransportIv, iv),
    encryptedStatusBlob: encryptStatusBlob(keys, status, iv, filler),
  }
}

const publicStatusBlob: Handler = ({ input }) => {
  const keys = statusKeys(input)
  const iv = deriveStatusBlobIv(keys.keyTransportIv, { challenge: bytes(input, 'challenge'), nonce: bytes(input, 'nonce') })
  const blob = aesCbcDecryptUnpadded(keys.keyTransport, iv, bytes(input, 'encryptedStatusBlob'))
  expect(blob.subarray(0, 4)).toEqual(Buffer.from('dec0ded1', 'hex'))
  const ctrDataHash = blob.subarray(16)
  return {
    activationStatus: blob[4],
    currentVersion: blob[5],
    upgradeVersion: blob[6],
    ctrByte: blob[12],
    failedAttempts: blob[13],
    maxFailedAttempts: blob[14],
    ctrLookAhead: blob[15],
    ctrDataHash,
    counterDistance: findDistance(keys.keyTransportCtr, bytes(input, 'ctrData'), ctrDataHash),
  }
}

function findDistance(keyTransportCtr: Uint8Array, ctrData: Uint8Array, hash: Uint8Array): number | undefined {
  let counter = ctrData
  for (let distance = 0; distance < 256; distance += 1) {
    if (equalPublic(deriveCtrDataHash(keyTransportCtr, counter), hash)) return distance
    counter = advanceCounter(counter)
  }
  return undefined
}

function statusKeys(input: Members) {
  const keyTransport = bytes(input, 'transportKey')
  return { keyTransport, keyTransportIv: kdf(keyTransport, 3000), keyTransportCtr: kdf(keyTransport, 4000) }
}

function readState(value: number) {
  const state = (['CREATED', 'PENDING_COMMIT', 'ACTIVE', 'BLOCKED', 'REMOVED'] as const)[value - 1]
  if (!state) throw new RangeError(`no state ${value}`)
  return state
}

export const activationFamilies: Readonly<Record<string, Handler>> = {
  'activation-code': activationCode,
  'public-activation-code': activationCode,
  'activation-code-signature': activationCodeSignature,
  'public-activation-code-signature': activationCodeSignature,
  'activation-fingerprint': fingerprint,
  'public-activation-fingerprint': fingerprint,
  'public-activation-fingerprint-v2': ({ input }) => {
    const deviceX = minimalX(bytes(input, 'devicePublicKey'), 32)
    return { deviceX, fingerprint: fingerprintOf(deviceX) }
  },
  'ctr-data-hash': ({ input }) => {
    const transportCtrKey = kdf(bytes(input, 'transportKey'), 4000)
    return { transportCtrKey, ctrDataHash: deriveCtrDataHash(transportCtrKey, bytes(input, 'ctrData')) }
  },
  'status-blob': statusBlob,
  'public-status-blob': publicStatusBlob,
  'public-status-blob-iv': ({ input }) => {
    const { keyTransportIv } = statusKeys(input)
    const iv = deriveStatusBlobIv(keyTransportIv, { challenge: bytes(input, 'challenge'), nonce: bytes(input, 'nonce') })
    return { iv }
  },
}
