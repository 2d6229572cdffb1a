// References go whose check locks the row that they name, and so writes it: registrations and operations locked their application, temporary keys
// their version, operations the revision of their template, the same few rows for all of them. Nothing deletes such a row, and what is inserted
// was made from it (docs/decisions/0024-references-of-many-rows.md).
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table activation drop constraint activation_application_id_fkey`.execute(db)
  await sql`alter table temporary_key drop constraint temporary_key_application_key_fkey`.execute(db)
  await sql`alter table operation drop constraint operation_application_id_fkey, drop constraint operation_template_revision_id_fkey`.execute(
    db,
  )
}
