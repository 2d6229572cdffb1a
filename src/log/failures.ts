// Failures that come again and again, as in an outage of the database: the first of a kind is told in full, the others are counted,
// and a line says when it is over. Without that, an outage writes a stack for each request that it refuses.
import { runInScope } from '../lib/trace.ts'
import type { Log } from './log.ts'

export interface Failures {
  /** `fields` and stack for the first of its kind, `fields` alone for the others where `isEachTold`, else they are counted. */
  readonly tell: (level: 'error' | 'warn', fields: { readonly err: unknown }, text: string, isEachTold?: boolean) => void
}

interface Kind {
  readonly level: 'error' | 'warn'
  readonly text: string
  readonly message: string
  readonly since: number
  last: number
  count: number
  told: number
}

/** Failures are of a kind when they have the same text and the same error. A kind is over when it was not seen for `QUIET_MS`. */
export function createFailures(log: Log): Failures {
  const kinds = new Map<string, Kind>()
  let timer: NodeJS.Timeout | undefined

  const look = (): void => {
    const now = performance.now()
    for (const [key, kind] of kinds) {
      const fields = { what: kind.text, error: kind.message, failures: kind.count }
      if (now - kind.last >= QUIET_MS) {
        kinds.delete(key)
        if (kind.count > 1) log[kind.level]({ ...fields, seconds: toSeconds(kind.last - kind.since) }, 'a failure is over')
      } else if (now - kind.told >= REMINDER_MS) {
        kind.told = now
        log[kind.level]({ ...fields, seconds: toSeconds(now - kind.since) }, 'a failure goes on')
      }
    }
    if (kinds.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
  return {
    tell(level, fields, text, isEachTold = false) {
      const now = performance.now()
      const { err, ...others } = fields
      const message = describe(err)
      // Kinds beyond the bound share one entry: messages that are all different must not fill the memory.
      const key = kinds.size < KINDS_MAX ? `${text}: ${message}` : text
      const known = kinds.get(key)
      if (known === undefined) {
        kinds.set(key, { level, text, message, since: now, last: now, count: 1, told: now })
        // Lines of a request have its id, and those of the timer are of no request.
        timer ??= runInScope(undefined, () => setInterval(look, LOOK_MS).unref())
        log[level](fields, text)
        return
      }
      known.count += 1
      known.last = now
      if (isEachTold) log[level]({ ...others, error: message }, text)
    },
  }
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { code } = error as { code?: unknown }
  return typeof code === 'string' ? `${code} ${error.message}` : error.message
}

const toSeconds = (ms: number): number => Math.round(ms / 1000)

const LOOK_MS = 5_000
/** Longer than a statement may take and the wait for the next round of background work together. */
const QUIET_MS = 30_000
const REMINDER_MS = 60_000
const KINDS_MAX = 100
