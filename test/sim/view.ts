// Reads the contents of the database that the invariants are about, between two steps.
import { sql } from 'kysely'
import type { Db } from '../../src/storage/database/database.ts'

export interface ActivationView {
  readonly id: string
  readonly userId: string
  readonly state: 'CREATED' | 'PENDING_COMMIT' | 'ACTIVE' | 'BLOCKED' | 'REMOVED'
  readonly counter: number
  readonly failedAttempts: number
  /** Names of flags, joined by commas. */
  readonly flags: string
  /** The generation of the protocol, 3 or 4; 0 before the key exchange. */
  readonly generation: number
  /** Whether the server has a key to verify biometric codes: in 4.0 only when the phone has enabled biometry (v4 §7.4, step 5). */
  readonly hasBiometry: boolean
  /** Whether the activation was of 3.x before. */
  readonly isUpgraded: boolean
  /** The end of a block in milliseconds since 1970; null without a block, and for a block without an end. */
  readonly blockedUntil: number | null
  /** The number of audit rows of accepted codes. */
  readonly accepted: number
  /** A hash over all stored rows of the activation: its own row, tokens, push registration, and a waiting upgrade. */
  readonly all: string
}

export interface OperationView {
  readonly id: string
  readonly status: string
}

export interface DeliveryView {
  readonly id: string
  /** The webhook and the object. Messages with the same lane have an order. */
  readonly lane: string
  readonly objectId: string
  readonly status: 'WAITING' | 'DELIVERED' | 'DEAD'
  readonly payload: string
}

export interface View {
  readonly activations: ReadonlyMap<string, ActivationView>
  readonly operations: ReadonlyMap<string, OperationView>
  readonly tokens: ReadonlySet<string>
  readonly credentials: ReadonlySet<string>
  /** The deliveries, in the order of the changes that they report. */
  readonly deliveries: readonly DeliveryView[]
  /** The number of sealed rows of the audit log. */
  readonly sealed: number
}

/** Reads the view in one statement, because it is the most frequent one of a simulation. */
export async function look(db: Db): Promise<View> {
  const { rows } = await sql<{ seen: Seen }>`select json_build_object(
    'activations', (select coalesce(json_agg(x), '[]') from (
      select activation_id as id, user_id as "userId", state, counter, failed_attempts as "failedAttempts", flags,
        coalesce(protocol_version, 0) as generation,
        coalesce(protocol_version = 3 or is_biometry_enabled, false) as "hasBiometry",
        exists (select from activation_history h where h.activation_id = a.activation_id and h.reason = 'ACTIVATION_VERSION_CHANGED') as "isUpgraded",
        extract(epoch from block_expires_at) * 1000 as "blockedUntil",
        (select count(*) from audit_trail e where e.activation_id = a.activation_id and event_type = 'signature_ok') as accepted,
        md5(a::text || (select coalesce(string_agg(t::text, ',' order by token_id), '') from token t where t.activation_id = a.activation_id)
          || (select coalesce(string_agg(p::text, ','), '') from push_registration p where p.activation_id = a.activation_id)
          || (select coalesce(string_agg(u::text, ','), '') from activation_upgrade u where u.activation_id = a.activation_id)) as "all"
      from activation a order by activation_id) x),
    'operations', (select coalesce(json_agg(x), '[]') from (select operation_id as id, status from operation) x),
    'tokens', (select coalesce(json_agg(token_id), '[]') from token),
    'credentials', (select coalesce(json_agg(username), '[]') from credential),
    'sealed', (select coalesce(sum(head_position), 0) from audit_chain),
    'deliveries', (select coalesce(json_agg(x), '[]') from (
      select delivery_id as id, webhook_id || ' ' || object_id as lane, object_id as "objectId", status, payload::text as payload
      from webhook_delivery order by sequence) x)) as seen`.execute(db)
  const seen = rows[0]?.seen
  if (seen === undefined) throw new Error('the database shows nothing')
  const byId = <T extends { readonly id: string }>(list: readonly T[]) => new Map(list.map((one) => [one.id, one]))
  return {
    activations: byId(seen.activations),
    operations: byId(seen.operations),
    tokens: new Set(seen.tokens),
    credentials: new Set(seen.credentials),
    deliveries: seen.deliveries,
    sealed: seen.sealed,
  }
}

interface Seen extends Pick<View, 'deliveries' | 'sealed'> {
  readonly activations: readonly ActivationView[]
  readonly operations: readonly OperationView[]
  readonly tokens: readonly string[]
  readonly credentials: readonly string[]
}
