// Names what the rules of operations need from the process, and what offline approvals need of the phone's channel.
import type { ActivationRow, ReadActivationRow } from '../../storage/activation/find.ts'
import type { Pool, Tx } from '../../storage/database/database.ts'
import type { LockedOperation } from '../../storage/operation/operations.ts'
import type { Window } from '../limits/window.ts'
import type { DomainParts } from '../secrets/secrets.ts'
import type { TemplateReader } from '../template/reader.ts'
import type { ReadTemplateTexts } from '../template/texts.ts'

export interface OperationParts extends DomainParts {
  readonly db: Pool
  readonly templates: TemplateReader
  readonly templateTexts: ReadTemplateTexts
  readonly offline: OfflineChannel
  /** Passwords typed for one user. */
  readonly otpAttempts: Window
}

/** A one-time password to check against the counter of an activation. */
export interface OtpAttempt {
  readonly operationId: string
  readonly operationData: string
  /** Base64 of 16 bytes, as issued. */
  readonly nonce: string
  /** Two groups of eight digits. */
  readonly otp: string
  readonly isBiometryAllowed: boolean
  readonly totps: readonly string[] | undefined
}

/** A password that was judged. */
export interface OtpDecision {
  readonly isRight: boolean
  /** Those that made a right one. */
  readonly factors: string | undefined
  /**
   * Moves the counter or counts the failure, and locks the operation; undefined when the activation was changed since it was read: it is to
   * be judged again.
   */
  readonly store: (tx: Tx) => Promise<{ readonly operation: LockedOperation | undefined } | undefined>
}

/** The part of the phone's channel that offline approvals need. */
export interface OfflineChannel {
  /** The text of the QR code, signed for this activation; undefined while it has no keys. */
  readonly createPayload: (
    activation: ReadActivationRow,
    payload: { readonly data: string; readonly totp: string | undefined; readonly nonce: string },
  ) => string | undefined
  /** Judges a password by an ACTIVE activation; nothing is stored yet. Undefined when the activation must be read again. */
  readonly judgeOtp: (activation: ActivationRow, attempt: OtpAttempt) => Promise<OtpDecision | undefined>
}
