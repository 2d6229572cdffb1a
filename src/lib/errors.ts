// Declares the closed set of failures inside pawl. The error-renderer.ts of each API maps its codes to their wire form.

/** Codes that every API may answer: the request is wrong, the path unknown, the caller too fast; or the failure is ours. */
export type SharedCode = 'REQUEST_INVALID' | 'PATH_UNKNOWN' | 'TOO_MANY_REQUESTS' | 'UNAVAILABLE' | 'INTERNAL'

/** Refusals for the state of an operation. */
type OperationFailure =
  | 'OPERATION_NOT_FOUND'
  | 'OPERATION_FINISHED'
  | 'OPERATION_FAILED'
  | 'OPERATION_CANCELED'
  | 'OPERATION_EXPIRED'
export type DeviceCode =
  | SharedCode
  | 'AUTHENTICATION_CODE_INVALID'
  | 'AUTHENTICATION_REQUEST_INVALID'
  | 'AUTHENTICATION_HEADER_MISSING'
  | 'TOKEN_FAILED'
  | 'ENCRYPTION_FAILED'
  | 'ACTIVATION_FAILED'
  | 'TEMPORARY_KEY_FAILED'
  | 'VAULT_FAILED'
  | 'PASSWORD_CHANGE_FAILED'
  | 'BIOMETRY_FAILED'
  | 'UPGRADE_FAILED'
  | 'STATUS_FAILED'
  | 'CONFIGURATION_FAILED'
  | 'USER_INFO_FAILED'

export type MobileTokenCode =
  | SharedCode
  | OperationFailure
  | 'AUTHENTICATION_CODE_INVALID'
  | 'APPROVAL_REFUSED'
  | 'ACTIVATION_FLAG_MISSING'
  | 'PUSH_REGISTRATION_REFUSED'
  | 'INBOX_REFUSED'
  | 'ENCRYPTION_FAILED'
  | 'ACTIVATION_CODE_FAILED'
  | 'CONFIGURATION_FAILED'

export type UtilityCode = SharedCode | 'CHALLENGE_INSUFFICIENT' | 'PINNING_APPLICATION_UNKNOWN'

export type CloudCode =
  | SharedCode
  | OperationFailure
  | 'REGISTRATION_EXISTS'
  | 'REGISTRATION_NOT_FOUND'
  | 'REGISTRATION_CHANGE_REFUSED'
  | 'REGISTRATION_NOT_ALLOWED'
  | 'ADMINISTRATION_REFUSED'
  | 'CREDENTIALS_INVALID'
  | 'ROLE_FORBIDDEN'
  | 'OTP_INVALID'
  | 'AUDIT_REFUSED'

/** The reason why a request was not served. A new code affects only the API that answers it. */
export type ErrorCode = DeviceCode | MobileTokenCode | UtilityCode | CloudCode

/** One member of a request that breaks the contract. It is part of the answer if the contract has a member for it. */
export interface Violation {
  /** The name of the member, header or parameter, with dots between levels. If a thing is missing or exists already, the kind of the thing. */
  readonly fieldName: string
  /** The value as sent, cut at 128 characters. Absent for secrets. */
  readonly invalidValue?: string
  readonly hint: string
}

export interface ErrorDetails {
  /** For the log only, never for the wire. */
  readonly detail?: string
  readonly violations?: readonly Violation[]
  readonly retryAfterSeconds?: number
  readonly cause?: unknown
}

/** The error of a request that is refused or fails. `detail` and `cause` go to the log; the renderer of the API decides the wire form. */
export class PawlError extends Error {
  readonly code: ErrorCode
  readonly violations: readonly Violation[]
  readonly retryAfterSeconds: number | undefined

  constructor(code: ErrorCode, { detail, violations = [], retryAfterSeconds, cause }: ErrorDetails = {}) {
    super(detail ?? code, { cause })
    this.name = 'PawlError'
    this.code = code
    // A body may be wrong in thousands of places: the answer does not grow with it.
    this.violations = violations.slice(0, VIOLATIONS_MAX)
    this.retryAfterSeconds = retryAfterSeconds
  }
}

const VIOLATIONS_MAX = 64

/** A refusal. `hint` says why, in the log and to the caller of the cloud API. `value` is that of the member; absent for secrets. */
export const refused = (code: ErrorCode, fieldName: string, hint: string, value?: string): PawlError =>
  new PawlError(code, {
    detail: `${fieldName} ${hint}`,
    violations: [{ fieldName, ...(value !== undefined && { invalidValue: value.slice(0, 128) }), hint }],
  })

/** A refusal for a fault that no schema describes. */
export const requestRefused = (fieldName: string, hint: string, value?: string): PawlError =>
  refused('REQUEST_INVALID', fieldName, hint, value)

/** A refusal of a change by an administrator. `hint` says why, in the log and to the caller. */
export const administrationRefused = (fieldName: string, hint: string): PawlError =>
  new PawlError('ADMINISTRATION_REFUSED', { detail: hint, violations: [{ fieldName, hint }] })

/** The kinds of things that administrators name in requests. */
export type Kind =
  | 'activation'
  | 'application'
  | 'certificate'
  | 'claim'
  | 'configuration item'
  | 'delivery'
  | 'domain'
  | 'provider'
  | 'template'
  | 'text'
  | 'user'
  | 'version'
  | 'version rule'
  | 'webhook'

/** The refusal of a request for a thing that does not exist. `name` follows the kind in the sentence that the caller reads. */
export const notFound = (kind: Kind, name: string): PawlError =>
  administrationRefused(toFieldName(kind), `there is no ${kind} ${name}`)

export const existsAlready = (kind: Kind, name: string): PawlError =>
  administrationRefused(toFieldName(kind), `${kind} ${name} exists already`)

/** The kind as one word: `configurationItem`. */
const toFieldName = (kind: Kind): string => kind.replace(/ (.)/, (_, letter: string) => letter.toUpperCase())

/** Says of a file what the error means that the system gave for reading it: `does not exist`. */
export function sayUnreadable(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
  return UNREADABLE[code] ?? `cannot be read (${code})`
}

const UNREADABLE: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
  ENOTDIR: 'does not exist: a part of its path is no folder',
  EISDIR: 'is a folder',
  EACCES: 'may not be read by this account',
  EPERM: 'may not be read by this account',
  // A lenient decoder would replace bytes, and so change a password without notice.
  ERR_ENCODING_INVALID_ENCODED_DATA: 'is no UTF-8 text',
}

/** What to do when the process, or the machine, has too many files open. */
export const MORE_FILES = 'let the process open more files: ulimit -n, LimitNOFILE of a systemd unit'

/** The reason why the process cannot start. The message is one line for the operator. */
export class StartError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'StartError'
  }
}
