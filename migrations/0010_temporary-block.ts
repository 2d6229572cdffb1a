// The temporary block of activations: its end, how many came in a row, and the webhooks that tell of it (cloud §3.4).
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  // Who is blocked already has no end: such a block stays until the bank ends it.
  `alter table activation
    add column block_expires_at timestamptz, -- of a temporary block
    add column blocks_in_row integer not null default 0`, // by failed attempts, since the last success or UNBLOCK
  `create index activation_block_due on activation (block_expires_at) where block_expires_at is not null`,

  `create or replace view registration as
    select activation_id, application_id, user_id, state, row_version, expires_at, activation_qr_code, name, platform, device_info,
      activation_fingerprint, block_expires_at
    from activation where state <> 'REMOVED'`,

  `create or replace function enqueue_activation_webhooks() returns trigger language plpgsql as $$
begin
  insert into webhook_delivery (delivery_id, webhook_id, object_id, payload, created_at)
  select gen_random_uuid()::text, w.webhook_id, new.activation_id, json_strip_nulls(json_build_object(
    'applicationId', new.application_id, 'userId', new.user_id, 'activationName', new.name, 'deviceInfo', new.device_info,
    'platform', new.platform, 'flags', new.flags, 'status', new.state, 'blockedReason', new.blocked_reason,
    'timestampBlockExpire', (extract(epoch from new.block_expires_at) * 1000)::bigint
  ))::text, clock_timestamp()
  from webhook w where w.application_id = new.application_id and w.kind = 'ACTIVATION' and w.is_enabled;
  return null;
end $$`,
  // A temporary block that the bank makes a lasting one is a change without a change of state.
  `drop trigger activation_changed_webhooks on activation`,
  `create trigger activation_changed_webhooks after update on activation for each row
    when (old.state is distinct from new.state or old.block_expires_at is distinct from new.block_expires_at)
    execute function enqueue_activation_webhooks()`,
]
