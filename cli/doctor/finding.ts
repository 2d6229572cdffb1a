// Defines the findings of the doctor, and the instruments of its examinations.
import type { Environment } from '../environment.ts'
import type { Settings } from '../local/database.ts'
import type { Database } from '../../src/storage/database/database.ts'
import type { FoundPooler } from './pooler-probe.ts'

export interface Finding {
  readonly check: string
  /** `skipped`: the check was impossible, mostly because of an earlier finding. */
  readonly state: 'ok' | 'warning' | 'fault' | 'skipped'
  readonly says: string
  /** The advice. */
  readonly todo?: string
}

export const ok = (check: string, says: string): Finding => ({ check, state: 'ok', says })
export const skipped = (check: string, says: string): Finding => ({ check, state: 'skipped', says })
export const warning = (check: string, says: string, todo: string): Finding => ({ check, state: 'warning', says, todo })
export const fault = (check: string, says: string, todo: string): Finding => ({ check, state: 'fault', says, todo })

const DAY_MS = 86_400_000
const EXPIRY_DAYS = 14

/** Judges the end of a certificate. It is a warning two weeks ahead. `now`: milliseconds since 1970. */
export function judgeEnd(check: string, says: string, todo: string, { endsAt, now }: { endsAt: Date; now: number }): Finding {
  const leftMs = endsAt.getTime() - now
  if (leftMs <= 0) return fault(check, says, todo)
  return leftMs < EXPIRY_DAYS * DAY_MS ? warning(check, says, todo) : ok(check, says)
}

/** The doctor's access to the world; tests replace it. */
export interface Instruments {
  readonly env: Environment
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** Opens the configured database. Throws as openDatabase does. */
  readonly open: (settings: Settings) => Promise<Database>
  /** Finds out whether DATABASE_URL leads to a pooler. Rejects when nothing answers. */
  readonly findPooler: (databaseUrl: string) => Promise<FoundPooler>
  /** Bytes that can still be written where the path lies; undefined where it does not tell. Rejects when the disk takes no writes. */
  readonly writableBytes: (path: string) => Promise<number | undefined>
  /** Connects to the host and port of the URL. Rejects when nothing takes the connection in time. */
  readonly connect: (url: URL) => Promise<void>
  /** Reads the end of a TLS server's certificate, and the reason why its chain does not verify, if so. */
  readonly readCertificate: (
    host: string,
    port: number,
  ) => Promise<{ readonly expiresAt: Date; readonly chainProblem: string | undefined }>
}
