// Counts failures over all processes of a database. Each process counts in its own memory and decides by that count. It also writes failures to the
// database, whose answer has the count of all processes (docs/decisions/0001-work-for-strangers.md). A request that does not fail costs no
// statement.
import type { KeyObject } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { hmac } from '../../crypto/hash.ts'
import { toHex, utf8 } from '../../lib/bytes.ts'
import type { Platform } from '../../lib/platform.ts'
import { runInScope } from '../../lib/trace.ts'
import type { Db } from '../../storage/database/database.ts'
import { addFailures, type FailureCountRow, findFailures } from '../../storage/credential/failure-counts.ts'

/** The counts of all processes for a key. Times are milliseconds of this process's monotonic clock. */
export interface Standing {
  /** The failures in the minute that ends at `endsAt`. */
  readonly failures: number
  readonly endsAt: number
  /** The number of waits in a row. `waitEndsAt` is the end of the last one, and has no meaning without a wait. */
  readonly waits: number
  readonly waitEndsAt: number
}

export interface SharedFailures {
  /**
   * Writes a failure to the database within some milliseconds, together with other failures, and calls `adopt` with the counts of all
   * processes.
   */
  readonly tell: (key: string, failure: Standing, adopt: (standing: Standing) => void) => void
  /** Reads the counts of all processes from the database; undefined for a key without failures. */
  readonly ask: (key: string) => Promise<Standing | undefined>
}

interface Waiting {
  failure: Standing
  readonly adopt: ((standing: Standing) => void)[]
}

/**
 * Creates the shared counts. Times in the database are by its clock. Keys are stored as hashes under `lookup`, because somebody may type a password
 * as a user name.
 */
export function createSharedFailures(
  db: Db,
  lookup: KeyObject,
  { now, monotonic }: Pick<Platform, 'now' | 'monotonic'>,
): SharedFailures {
  const toDate = (time: number): Date => new Date(time - monotonic() + now())
  const fromDate = (date: Date): number => date.getTime() - now() + monotonic()
  const hashOf = (key: string): Uint8Array => hmac(lookup, utf8(`failure\0${key}`))
  const toRow = (key: string, { failures, endsAt, waits, waitEndsAt }: Standing): FailureCountRow => ({
    failureKey: hashOf(key),
    failures,
    endsAt: toDate(endsAt),
    waits,
    waitEndsAt: waits === 0 ? LONG_AGO : toDate(waitEndsAt),
  })
  const readByHash = async (read: Promise<readonly FailureCountRow[]>): Promise<ReadonlyMap<string, Standing>> =>
    new Map(
      (await read).map(({ failureKey, failures, endsAt, waits, waitEndsAt }) => [
        toHex(failureKey),
        { failures, endsAt: fromDate(endsAt), waits, waitEndsAt: fromDate(waitEndsAt) },
      ]),
    )
  let waiting = new Map<string, Waiting>()
  let isTelling = false

  const tellAll = async (): Promise<void> => {
    const told = waiting
    waiting = new Map()
    const rows = [...told].map(([key, { failure }]) => toRow(key, failure))
    const standings = await readByHash(addFailures(db, rows))
    for (const [key, { adopt }] of told) {
      const standing = standings.get(toHex(hashOf(key)))
      if (standing) for (const each of adopt) each(standing)
    }
  }

  const keepTelling = async (): Promise<void> => {
    isTelling = true
    while (waiting.size > 0) {
      // While the database does not answer, each process decides by its own count.
      await tellAll().catch(() => undefined)
      await sleep(PAUSE_MS, undefined, { ref: false })
    }
    isTelling = false
  }

  return {
    tell: (key, failure, adopt) => {
      const known = waiting.get(key)
      if (known !== undefined) {
        known.failure = merge(known.failure, failure)
        known.adopt.push(adopt)
      } else if (waiting.size < KEYS_MAX) waiting.set(key, { failure, adopt: [adopt] })
      // This work belongs to no request. It goes on while failures wait to be written.
      if (!isTelling) void runInScope(undefined, keepTelling)
    },
    ask: async (key) => {
      const hash = hashOf(key)
      return (await readByHash(findFailures(db, hash))).get(toHex(hash))
    },
  }
}

const merge = (one: Standing, other: Standing): Standing => ({
  failures: one.failures + other.failures,
  endsAt: Math.max(one.endsAt, other.endsAt),
  waits: Math.max(one.waits, other.waits),
  waitEndsAt: Math.max(one.waitEndsAt, other.waitEndsAt),
})

const LONG_AGO = new Date(0)
/** The pause between two statements of a process. So constant failures cause at most 50 statements a second. */
const PAUSE_MS = 20
const KEYS_MAX = 1_000
