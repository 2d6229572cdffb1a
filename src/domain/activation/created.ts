// Makes the row of a new activation: state CREATED, a server key pair, a code, and no phone yet (v3 §8.2).
import type { KeyObject } from 'node:crypto'
import { generateKeyPair } from '../../crypto/key.ts'
import { utf8 } from '../../lib/bytes.ts'
import type { OwnedActivation } from '../../storage/activation/find.ts'
import { insertActivation, type NewActivationRow } from '../../storage/activation/insert.ts'
import type { Db, Pool, Tx } from '../../storage/database/database.ts'
import type { CommitPhase } from '../../storage/database/schema.ts'
import { createAuditEvent } from '../audit/audit.ts'
import { type DomainParts, hashActivationCode, places, sealPrivateKey } from '../secrets/secrets.ts'
import type { ActivationOtps } from './otp.ts'

export interface ActivationParts extends DomainParts {
  readonly db: Pool | Tx
  readonly installationKeys: { readonly codeLookup: KeyObject }
  readonly activationOtps: ActivationOtps
  readonly settings: { readonly activationValiditySeconds: number; readonly maxFailedAttempts: number }
}

/** Values for one activation that replace those of the settings. */
export interface RegistrationLimits {
  readonly maxFailedAttempts?: number | undefined
  /** The activation may wait for its phone and its commit until this time. */
  readonly expiresAt?: Date | undefined
  /** Flags that the activation has from its creation. */
  readonly flags?: readonly string[] | undefined
}

/** The activation of another application that asked for the code of this one (mobile-token §9). */
export interface Parent {
  readonly activationId: string
  /** Whether the parent is removed when this one becomes ACTIVE. */
  readonly isReplaced: boolean
  readonly initialFlags: readonly string[]
}

interface NewActivation extends RegistrationLimits {
  readonly applicationId: string
  readonly userId: string
  readonly code: string
  /** The text of the QR code; null when nobody may see the code. */
  readonly qrText: string | null
  readonly commitPhase: CommitPhase
  readonly otpHash: Uint8Array | null
  readonly parent?: Parent | undefined
  /** User name of the credential that asked; absent when a phone did. */
  readonly verifiedBy?: string | undefined
}

/** The columns of an activation that the key exchange needs. */
export interface CreatedActivation extends OwnedActivation {
  /** The hash of the activation code, under the key `codeLookup`. */
  readonly codeHash: Uint8Array
  readonly rowVersion: number
  readonly serverPublicKey: Uint8Array
  /** sealed */
  readonly serverPrivateKey: Uint8Array
}

/** A CREATED activation that is ready to be stored. */
interface PreparedActivation {
  readonly created: CreatedActivation
  /** Throws a unique violation when the code exists, or the user has a live activation. */
  readonly insert: (db: Db) => Promise<void>
}

/** Makes id, server keys and sealed values of a new activation. Stores nothing. */
export function prepareActivation(
  { platform, recordKeys, settings, installationKeys }: Omit<ActivationParts, 'db' | 'events' | 'activationOtps'>,
  {
    applicationId,
    userId,
    code,
    qrText,
    commitPhase,
    otpHash,
    parent,
    maxFailedAttempts,
    expiresAt,
    flags = [],
    verifiedBy,
  }: NewActivation,
): PreparedActivation {
  const activationId = platform.uuid()
  const now = platform.now()
  const pair = generateKeyPair('P-256')
  const codeHash = hashActivationCode(installationKeys.codeLookup, code)
  const owned = { activationId, applicationId, userId, codeHash }
  const serverPrivateKey = sealPrivateKey(recordKeys, places.waitingServerKey(owned), pair)
  const row: NewActivationRow = {
    activationId,
    applicationId,
    userId,
    activationCodeHash: codeHash,
    activationQrCode: qrText === null ? null : recordKeys.seal(places.activationQrCode(owned), utf8(qrText)),
    serverPublicKey: pair.publicKey,
    serverPrivateKey,
    maxFailedAttempts: maxFailedAttempts ?? settings.maxFailedAttempts,
    createdAt: new Date(now),
    expiresAt: expiresAt ?? new Date(now + settings.activationValiditySeconds * 1000),
    commitPhase,
    otpHash,
    flags: [...new Set([...flags, ...(parent?.initialFlags ?? [])])].join(','),
    parentActivationId: parent?.activationId ?? null,
    replacesParent: parent?.isReplaced ?? false,
  }
  const noted = {
    ...(row.flags !== '' && { flags: row.flags }),
    ...(parent && { parentActivationId: parent.activationId, type: parent.isReplaced ? 'MOVE' : 'SPAWN' }),
  }
  const audit = { ...createAuditEvent({ applicationId, userId, activationId }, 'registration_created', noted, now), verifiedBy }
  return {
    created: {
      ...owned,
      rowVersion: FIRST_ROW_VERSION,
      serverPublicKey: pair.publicKey,
      serverPrivateKey,
    },
    insert: (db) => insertActivation(db, { row, audit }),
  }
}

const FIRST_ROW_VERSION = 1
