// An activation as bytes, for a memory of many: it takes a seventh of what the row does as an object (docs/decisions/0014-memory.md).
import { concat, fromUtf8, utf8 } from '../../lib/bytes.ts'
import type { ActivationRow } from './find.ts'

/**
 * Packs an activation as it is, not as an upgrade will make it: the lengths of four parts, 4 bytes each, and the parts. They are JSON of an
 * array, with times as milliseconds, and the three sealed values, still sealed; one that is null is empty.
 */
export function packActivation(activation: Omit<ActivationRow, 'isUpgradePending'>): Uint8Array {
  const { serverPrivateKey, masterSecret, ctrData } = activation
  const parts = [utf8(JSON.stringify(toCells(activation))), serverPrivateKey, masterSecret ?? EMPTY, ctrData ?? EMPTY]
  const lengths = Buffer.allocUnsafe(HEADER_BYTES)
  for (const [i, { length }] of parts.entries()) lengths.writeUInt32BE(length, i * LENGTH_BYTES)
  return concat(lengths, ...parts)
}

/** The activation that was packed; what is sealed in it shares memory with `packed`. */
export function unpackActivation(packed: Buffer): ActivationRow {
  let end = HEADER_BYTES
  const part = (i: number): Buffer => packed.subarray(end, (end += packed.readUInt32BE(i * LENGTH_BYTES)))
  const [json, serverPrivateKey, masterSecret, ctrData] = [part(0), part(1), part(2), part(3)]
  const [
    activationId,
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
    serverPrivateKey,
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
    row.activationId,
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

const EMPTY = new Uint8Array(0)
const LENGTH_BYTES = 4
const HEADER_BYTES = 4 * LENGTH_BYTES
