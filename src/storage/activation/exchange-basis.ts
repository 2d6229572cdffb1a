// Reads what a key exchange needs to know, in one statement: the activation that waits for a code, and whether the envelopes around the
// code came before.
import { sql } from 'kysely'
import type { Db } from '../database/database.ts'
import { defineAskedRows } from '../database/bulk-statement.ts'
import type { CommitPhase } from '../database/schema.ts'
import { createSharedTrip } from '../database/batched-statement.ts'
import { PARENT_COLUMNS, type Read, selectColumns } from './columns.ts'
import { type ReadActivationRow, selectActivation } from './find.ts'

/** An activation before its key exchange. */
export interface WaitingActivationRow extends ReadActivationRow, Read<typeof PARENT_COLUMNS> {
  readonly serverPublicKey: Buffer
  readonly codeHash: Buffer
  readonly commitPhase: CommitPhase
  readonly otpHash: Buffer | null
}

/** What a request names, and the time at which the activation is seen. */
interface ExchangeNames {
  readonly applicationId: string
  /** 32 bytes; null where the request has no code. */
  readonly codeHash: Uint8Array | null
  /** What the envelopes use up; 32 bytes each. */
  readonly value: Uint8Array | null
  readonly secondValue: Uint8Array | null
  readonly at: Date
}

export interface ExchangeBasis {
  /** One of the values was used before. */
  readonly isUsed: boolean
  /** The activation that waits for the code in the application. */
  readonly activation: WaitingActivationRow | undefined
  /** sealed; what the bank stored about its user, null when that is nothing */
  readonly userClaims: Buffer | null
}

export type ExchangeBasisReader = (names: ExchangeNames) => Promise<ExchangeBasis>

/** A reader of one process: requests of one moment share a statement. */
export const createExchangeBasisReader = (db: Db): ExchangeBasisReader =>
  createSharedTrip(async (names) => {
    const { rows } = await db.executeQuery<BasisColumns>(FIND(names))
    return rows.map(toBasis)
  })

type BasisColumns = Pick<ExchangeBasis, 'isUsed' | 'userClaims'> & {
  readonly [K in keyof WaitingActivationRow]: WaitingActivationRow[K] | null
}

const toBasis = (row: BasisColumns): ExchangeBasis => ({
  isUsed: row.isUsed,
  activation: row.activationId === null ? undefined : (row as WaitingActivationRow),
  userClaims: row.userClaims,
})

const FIND = defineAskedRows<ExchangeNames>({
  applicationId: 'text',
  codeHash: 'bytea',
  value: 'bytea',
  secondValue: 'bytea',
  at: 'timestamptz',
}).define(
  (asked) => sql`
  select exists (select from unique_value u where u.value_hash in (i.value, i."secondValue")) as "isUsed", c.claims as "userClaims",
    ${selectActivation(sql`i.at`)}, a.server_public_key as "serverPublicKey", a.activation_code_hash as "codeHash", a.commit_phase as "commitPhase", a.otp_hash as "otpHash",
    ${selectColumns(PARENT_COLUMNS)}
  from ${asked} as i
  left join activation a on a.application_id = i."applicationId" and a.activation_code_hash = i."codeHash" and a.state = 'CREATED'
  left join user_claims c on c.application_id = a.application_id and c.user_id = a.user_id
  order by i.position`,
)
