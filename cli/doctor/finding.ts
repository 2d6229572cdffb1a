// The findings of the doctor, and the parts that its examinations use.
import type { Environment } from '../environment.ts'
import type { Settings } from '../local/database.ts'
import type { Database } from '../../src/storage/database/database.ts'
import type { FoundPooler } from './pooler-probe.ts'

export interface Finding {
  readonly check: string
  /** `skipped`: could not be looked at, because of what was found before. */
  readonly state: 'ok' | 'warning' | 'fault' | 'skipped'
  readonly says: string
  /** The advice. */
  readonly todo?: string
}

export const ok = (check: string, says: string): Finding => ({ check, state: 'ok', says })
export const skipped = (check: string, says: string): Finding => ({ check, state: 'skipped', says })
export const warning = (check: string, says: string, todo: string): Finding => ({ check, state: 'warning', says, todo })
export const fault = (check: string, says: string, todo: string): Finding => ({ check, state: 'fault', says, todo })

/** The doctor's access to the world; tests replace it. */
export interface Instruments {
  readonly env: Environment
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** Opens the configured database. Throws as openDatabase does. */
  readonly open: (settings: Settings) => Promise<Database>
  /** Looks at what DATABASE_URL leads to. Rejects when nothing answers. */
  readonly findPooler: (databaseUrl: string) => Promise<FoundPooler>
  /** Bytes that are left where the path lies. */
  readonly freeBytes: (path: string) => number
  /** Rejects when nothing takes a connection in time where the URL leads. */
  readonly connect: (url: URL) => Promise<void>
  /** The end of the certificate that a TLS server shows, and why its chain does not verify. */
  readonly readCertificate: (
    host: string,
    port: number,
  ) => Promise<{ readonly expiresAt: Date; readonly chainProblem: string | undefined }>
}
