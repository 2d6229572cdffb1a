// Reads a token for a door, and stores the use of a token header that may be used once (cloud §12.3).
import { type RawBuilder, sql } from 'kysely'
import { type ReadActivationRow, selectActivation } from '../activation/find.ts'
import type { UniqueValue } from '../activation/unique-values.ts'
import { heldActivation } from '../audit/audit.ts'
import { defineSharedTrip } from '../database/batched-statement.ts'
import { defineAskedRows } from '../database/bulk-statement.ts'
import { toList } from '../database/columns.ts'
import { isUniqueViolation, type Pool } from '../database/database.ts'
import { joinToken, type TokenColumns, toToken } from '../token/tokens.ts'
import {
  type DoorVerdict,
  insertVerdictsFrom,
  joinKnownVerdict,
  KNOWN_VERDICT,
  type KnownVerdict,
  type KnownVerdictColumns,
  selectVerdict,
  toKnownVerdict,
} from './door-verdicts.ts'
import type { FoundToken } from './lookup.ts'

/** The id of the token, the value that its header uses up, and the hash of its Idempotency-Key. Both are 32 bytes, null without one. */
interface DoorTokenNames {
  readonly tokenId: string
  readonly at: Date
  readonly tokenValue: Uint8Array | null
  readonly verdictKey: Uint8Array | null
}

/** A token with its activation. The version of the app is unknown. */
export interface DoorToken extends FoundToken {
  readonly activation: ReadActivationRow | undefined
  /** The roles of the token's application. */
  readonly roles: readonly string[]
  readonly known: KnownVerdict | undefined
}

type Columns = TokenColumns &
  KnownVerdictColumns & { readonly [K in keyof ReadActivationRow]: ReadActivationRow[K] | null } & {
    readonly isTokenUsed: boolean
    readonly roles: string | null
  }

/** Reads the rows in one statement, which concurrent calls share. */
export const findDoorToken = defineSharedTrip(async (db, names: readonly DoorTokenNames[]): Promise<readonly DoorToken[]> => {
  const { rows } = await db.executeQuery<Columns>(FIND(names))
  return rows.map((row) => ({
    token: toToken(row),
    isTokenUsed: row.isTokenUsed,
    activation: row.activationId === null ? undefined : (row as ReadActivationRow),
    roles: toList(row.roles ?? ''),
    known: toKnownVerdict(row),
  }))
})

const FIND = defineAskedRows<DoorTokenNames>({
  tokenId: 'text',
  at: 'timestamptz',
  tokenValue: 'bytea',
  verdictKey: 'bytea',
}).define(
  (asked) => sql`
  select k.*, exists (select from unique_value u where u.value_hash = i."tokenValue") as "isTokenUsed", ${selectActivation(sql`i.at`)},
    p.roles, ${KNOWN_VERDICT}
  from ${asked} as i
  ${joinToken(sql`i."tokenId"`, sql`i.at`)}
  left join activation a on a.activation_id = k."tokenActivationId"
  left join application p on p.application_id = a.application_id
  ${joinKnownVerdict(sql`i."verdictKey"`)}
  order by i.position`,
)

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
