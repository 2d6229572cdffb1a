// Which statements read the indexes of few rows: those that look for what waits or is over, and never one that names a row by its id. Asked
// while the statistics know of nothing that waits, as they do where one operation in a million waits (docs/decisions/0018-indexes.md).
import { globSync, readFileSync } from 'node:fs'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPostgresDatabase, serverUrl } from '../helpers/app.ts'

/** Each of these indexes, and the storage functions whose statements use it. */
const USERS: Record<string, readonly string[]> = {
  activation_block_due: ['endTemporaryBlocks'],
  activation_due: ['isAnyWaiting', 'removeExpiredActivations', 'removeWaiting'],
  activation_ended: [],
  activation_history_removed: ['deleteOldActivations'],
  operation_due: ['expireOperations', 'readVitalSigns'],
  operation_ended: [],
  operation_pending: ['createTokenReads', 'searchOperations'],
  webhook_delivery_dead: ['listDeliveries', 'listPushProviders', 'listWebhooks', 'replayDeadDeliveries'],
  // Either of the two is read where only the webhook is named.
  webhook_delivery_due: ['bringBackDeliveries', 'claimDeliveries', 'listDueWebhooks', 'storeWebhookSuccess', 'updateWebhook'],
  // Whether an earlier message about the same waits.
  webhook_delivery_object: [
    'claimDeliveries',
    'claimProbe',
    'findDelivery',
    'listDeliveries',
    'listDueWebhooks',
    'listPushProviders',
    'listWebhooks',
    'readVitalSigns',
  ],
  // Of all rows: the messages about one object.
  webhook_delivery_about: ['listDeliveries'],
  // Of all rows: those about one user, or about nobody.
  audit_log_all_user_id_application_id_occurred_at_idx: ['findTold', 'listAuditItems', 'listOwnerlessItems', 'readUserRows'],
  operation_user: ['deleteUserRows', 'listUserOperations', 'lockUser', 'readUserRows', 'searchOperations'],
}

