// Makes and changes registrations by their ids, for users who may have several phones (cloud §17).
import { PawlError } from '../../lib/errors.ts'
import { holdChanges } from '../../log/events.ts'
import { setActivationFlags } from '../../storage/activation/flags.ts'
import { lockNewRegistrations } from '../../storage/activation/device-slot.ts'
import { inTransaction, type Pool } from '../../storage/database/database.ts'
import type { ActivationParts } from './created.ts'
import { createRegistration, type CreatedRegistration, listLive, type Owner, type RegistrationRules } from './registration.ts'

/** The request for one more registration. */
export interface FurtherRegistration extends Omit<RegistrationRules, 'isFurther'> {
  readonly flags: readonly string[]
  /** Whether it is refused while another one of the user waits for its phone or its commit. */
  readonly isOnlyOneIncomplete: boolean
  /** User name of the credential, for the audit row of the flags. */
  readonly username: string
}

/**
 * Creates a registration with flags, beside live ones if the application lets a user have several. Undefined when there is no such application.
 * Throws REGISTRATION_EXISTS as createRegistration does, and REGISTRATION_NOT_ALLOWED while another one is not complete.
 */
export async function createFurther(
  parts: ActivationParts & { readonly db: Pool },
  owner: Owner,
  { flags, isOnlyOneIncomplete, username, ...rules }: FurtherRegistration,
): Promise<CreatedRegistration | undefined> {
  const { events, tell } = holdChanges(parts.events)
  const created = await inTransaction(parts.db, async (tx) => {
    const within = { ...parts, events, db: tx }
    if (isOnlyOneIncomplete) {
      await lockNewRegistrations(tx, owner)
      const live = await listLive(within, owner)
      if (live.some(({ state }) => state === 'CREATED' || state === 'PENDING_COMMIT'))
        throw new PawlError('REGISTRATION_NOT_ALLOWED')
    }
    const registration = await createRegistration(within, owner, { ...rules, isFurther: true })
    if (registration !== undefined && flags.length > 0)
      await setActivationFlags(tx, registration.activationId, [...new Set(flags)], new Date(parts.platform.now()), username)
    return registration
  })
  tell()
  return created
}
