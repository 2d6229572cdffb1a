// The triggers of webhooks do not depend on who causes a change: names of events are those of cloud §9 where the database lower-cases I as the
// Turkish do, and tables are found by a session that has no search path, as a restore of a dump.
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ schema: string }>`select quote_ident(current_schema()) as schema`.execute(db)
  for (const { schema } of rows) for (const statement of composeFunctions(schema)) await sql.raw(statement).execute(db)
}

/** Milliseconds since 1970, as the bodies of webhooks have them. */
const milliseconds = (column: string): string => `(extract(epoch from ${column}) * 1000)::bigint`

const composeFunctions = (schema: string): readonly string[] => [
  `create or replace function enqueue_operation_webhooks() returns trigger language plpgsql
  set search_path = ${schema}, pg_temp as $$
declare
  event text;
begin
  if tg_op = 'INSERT' then
    event := 'created';
  elsif old.status is distinct from new.status then
    event := case new.status when 'CANCELED' then 'cancelled' else lower(new.status collate "C") end;
  else
    event := 'failed_attempt';
  end if;
  insert into webhook_delivery (delivery_id, webhook_id, object_id, payload, created_at)
  select gen_random_uuid()::text, w.webhook_id, new.operation_id, json_strip_nulls(json_build_object('event', event,
    'applicationId', new.application_id, 'userId', new.user_id, 'operationType', new.operation_type, 'template', new.template_name,
    'templateRevisionId', new.template_revision_id, 'language', new.language, 'parameters', new.parameters, 'additionalData', new.additional_data,
    'activationFlag', new.activation_flag, 'status', new.status, 'statusReason', new.status_reason, 'data', new.data,
    'failureCount', new.failure_count, 'maxFailureCount', new.max_failure_count, 'signatureTypes', new.signature_types,
    'externalId', new.external_id, 'timestampCreated', ${milliseconds('new.created_at')},
    'timestampExpires', ${milliseconds('new.expires_at')}, 'timestampFinalized', ${milliseconds('new.finalized_at')}
  ))::text, clock_timestamp()
  from webhook w where w.application_id = new.application_id and w.kind = 'OPERATION' and w.is_enabled;
  return null;
end $$`,

  // Whether an activation ran out or was removed stands in its history, which the same statement has written.
  `create or replace function enqueue_activation_webhooks() returns trigger language plpgsql
  set search_path = ${schema}, pg_temp as $$
declare
  event text;
begin
  if tg_op = 'INSERT' then
    event := 'created';
  elsif old.state is not distinct from new.state then
    event := 'block_changed';
  elsif new.state = 'ACTIVE' then
    event := case old.state when 'BLOCKED' then 'unblocked' else 'activated' end;
  elsif new.state = 'REMOVED' then
    event := case when exists (
      select from activation_history h where h.activation_id = new.activation_id and h.to_state = 'REMOVED' and h.reason = 'EXPIRED'
    ) then 'expired' else 'removed' end;
  else
    event := lower(new.state collate "C");
  end if;
  insert into webhook_delivery (delivery_id, webhook_id, object_id, payload, created_at)
  select gen_random_uuid()::text, w.webhook_id, new.activation_id, json_strip_nulls(json_build_object('event', event,
    'applicationId', new.application_id, 'userId', new.user_id, 'activationName', new.name, 'deviceInfo', new.device_info,
    'platform', new.platform, 'flags', new.flags, 'status', new.state, 'blockedReason', new.blocked_reason,
    'timestampBlockExpire', ${milliseconds('new.block_expires_at')}
  ))::text, clock_timestamp()
  from webhook w where w.application_id = new.application_id and w.kind = 'ACTIVATION' and w.is_enabled;
  return null;
end $$`,
]