describe.runIf(serverUrl() !== undefined)('on PostgreSQL', () => {
  let client: Client
  let drop: () => Promise<void>
  beforeAll(async () => {
    const database = await createPostgresDatabase()
    drop = database.drop
    client = new Client({ connectionString: database.databaseUrl })
    await client.connect()
    await client.query(NO_REFERENCES)
    for (const statement of ROWS) await client.query(statement)
    await client.query('vacuum analyze')
    // As for a statement that a process has prepared: whatever its values are.
    await client.query('set plan_cache_mode = force_generic_plan')
  })
  afterAll(async () => {
    await client.end()
    await drop()
  })

  test('a row that is named is found by its name', async () => {
    const users = new Map(Object.keys(USERS).map((index) => [index, new Set<string>()]))
    let explained = 0
    for (const { name, text } of readStatements()) {
      const words = new Set((await explain(text)).split(/\s+/))
      for (const [index, names] of users) if (words.has(index)) names.add(name)
      explained += 1
    }
    expect(explained).toBeGreaterThan(200)
    expect(Object.fromEntries([...users].map(([index, names]) => [index, [...names].toSorted()]))).toEqual(USERS)
  })

  test.each(['findUnfenced', 'readSealedRows'])(
    'a page of %s reads its own rows, and no other table from its beginning',
    async (name) => {
      const texts = readStatements().filter((statement) => statement.name === name)
      expect(texts.length).toBeGreaterThan(0)
      for (const { text } of texts) expect(await explain(text)).not.toMatch(/Merge|Hash|Bitmap|Seq Scan on activation\b/)
    },
  )

  test.each(['deleteUserRows', 'readUserRows'])(
    '%s searches each message of a webhook once, however many phones there are',
    async (name) => {
      const plans = await Promise.all(
        readStatements()
          .filter((statement) => statement.name === name && statement.text.includes('registrationId'))
          .map(({ text }) => explain(text)),
      )
      expect(plans).toHaveLength(1)
      const filters = plans.join('\n').match(/^.*strpos\(\w*\.?payload.*$/gm)
      expect(filters).toHaveLength(1)
      expect(String(filters)).toMatch(/hashed SubPlan/)
      expect(String(filters).replaceAll('hashed SubPlan', '')).not.toMatch('SubPlan')
    },
  )

  test('nothing reads all used values to know one of them, also where they are few', async () => {
    await client.query(`insert into unique_value select sha256(i::text::bytea), now() from generate_series(1, 1000) as i`)
    await client.query('analyze unique_value')
    const texts = readStatements().filter(({ text }) => /from unique_value u\b/.test(text))
    expect(texts.length).toBeGreaterThan(5)
    for (const { text } of texts) expect(await explain(text)).not.toMatch('Seq Scan on unique_value')
  })

  async function explain(text: string): Promise<string> {
    await client.query(`prepare statement as ${text}`)
    try {
      const types = await client.query<{ type: string }>(
        `select unnest(parameter_types)::text as type from pg_prepared_statements where name = 'statement'`,
      )
      // A time that is null would remove each partition from the plan.
      const values = types.rows.map(({ type }) => (type === 'timestamp with time zone' ? 'now()' : 'null'))
      const given = values.length === 0 ? '' : `(${values.join(', ')})`
      const { rows } = await client.query<{ 'QUERY PLAN': string }>(`explain execute statement${given}`)
      return rows.map((row) => row['QUERY PLAN']).join('\n')
    } finally {
      await client.query('deallocate statement')
    }
  }
})

/** The statements of test/storage/queries.test.ts, with the name of their function. */
const readStatements = (): { readonly name: string; readonly text: string }[] =>
  globSync('**/*.sql.snap', { cwd: import.meta.dirname }).flatMap((file) =>
    readFileSync(`${import.meta.dirname}/${file}`, 'utf8')
      .split(/^-- /m)
      .slice(1)
      .flatMap((part) => {
        const [title = '', ...lines] = part.split('\n')
        const [name = ''] = title.split(' ')
        const texts = lines.join('\n').split(/;\s*\n/)
        return texts.filter((text) => /^\s*(select|with|insert|update|delete)\b/.test(text)).map((text) => ({ name, text }))
      }),
  )

/** The rows below belong to nobody. */
const NO_REFERENCES = `
  do $$ declare reference record; begin
    for reference in select conrelid::regclass as owner, conname from pg_constraint where contype = 'f' loop
      execute format('alter table %s drop constraint %I', reference.owner, reference.conname);
    end loop;
    alter table activation disable trigger user;
    alter table operation disable trigger user;
  end $$`

const ROWS = [
  `insert into activation (activation_id, application_id, user_id, state, activation_code_hash, server_public_key, server_private_key,
     max_failed_attempts, created_at, expires_at)
   select 'a-' || i, 'bank', 'u-' || i, 'ACTIVE', decode(md5(i::text), 'hex'), '', '', 5, now() - i * interval '1 second', now()
   from generate_series(1, 20000) i`,
  `insert into activation_history (activation_id, to_state, occurred_at)
   select 'a-' || i, 'CREATED', now() - i * interval '1 second' from generate_series(1, 20000) i`,
  `insert into operation (operation_id, application_id, user_id, template_revision_id, template_name, operation_type, language, parameters,
     data, status, signature_types, max_failure_count, risk_flags, created_at, expires_at)
   select 'o-' || i, 'bank', 'u-' || i % 5000, 't', 'login', 'login', 'en', '{}', 'A1', 'APPROVED', 'possession', 5, '',
     now() - i * interval '10 seconds', now() from generate_series(1, 30000) i`,
  `insert into webhook_delivery (delivery_id, webhook_id, object_id, payload, status, created_at)
   select 'd-' || i, 'w-' || i % 5, 'o-' || i, '{}', 'DELIVERED', now() from generate_series(1, 20000) i`,
  'create table audit_log_all partition of audit_log for values from (minvalue) to (maxvalue)',
  `insert into audit_log (position, sequence, sealed_at, occurred_at, chain_id, activation_id, application_id, user_id, event_type, event_data, seal)
   select i, i, now(), now(), 1, 'a-' || i, 'bank', 'u-' || i, 'test', '{}', '' from generate_series(1, 20000) i`,
]
