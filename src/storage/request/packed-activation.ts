// An activation as bytes, for a memory of many: it takes less than half of what the row does as an object (docs/decisions/0014-memory.md).
import { fromUtf8, utf8 } from '../../lib/bytes.ts'
import { concatWithSizes, splitBySizes } from '../../lib/sizes.ts'
import type { ActivationRow } from '../activation/find.ts'

/**
 * Packs an activation but for its identifier and the server's private key, as it is and not as an upgrade will make it: three parts with their
 * sizes. They are JSON of an array, with times as milliseconds, and two sealed values, still sealed; one that is null is empty.
 */
export function packActivation(activation: Omit<ActivationRow, 'isUpgradePending'>): Uint8Array {
  const { masterSecret, ctrData } = activation
  return concatWithSizes(utf8(JSON.stringify(toCells(activation))), masterSecret ?? undefined, ctrData ?? undefined)
}

/** The activation of this identifier that was packed; what is sealed in it shares memory with `packed`. */
export function unpackActivation(activationId: string, packed: Buffer): ActivationRow {
  const [json, masterSecret, ctrData] = splitBySizes(packed) as [Buffer, Buffer, Buffer]
  const [
    applicationId,
    userId,
    state,
    blockExpiresAt,
    isBlockOver,
    protocolVersion,
    algorithm,
    isConfirmationPending,
    isBiometryEnabled,
    counter,
    failedAttempts,
    maxFailedAttempts,
    blocksInRow,
    highestVersion,
    name,
    rowVersion,
    expiresAt,
  ] = JSON.parse(fromUtf8(json)) as ReturnType<typeof toCells>
  return {
    activationId,
    applicationId,
    userId,
    state,
    blockExpiresAt: blockExpiresAt === null ? null : new Date(blockExpiresAt),
    isBlockOver,
    protocolVersion,
    algorithm,
    isConfirmationPending,
    isBiometryEnabled,
    masterSecret: orNull(masterSecret),
    ctrData: orNull(ctrData),
    counter,
    failedAttempts,
    maxFailedAttempts,
    blocksInRow,
    highestVersion,
    name,
    rowVersion,
    expiresAt: new Date(expiresAt),
  }
}

const toCells = (row: Omit<ActivationRow, 'isUpgradePending'>) =>
  [
    row.applicationId,
    row.userId,
    row.state,
    row.blockExpiresAt?.getTime() ?? null,
    row.isBlockOver,
    row.protocolVersion,
    row.algorithm,
    row.isConfirmationPending,
    row.isBiometryEnabled,
    row.counter,
    row.failedAttempts,
    row.maxFailedAttempts,
    row.blocksInRow,
    row.highestVersion,
    row.name,
    row.rowVersion,
    row.expiresAt.getTime(),
  ] as const

// What is sealed is never empty.
const orNull = (bytes: Buffer): Buffer | null => (bytes.length === 0 ? null : bytes)
