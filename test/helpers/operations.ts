// Inserts and changes operations as rows, for tests about the effects of such changes.
import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import type { Db } from '../../src/storage/database/database.ts'
import type { OperationStatus } from '../../src/storage/database/schema.ts'

export interface OperationOptions {
  readonly applicationId: string
  readonly userId?: string
  readonly parameters?: string
  readonly expiresAt?: Date
}

/** Inserts a PENDING operation and returns its id. */
export async function insertOperation(
  db: Db,
  { applicationId, userId = 'alice', ...options }: OperationOptions,
): Promise<string> {
  const id = randomUUID()
  const { parameters = '{"amount":"10"}', expiresAt = new Date(EXPIRES_AT) } = options
  await sql`
    with revision as (
      insert into template_revision (template_revision_id, template_name, operation_type, data_template, signature_types,
        max_failure_count, expiration_seconds, risk_flags, is_proximity_check_enabled, texts, created_at)
      values (${id}, 'payment', 'authorize_payment', 'A1', 'possession_knowledge', 5, 300, '', false, '{}', ${new Date(CREATED_AT)})
    )
    insert into operation (operation_id, application_id, user_id, external_id, template_revision_id, template_name, operation_type,
      language, parameters, data, status, signature_types, max_failure_count, risk_flags, additional_data, created_at, expires_at)
    values (${id}, ${applicationId}, ${userId}, 'external', ${id}, 'payment', 'authorize_payment', 'en', ${parameters}, 'A1*A10EUR',
      'PENDING', 'possession_knowledge,possession_biometry', 5, '', '{"channel":"web"}', ${new Date(CREATED_AT)}, ${expiresAt})`.execute(
    db,
  )
  return id
}

/** Counts a failed attempt. */
export async function failOperation(db: Db, id: string): Promise<void> {
  await sql`update operation set failure_count = failure_count + 1 where operation_id = ${id}`.execute(db)
}

/** Ends an operation. */
export async function endOperation(db: Db, id: string, status: OperationStatus): Promise<void> {
  await sql`update operation set status = ${status}, finalized_at = ${new Date(CREATED_AT + 1_000)} where operation_id = ${id}`.execute(
    db,
  )
}

/** 2026-01-01. */
export const CREATED_AT = 1_767_225_600_000
/** Ten years later, so that housekeeping expires no operation of a test. */
export const EXPIRES_AT = CREATED_AT + 315_360_000_000

/** A template for tests to which only its name matters, as POST /admin/templates takes it. */
export const plainTemplate = (templateName: string) => ({
  templateName,
  operationType: 'test',
  dataTemplate: 'A2',
  signatureType: ['possession_knowledge'],
  maxFailureCount: 5,
  expiration: 300,
  texts: { en: { title: 'Title', message: 'Message' } },
})
