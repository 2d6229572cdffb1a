// Names what the audit log needs from the process.
import type { KeyObject } from 'node:crypto'
import type { Platform } from '../../lib/platform.ts'
import type { Events } from '../../log/events.ts'
import type { Database, Db, Pool } from '../../storage/database/database.ts'

/** What reads seals. */
export interface SealParts {
  readonly db: Db
  readonly installationKeys: { readonly auditSeal: KeyObject }
}

/** What works on the log in the background. */
export interface AuditParts extends SealParts {
  readonly db: Pool
  readonly databaseKind: Database['kind']
  readonly platform: Platform
  readonly events: Events
  readonly settings: {
    readonly auditRetentionDays: number
    readonly auditPartitionDays: number
    readonly adminAuditRetentionDays: number
  }
}
