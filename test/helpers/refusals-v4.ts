// Expects refusals of protocol 4.0 with their exact form, and reads the rows that they must not change (v4 §12).
import { sql } from 'kysely'
import { expect } from 'vitest'
import type { TestServer } from './app.ts'
import { type HttpReply, member } from '../../phone/http.ts'

/** HTTP status, code, and message without its prefix. */
export const REFUSED_V4 = {
  code: [401, 'ERR_AUTHENTICATION', 'CODE_INVALID'],
  request: [401, 'ERR_AUTHENTICATION', 'REQUEST_INVALID'],
  token: [401, 'ERR_AUTHENTICATION', 'TOKEN_ERROR'],
  encryption: [400, 'ERR_ENCRYPTION', 'ENCRYPTION_FAILED'],
  activation: [400, 'ERR_ACTIVATION', 'ACTIVATION_INVALID'],
  temporaryKey: [400, 'ERR_TEMPORARY_KEY', 'TEMPORARY_KEY_FAILURE'],
  vault: [400, 'ERR_SECURE_VAULT', 'SECURE_VAULT_INVALID'],
  password: [400, 'ERR_PASSWORD_CHANGE', 'PASSWORD_CHANGE_FAILURE'],
  biometry: [400, 'ERR_BIOMETRY', 'BIOMETRY_FAILURE'],
  upgrade: [400, 'ERR_UPGRADE', 'UPGRADE_FAILED'],
  userInfo: [400, 'ERR_USER_INFO', 'USER_INFO_ERROR'],
  configuration: [400, 'ERR_CONFIG', 'CONFIG_FAILURE'],
  status: [400, 'ERR_STATUS', 'STATUS_ERROR'],
  /** The message names the member. */
  validation: [400, 'ERR_VALIDATION', undefined],
} as const satisfies Record<string, readonly [number, string, string | undefined]>
export type RefusalV4 = keyof typeof REFUSED_V4

/** Expects exactly this refusal. `what`: a text for the failure. */
export function expectRefusedV4(reply: HttpReply, refusal: RefusalV4, what = '', prefix = 'POWER_AUTH_'): void {
  const [status, code, message] = REFUSED_V4[refusal]
  const text: unknown = message === undefined ? expect.any(String) : prefix + message
  expect({ what, status: reply.status, json: reply.json }).toEqual({
    what,
    status,
    json: { status: 'ERROR', responseObject: { code, message: text } },
  })
}

/** The rows of all activations in their tables, as text. `except`: columns of `activation` that may change. */
export async function readStored({ context: { db } }: TestServer, except: readonly string[] = []): Promise<string> {
  const activations = await db.selectFrom('activation').selectAll().orderBy('activation_id').execute()
  const kept = activations.map((row) => Object.entries(row).filter(([name]) => !except.includes(name)))
  const rest = [
    (await sql`select * from activation_upgrade order by activation_id`.execute(db)).rows,
    (await sql`select * from token order by token_id`.execute(db)).rows,
    await db.selectFrom('activation_history').selectAll().orderBy('activation_id').execute(),
  ]
  return JSON.stringify([kept, rest])
}

/** The columns that an accepted code of two factors changes. */
export const MOVED_BY_A_CODE = ['counter', 'ctr_data', 'row_version', 'last_used_at']

/** The code and message of a refusal. */
export const codeOf = (reply: HttpReply): unknown => member(reply.json, 'responseObject', 'code')
