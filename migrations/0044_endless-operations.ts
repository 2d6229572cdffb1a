// Webhooks tell of an operation whose creation or end somebody set to `infinity`: no number stands for that, so their messages have none. Before, the
// database refused each change of such an operation, and the end of all others that was stored in the same statement.
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ schema: string }>`select quote_ident(current_schema()) as schema`.execute(db)
  for (const { schema } of rows) await sql.raw(composeFunction(schema)).execute(db)
}

/** Milliseconds since 1970, as the bodies of webhooks have them; null for `infinity`. */
const milliseconds = (column: string): string =>
  `case when isfinite(${column}) then (extract(epoch from ${column}) * 1000)::bigint end`

/** That of 0036 with other times. */
const composeFunction = (schema: string): string =>
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
    'activationFlag', new.activation_flag, 'registrationId', new.activation_id, 'status', new.status, 'statusReason', new.status_reason,
    'data', new.data, 'failureCount', new.failure_count, 'maxFailureCount', new.max_failure_count, 'signatureTypes', new.signature_types,
    'externalId', new.external_id, 'timestampCreated', ${milliseconds('new.created_at')},
    'timestampExpires', ${milliseconds('new.expires_at')}, 'timestampFinalized', ${milliseconds('new.finalized_at')}
  ))::text, clock_timestamp()
  from webhook w where w.application_id = new.application_id and w.kind = 'OPERATION' and w.is_enabled;
  return null;
end $$`
