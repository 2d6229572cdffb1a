// Reads an activation for activation/status (v3 §9): one read, which those that ask at the same time share.
import { sql } from 'kysely'
import { APPLICATIONS_STATE } from '../application/applications.ts'
import type { Db } from '../database/database.ts'
import { defineAskedRows } from '../database/bulk-statement.ts'
import { createSharedTrip } from '../database/batched-statement.ts'
import { selectStatus, type StatusRow } from './find.ts'

interface StatusRead {
  /** Undefined when there is none of this id. */
  readonly activation: StatusRow | undefined
  /** As APPLICATIONS_STATE. */
  readonly applicationsState: string
}

interface StatusNames {
  readonly activationId: string
  readonly at: Date
}

/** Reads an activation, as it is seen at a time, and the state of the applications. */
export type StatusReader = (names: StatusNames) => Promise<StatusRead>

/** A reader of one process. */
export function createStatusReader(db: Db): StatusReader {
  return createSharedTrip(async (names) => {
    const { rows } = await db.executeQuery<StatusColumns>(FIND(names))
    return rows.map(toStatusRead)
  })
}

type StatusColumns = { readonly [K in keyof StatusRow]: StatusRow[K] | null } & Pick<StatusRead, 'applicationsState'>

const toStatusRead = (row: StatusColumns): StatusRead => ({
  activation: row.activationId === null ? undefined : (row as StatusRow),
  applicationsState: row.applicationsState,
})

const FIND = defineAskedRows<StatusNames>({ activationId: 'text', at: 'timestamptz' }).define(
  (asked) => sql`
  select ${APPLICATIONS_STATE} as "applicationsState", ${selectStatus(sql`i.at`)}
  from ${asked} as i left join activation a on a.activation_id = i."activationId"
  order by i.position`,
)
