// The tables audit_delivery and audit_deliverer: how far each chain was delivered, and which process delivers.
import { sql } from 'kysely'
import type { ChainPlace } from './chain.ts'
import type { Db } from '../database/database.ts'

interface DeliveryLease {
  readonly leaseId: string
  readonly at: Date
  readonly until: Date
}

/** Takes the right to deliver, or keeps it longer; false while another process has it, unless its end is of a clock that was set back. */
export async function leaseDelivery(db: Db, { leaseId, at, until }: DeliveryLease): Promise<boolean> {
  const { rows } = await sql`
    update audit_deliverer set lease_id = ${leaseId}, leased_until = ${until}
    where lease_id = ${leaseId} or leased_until < ${at} or leased_until > ${until}::timestamptz + interval '1 minute' returning 1`.execute(
    db,
  )
  return rows.length > 0
}

/** Gives the right back. */
export async function endDeliveryLease(db: Db, leaseId: string): Promise<void> {
  await sql`update audit_deliverer set leased_until = '-infinity' where lease_id = ${leaseId}`.execute(db)
}

/** The last rows that were taken, by chain. */
export async function findDelivered(db: Db): Promise<ReadonlyMap<number, ChainPlace>> {
  const rows = await db.selectFrom('audit_delivery').select(['chain_id as chainId', 'position', 'seal']).execute()
  return new Map(rows.map(({ chainId, position, seal }) => [chainId, { position: Number(position), seal }]))
}

/** Notes the last row that was taken, unless another process delivers by now; false then. */
export async function noteDelivered(db: Db, leaseId: string, chainId: number, { position, seal }: ChainPlace): Promise<boolean> {
  const { rows } = await sql`
    insert into audit_delivery (chain_id, position, seal)
    select ${chainId}::int, ${position}::bigint, ${Buffer.from(seal)}::bytea from audit_deliverer where lease_id = ${leaseId}
    on conflict (chain_id) do update set position = excluded.position, seal = excluded.seal
    returning 1`.execute(db)
  return rows.length > 0
}
