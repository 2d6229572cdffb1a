// Composes the status blob of an activation, authenticated with KMAC-256 (v4 §9.4).
import { concat } from '../../lib/bytes.ts'
import type { ActivationKeys } from './key-schedule.ts'

/** Fields of the status blob. */
interface ActivationStatus {
  readonly state: 'CREATED' | 'PENDING_COMMIT' | 'ACTIVE' | 'BLOCKED' | 'REMOVED'
  /** 4, or 3 while an upgrade waits for its confirmation. */
  readonly currentVersion: number
  readonly upgradeVersion: number
  readonly isConfirmationPending: boolean
  readonly isUpgradePending: boolean
  /** Whether the algorithm of the activation is no longer allowed. */
  readonly isAlgorithmUnsupported: boolean
  readonly isBiometryEnabled: boolean
  readonly counter: number
  /** 32 bytes. */
  readonly ctrData: Uint8Array
  readonly failedAttempts: number
  readonly maxFailedAttempts: number
  readonly lookAhead: number
}

/** Blob and MAC, 80 bytes. `filler`: 4 random bytes or more, of which the first four are used. */
export function composeStatusBlob(
  keys: Pick<ActivationKeys, 'keyMacCtrData' | 'keyMacStatus'>,
  status: ActivationStatus,
  filler: Uint8Array,
): Uint8Array {
  const statusData = layoutStatusBlob(keys, status, filler)
  return concat(statusData, keys.keyMacStatus().compute(statusData))
}

/** statusData, 48 bytes. */
export function layoutStatusBlob(
  keys: Pick<ActivationKeys, 'keyMacCtrData'>,
  status: ActivationStatus,
  filler: Uint8Array,
): Uint8Array {
  const head = [STATE_BYTES[status.state], status.currentVersion, status.upgradeVersion, composeFlags(status)]
  const limits = [status.failedAttempts, status.maxFailedAttempts, status.lookAhead].map((count) => Math.min(count, 0xff))
  const counts = Uint8Array.of(status.counter & 0xff, ...limits)
  return concat(MAGIC, Uint8Array.of(...head), filler.subarray(0, 4), counts, deriveCtrDataHash(keys, status.ctrData))
}

/** ctrDataHash, 32 bytes. */
export const deriveCtrDataHash = (keys: Pick<ActivationKeys, 'keyMacCtrData'>, ctrData: Uint8Array): Uint8Array =>
  keys.keyMacCtrData().compute(ctrData)

const composeFlags = (status: ActivationStatus): number =>
  [status.isConfirmationPending, status.isUpgradePending, status.isAlgorithmUnsupported, status.isBiometryEnabled].reduce(
    (bits, isSet, i) => (isSet ? bits | (1 << i) : bits),
    0,
  )

const MAGIC = Buffer.from('dec0ded4', 'hex')
const STATE_BYTES: Readonly<Record<ActivationStatus['state'], number>> = {
  CREATED: 1,
  PENDING_COMMIT: 2,
  ACTIVE: 3,
  BLOCKED: 4,
  REMOVED: 5,
}
