// Composes and encrypts the status blob of an activation (v3 §9.3, §9.4).
import { aesCbcEncryptUnpadded } from '../../crypto/aes.ts'
import { concat } from '../../lib/bytes.ts'
import { type ActivationKeys, type KeyTransportCtr, type KeyTransportIv, kdfInternal } from './key-schedule.ts'

/** Fields of the status blob (v3 §9.3). */
interface ActivationStatus {
  readonly state: 'CREATED' | 'PENDING_COMMIT' | 'ACTIVE' | 'BLOCKED' | 'REMOVED'
  readonly counter: number
  /** 16 bytes. */
  readonly ctrData: Uint8Array
  readonly failedAttempts: number
  readonly maxFailedAttempts: number
  readonly lookAhead: number
  readonly upgradeVersion: number
}

/** The client's challenge and the server's nonce, 16 bytes each. */
interface ChallengeAndNonce {
  readonly challenge: Uint8Array
  readonly nonce: Uint8Array
}

/**
 * The encrypted status blob, 32 bytes. With `challenge` and `nonce` (16 bytes each) it has the 3.1 form, without them the 3.0 form. `filler`: 32
 * random bytes, of which the form uses as many as it needs. There is no padding and no MAC, because the client checks the magic value.
 */
export function encryptStatusBlob(
  keys: Pick<ActivationKeys, 'keyTransport' | 'keyTransportIv' | 'keyTransportCtr'>,
  status: ActivationStatus,
  iv: ChallengeAndNonce | undefined,
  filler: Uint8Array,
): Uint8Array {
  const plain = iv ? layoutStatusBlob(keys.keyTransportCtr, status, filler) : layoutStatusBlobWithoutCounter(status, filler)
  return aesCbcEncryptUnpadded(keys.keyTransport, iv ? deriveStatusBlobIv(keys.keyTransportIv, iv) : ZERO_IV, plain)
}

/** The plain blob of 3.1 and newer, 32 bytes. */
export function layoutStatusBlob(keyTransportCtr: KeyTransportCtr, status: ActivationStatus, filler: Uint8Array): Uint8Array {
  const blob = layoutStatusBlobWithoutCounter(status, filler)
  blob[12] = status.counter & 0xff
  blob[15] = status.lookAhead
  blob.set(deriveCtrDataHash(keyTransportCtr, status.ctrData), 16)
  return blob
}

/**
 * The plain blob of 3.0, 32 bytes: counter, look-ahead and hash stay random. The zero IV it is encrypted with is fixed by
 * the protocol; two blobs of one state still differ from offset 7 on, and nothing in the first seven bytes is secret.
 */
export function layoutStatusBlobWithoutCounter(status: ActivationStatus, filler: Uint8Array): Uint8Array {
  const blob = Buffer.from(filler)
  blob.set(MAGIC, 0)
  blob[4] = STATE_BYTES[status.state]
  blob[5] = CURRENT_VERSION
  blob[6] = status.upgradeVersion
  blob[13] = Math.min(status.failedAttempts, 0xff)
  blob[14] = Math.min(status.maxFailedAttempts, 0xff)
  return blob
}

/** IV = KDF_INTERNAL(KEY_TRANSPORT_IV, challenge ‖ nonce), 16 bytes (v3 §9.4). */
export const deriveStatusBlobIv = (keyTransportIv: KeyTransportIv, { challenge, nonce }: ChallengeAndNonce): Uint8Array =>
  kdfInternal(keyTransportIv, concat(challenge, nonce))

/** CTR_DATA_HASH = KDF_INTERNAL(KEY_TRANSPORT_CTR, ctrData), 16 bytes (v3 §9.3). */
export const deriveCtrDataHash = (keyTransportCtr: KeyTransportCtr, ctrData: Uint8Array): Uint8Array =>
  kdfInternal(keyTransportCtr, ctrData)

const MAGIC = Buffer.from('dec0ded1', 'hex')
const CURRENT_VERSION = 3
const ZERO_IV = new Uint8Array(16)
const STATE_BYTES: Readonly<Record<ActivationStatus['state'], number>> = {
  CREATED: 1,
  PENDING_COMMIT: 2,
  ACTIVE: 3,
  BLOCKED: 4,
  REMOVED: 5,
}
