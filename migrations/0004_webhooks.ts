// Webhooks, their outbox, and the triggers that fill it in the transaction of the change (cloud §9).
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

/** Milliseconds since 1970, as the bodies of webhooks have them. */
const milliseconds = (column: string): string => `(extract(epoch from ${column}) * 1000)::bigint`

const statements = [
  `create table webhook (
    webhook_id text primary key,
    application_id text not null references application,
    name text not null,
    kind text not null check (kind in ('OPERATION', 'ACTIVATION')),
    url text not null,
    attributes text not null, -- comma list
    secret bytea not null, -- sealed
    previous_secret bytea, -- sealed
    previous_secret_expires_at timestamptz,
    basic_credentials bytea, -- sealed; username:password
    is_enabled boolean not null default true,
    disabled_reason text,
    delivered_count bigint not null default 0,
    failures_in_row integer not null default 0,
    failing_since timestamptz, -- the first failure after the last success
    probe_at timestamptz, -- of a webhook that fails: when one delivery is tried whatever its schedule
    paused_until timestamptz, -- the receiver asked for it
    created_at timestamptz not null
  )`,
  `create index webhook_of_change on webhook (application_id, kind) where is_enabled`,

  // The outbox. No foreign key: a change takes no lock on a webhook and cannot fail because one is being removed at the same moment.
  `create table webhook_delivery (
    sequence bigint generated always as identity primary key,
    delivery_id text not null unique,
    webhook_id text not null,
    object_id text not null, -- operation or activation
    payload text not null, -- JSON; what attributes may ask for, as it was at the change
    status text not null default 'WAITING' check (status in ('WAITING', 'DELIVERED', 'DEAD')),
    attempts integer not null default 0,
    scheduled_at timestamptz not null default 'epoch', -- the next attempt that counts; at once, whatever the clocks of database and process say
    next_attempt_at timestamptz not null default 'epoch', -- the same, or earlier for an attempt that does not count
    lease_id text,
    leased_until timestamptz,
    last_error text,
    created_at timestamptz not null,
    finished_at timestamptz
  )`,
  `create index webhook_delivery_due on webhook_delivery (webhook_id, next_attempt_at, sequence) where status = 'WAITING'`,
  `create index webhook_delivery_object on webhook_delivery (webhook_id, object_id, sequence) where status = 'WAITING'`,
  `create index webhook_delivery_dead on webhook_delivery (webhook_id, sequence) where status = 'DEAD'`,
  `create index webhook_delivery_newest on webhook_delivery (webhook_id, sequence)`,
  `create index webhook_delivery_age on webhook_delivery (created_at)`,

  // Changes of one object wait for each other at its row, so the sequence has them in the order of their commits.
  // JSON columns stay text inside the payload: not every text that JSON allows is one that the database can take apart.
  `create function enqueue_operation_webhooks() returns trigger language plpgsql as $$
begin
  insert into webhook_delivery (delivery_id, webhook_id, object_id, payload, created_at)
  select gen_random_uuid()::text, w.webhook_id, new.operation_id, json_strip_nulls(json_build_object(
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
  `create trigger operation_created_webhooks after insert on operation for each row execute function enqueue_operation_webhooks()`,
  `create trigger operation_changed_webhooks after update on operation for each row
    when (old.status is distinct from new.status or old.failure_count < new.failure_count)
    execute function enqueue_operation_webhooks()`,

  `create function enqueue_activation_webhooks() returns trigger language plpgsql as $$
begin
  insert into webhook_delivery (delivery_id, webhook_id, object_id, payload, created_at)
  select gen_random_uuid()::text, w.webhook_id, new.activation_id, json_strip_nulls(json_build_object(
    'applicationId', new.application_id, 'userId', new.user_id, 'activationName', new.name, 'deviceInfo', new.device_info,
    'platform', new.platform, 'flags', new.flags, 'status', new.state, 'blockedReason', new.blocked_reason
  ))::text, clock_timestamp()
  from webhook w where w.application_id = new.application_id and w.kind = 'ACTIVATION' and w.is_enabled;
  return null;
end $$`,
  `create trigger activation_created_webhooks after insert on activation for each row execute function enqueue_activation_webhooks()`,
  // Every authentication updates its activation; the condition keeps all but changes of state away from the function.
  `create trigger activation_changed_webhooks after update on activation for each row when (old.state is distinct from new.state)
    execute function enqueue_activation_webhooks()`,
]
