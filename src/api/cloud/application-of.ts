// Finds the application in which a caller of the cloud API acts, which is that of its credential (cloud §2), and finds registrations in it.
import { type Owner, wrongState } from '../../domain/activation/registration.ts'
import type { Caller } from '../../domain/credential/credential.ts'
import { type ErrorCode, PawlError } from '../../lib/errors.ts'
import type { Platform } from '../../lib/platform.ts'
import type { OwnerNames } from '../../storage/activation/find.ts'
import { findRegistrationDetail, type RegistrationDetailRow } from '../../storage/activation/search.ts'
import { findDefaultApplicationId, listApplications } from '../../storage/application/applications.ts'
import type { Db } from '../../storage/database/database.ts'
import type { ActivationState } from '../../storage/database/schema.ts'
import type { CloudParts } from './parts.ts'

/** The owner of registrations: the application of the credential, and a user. Throws like applicationOf. */
export const ownerOf = async (call: { parts: CloudParts; caller: Caller }, userId: string): Promise<Owner> => ({
  applicationId: await applicationOf(call),
  userId,
})

/**
 * The owner as ownerOf gives it, but without a read: the application is null for the default application, which the next statement looks up. The user
 * is null if the call names none. Throws like applicationOf.
 */
export async function namedOwnerOf<User extends OwnerNames['userId'] | null>(
  call: { parts: CloudParts; caller: Caller },
  userId: User,
): Promise<Pick<OwnerNames, 'applicationId'> & { readonly userId: User }> {
  const { caller, parts } = call
  if (caller.role === 'admin' ? !parts.settings.adminActsOnDefaultApplication : !caller.applicationId)
    throw await refuseWithoutApplication(call)
  return { applicationId: caller.applicationId, userId }
}

/** The application of the credential. A credential without one has no access; the contract calls this REGISTRATION_NOT_FOUND (cloud §2). */
export async function applicationOf(call: { parts: CloudParts; caller: Caller }): Promise<string> {
  const applicationId = await findApplicationOf(call)
  if (!applicationId) throw await refuseWithoutApplication(call)
  return applicationId
}

/** A refusal. Answer and log say whether there is no application at all, or none for this credential. */
export async function refuseWithoutApplication(
  { parts, caller }: { parts: CloudParts; caller: Caller },
  code: ErrorCode = 'REGISTRATION_NOT_FOUND',
): Promise<PawlError> {
  const [any] = await listApplications(parts.db)
  const outside = caller.role === 'admin' ? ADMIN_OUTSIDE : CREDENTIAL_OUTSIDE
  const hint = any === undefined ? NO_APPLICATION_YET : caller.applicationId === null ? outside : APPLICATION_UNKNOWN
  parts.events.applicationMissing({ username: caller.username, reason: hint })
  return new PawlError(code, { detail: hint, violations: [{ fieldName: 'application', hint }] })
}

const NO_APPLICATION_YET = 'there is no application yet: POST /admin/application {"id":"my-app"} creates one'
// An access token may name any application.
const APPLICATION_UNKNOWN = 'there is no application of the name that the token has: GET /admin/applications has the names'
const ADMIN_OUTSIDE =
  'administrators act on no application (PAWL_ADMIN_ACTS_ON_DEFAULT_APPLICATION): POST /admin/users {"username":"bank",' +
  '"role":"integration","application":"my-app"} creates a credential that does'
const CREDENTIAL_OUTSIDE = 'this credential belongs to no application: POST /admin/users with "application" creates one that does'

/** The application of the credential, if it has one. */
export async function findApplicationOf({ parts, caller }: { parts: CloudParts; caller: Caller }) {
  if (caller.role !== 'admin') return caller.applicationId
  if (!parts.settings.adminActsOnDefaultApplication) return undefined
  return caller.applicationId ?? findDefaultApplicationId(parts.db)
}

/** The part of a call that is needed to find a registration. */
interface OwnCall {
  readonly parts: { readonly db: Db; readonly platform: Platform }
  /** The application of the credential. */
  readonly applicationId: string
}

/** Reads a registration in its current state. Throws REGISTRATION_NOT_FOUND when the application has none of this id. */
export async function findOwn(
  { parts, applicationId }: OwnCall,
  activationId: string,
  db: Db = parts.db,
): Promise<RegistrationDetailRow> {
  const row = await findRegistrationDetail(db, applicationId, activationId, new Date(parts.platform.now()))
  if (row === undefined) throw new PawlError('REGISTRATION_NOT_FOUND')
  return row
}

/** Reads a registration like findOwn. Throws REGISTRATION_CHANGE_REFUSED when it is removed. */
export async function findOwnLive(call: OwnCall, activationId: string): Promise<RegistrationDetailRow> {
  const row = await findOwn(call, activationId)
  if (row.state === 'REMOVED') refuseState(row.state)
  return row
}

/** Throws REGISTRATION_CHANGE_REFUSED for the state of a registration. */
export function refuseState(state: ActivationState): never {
  throw wrongState(state)
}
