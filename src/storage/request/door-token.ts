// Reads a token for a door, and stores the use of a token header that may be used once (cloud §12.3).
import { type RawBuilder, sql } from 'kysely'
import { type ReadActivationRow, selectActivation } from '../activation/find.ts'
import type { UniqueValue } from '../activation/unique-values.ts'
import { heldActivation } from '../audit/audit.ts'
import { defineSharedTrip } from '../database/batched-statement.ts'
import { toList } from '../database/columns.ts'
import { isUniqueViolation, type Pool } from '../database/database.ts'
import { type DoorVerdict, insertVerdictsFrom, selectVerdict } from './door-verdicts.ts'
import {
  type ActivationColumns,
  both,
  defineLookup,
  type FoundToken,
  type FoundVerdict,
  type Part,
  toActivation,
  TOKEN,
  VERDICT,
} from './lookup.ts'

/** A token with its activation. The version of the app is unknown. */
export interface DoorToken extends FoundToken, FoundVerdict {
  readonly activation: ReadActivationRow | undefined
  /** The roles of the token's application. */
  readonly roles: readonly string[]
}

const BEARER: Part<object, ActivationColumns & { readonly roles: string | null }, Pick<DoorToken, 'activation' | 'roles'>> = {
  given: {},
  select: sql`${selectActivation(sql`i.at`)}, p.roles`,
  join: sql`left join activation a on a.activation_id = k."tokenActivationId"
  left join application p on p.application_id = a.application_id`,
  read: (row) => ({ activation: toActivation(row), roles: toList(row.roles ?? '') }),
}

/** Reads the rows in one statement, which concurrent calls share. */
export const findDoorToken = defineSharedTrip(defineLookup(both(both(TOKEN, BEARER), VERDICT)))

/** Uses up the value of a token header and keeps the verdict. False, with neither stored, when the value was used or the key has a verdict. */
export async function useTokenAtDoor(db: Pool, activationId: string, use: UniqueValue, verdict: DoorVerdict): Promise<boolean> {
  try {
    await composeUse(activationId, use, verdict).execute(db)
    return true
  } catch (error) {
    if (isUniqueViolation(error)) return false
    throw error
  }
}

const composeUse = (activationId: string, use: UniqueValue, verdict: DoorVerdict): RawBuilder<unknown> => sql`
    with used as (
      insert into unique_value (value_hash, expires_at) values (${use.valueHash}, ${use.expiresAt})
    ), judged as (
      ${selectVerdict(activationId, verdict)} from ${heldActivation(activationId)}
    )
    ${insertVerdictsFrom(sql`judged`)}`
