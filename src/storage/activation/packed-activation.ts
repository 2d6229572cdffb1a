// An activation as one text, for a memory of many: it takes a third of what the row does as an object, most of that for its buffers
// (docs/decisions/0014-memory.md).
import { toBase64 } from '../../lib/base64.ts'
import type { ActivationRow } from './find.ts'

/** JSON of an array: bytes are Base64 in it, times milliseconds. What is sealed stays sealed. */
export type PackedActivation = string & { readonly [PACKED]: true }
declare const PACKED: unique symbol

/** Packs an activation as it is, not as an upgrade will make it. */
export const packActivation = (activation: Omit<ActivationRow, 'isUpgradePending'>): PackedActivation =>
  JSON.stringify(toCells(activation)) as PackedActivation

/** The activation that was packed. */
export function unpackActivation(packed: PackedActivation): ActivationRow {
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
    serverPrivateKey,
    masterSecret,
    ctrData,
    counter,
    failedAttempts,
    maxFailedAttempts,
    blocksInRow,
    highestVersion,
    name,
    rowVersion,
    expiresAt,
  ] = JSON.parse(packed) as ReturnType<typeof toCells>
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
    serverPrivateKey: toBytes(serverPrivateKey),
    masterSecret: masterSecret === null ? null : toBytes(masterSecret),
    ctrData: ctrData === null ? null : toBytes(ctrData),
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
    toBase64(row.serverPrivateKey),
    row.masterSecret && toBase64(row.masterSecret),
    row.ctrData && toBase64(row.ctrData),
    row.counter,
    row.failedAttempts,
    row.maxFailedAttempts,
    row.blocksInRow,
    row.highestVersion,
    row.name,
    row.rowVersion,
    row.expiresAt.getTime(),
  ] as const

const toBytes = (text: string): Buffer => Buffer.from(text, 'base64')
