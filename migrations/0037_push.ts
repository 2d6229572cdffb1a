// Pushes to phones (mobile-token §7.1): the outbox of webhooks has their messages too, one for each device. Its triggers write them.
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ schema: string }>`select quote_ident(current_schema()) as schema`.execute(db)
  for (const { schema } of rows) for (const statement of composeStatements(schema)) await sql.raw(statement).execute(db)
}

/** Milliseconds since 1970. */
const milliseconds = (column: string): string => `(extract(epoch from ${column}) * 1000)::bigint`

/** A message that tells of an end, or of one in the inbox, is news for so long. */
const newsUntil = (interval: string): string => milliseconds(`clock_timestamp() + interval '${interval}'`)

/** By index webhook_of_change. */
const PROVIDERS = `select w.webhook_id from webhook w where w.application_id is null and w.kind = 'PUSH' and w.is_enabled`

const DELIVERY_COLUMNS = 'delivery_id, webhook_id, object_id, activation_id, payload, created_at'

/** `schema`: of the tables, for a session that has no search path, as a restore of a dump. */
const composeStatements = (schema: string): readonly string[] => [
  // A provider of pushes is a row of kind PUSH, whose id is its platform; a start with its credentials makes it. Everything else that a webhook
  // has to be delivered to, it has as well: attempts, probes, pauses.
  `alter table webhook alter column application_id drop not null, alter column secret drop not null`,
  `alter table webhook drop constraint webhook_kind_check`,
  `alter table webhook add constraint webhook_kind_check check (
    case kind when 'PUSH' then webhook_id in ('apns', 'fcm') and application_id is null and secret is null
      else kind in ('OPERATION', 'ACTIVATION') and application_id is not null and secret is not null end
  )`,
  // The device that is told; null in messages of webhooks.
  `alter table webhook_delivery add column activation_id text`,

  // Who is told by push: the phones of a user that are ACTIVE, or one alone of them where \`only\` names it. The one place that says so.
  `create function push_recipients(of_application text, of_user text, only_one text)
  returns table (activation_id text, platform text) language sql stable
  set search_path = ${schema}, pg_temp as $$
  select p.activation_id, p.platform from activation a join push_registration p on p.activation_id = a.activation_id
  where a.application_id = of_application and a.user_id = of_user and (only_one is null or a.activation_id = only_one)
    and (a.state = 'ACTIVE' or (a.state = 'BLOCKED' and a.block_expires_at <= clock_timestamp()))
$$`,

  // What is asked first is answered from a table of few rows: where there is no provider a change costs hardly more than before.
  `create function enqueue_operation_pushes() returns trigger language plpgsql
  set search_path = ${schema}, pg_temp as $$
declare
  event text;
begin
  if exists (${PROVIDERS}) then
    event := case when tg_op = 'INSERT' then 'created' when new.status = 'CANCELED' then 'cancelled' else lower(new.status collate "C") end;
    insert into webhook_delivery (${DELIVERY_COLUMNS})
    select gen_random_uuid()::text, w.webhook_id, new.operation_id, r.activation_id, json_build_object('event', event,
      'operationType', new.operation_type,
      'until', case event when 'created' then ${milliseconds('new.expires_at')} else ${newsUntil('1 hour')} end
    )::text, clock_timestamp()
    from (${PROVIDERS}) w join push_recipients(new.application_id, new.user_id, new.activation_id) r on r.platform = w.webhook_id;
  end if;
  return null;
end $$`,
  `create trigger operation_created_pushes after insert on operation for each row execute function enqueue_operation_pushes()`,
  `create trigger operation_ended_pushes after update of status on operation for each row
    when (old.status is distinct from new.status) execute function enqueue_operation_pushes()`,

  `create function enqueue_inbox_pushes() returns trigger language plpgsql
  set search_path = ${schema}, pg_temp as $$
begin
  if exists (${PROVIDERS}) then
    insert into webhook_delivery (${DELIVERY_COLUMNS})
    select gen_random_uuid()::text, w.webhook_id, new.message_id, r.activation_id,
      json_build_object('event', 'message', 'until', ${newsUntil('1 day')})::text, clock_timestamp()
    from (${PROVIDERS}) w join push_recipients(new.application_id, new.user_id, null) r on r.platform = w.webhook_id;
  end if;
  return null;
end $$`,
  `create trigger inbox_message_created_pushes after insert on inbox_message for each row execute function enqueue_inbox_pushes()`,
]
