// Names of users that are closed while an erasure runs: nothing that names one of them is committed (docs/decisions/0019-erasure.md).
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ schema: string }>`select quote_ident(current_schema()) as schema`.execute(db)
  for (const { schema } of rows) for (const statement of composeStatements(schema)) await sql.raw(statement).execute(db)
}

/** Deferred: what a transaction wrote is judged at its end, however long it was open. */
const refuseOn = (table: string, events: string, column: string): string =>
  `create constraint trigger ${table}_refuse_erased after ${events} on ${table} deferrable initially deferred for each row
    when (new.${column} is not null) execute function refuse_erased_user()`

/** `schema`: of the tables, for a session that has no search path, as a restore of a dump. */
const composeStatements = (schema: string): readonly string[] => [
  `create table user_erasure (
    erasure_id text primary key,
    salt bytea not null,
    user_hash bytea not null, -- SHA-256 of salt and name: the name itself is what has to go
    closed_until timestamptz not null -- by the clock of the database; transactions that began later are free
  )`,
  // The lock is held to the end of the transaction. An erasure that has had it alone knows that whoever does not see its row is over: a look sees
  // what was committed before it, because transactions are READ COMMITTED.
  // The error is one of those that ask for the same once more.
  `create function refuse_erased_user() returns trigger language plpgsql
  set search_path = ${schema}, pg_temp as $$
declare
  name text;
begin
  if tg_table_name = 'activation_history' then
    name := new.external_user_id;
  else
    name := new.user_id;
  end if;
  perform pg_advisory_xact_lock_shared(hashtextextended('pawl.user_erasure', 0));
  if exists (
    select from user_erasure e
    where e.closed_until > transaction_timestamp() and e.user_hash = sha256(e.salt || convert_to(name, 'UTF8'))
  ) then
    raise exception using errcode = 'serialization_failure', message = 'the user is being erased';
  end if;
  return null;
end $$`,
  refuseOn('activation', 'insert', 'user_id'),
  refuseOn('operation', 'insert or update of user_id', 'user_id'),
  refuseOn('inbox_message', 'insert', 'user_id'),
  refuseOn('user_claims', 'insert', 'user_id'),
  refuseOn('activation_history', 'insert', 'external_user_id'),
]
