// The trigger that tells webhooks of states is looked at only by statements that name one of its columns: every code moves its activation,
// and few of them change its state.
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  `drop trigger activation_changed_webhooks on activation`,
  `create trigger activation_changed_webhooks after update of state, block_expires_at on activation for each row
    when (old.state is distinct from new.state or old.block_expires_at is distinct from new.block_expires_at)
    execute function enqueue_activation_webhooks()`,
]
