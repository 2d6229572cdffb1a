// Shortens the log of failures that repeat, as in an outage of the database. The first failure of a kind has a full line, the others are counted,
// and a line reports the end. Otherwise an outage would write a stack for each refused request.
import { runInScope } from '../lib/trace.ts'
import type { Log } from './log.ts'

export interface Failures {
  /**
   * The first failure of a kind has a line with `fields` and the stack. The others are counted; with `isEachTold` each also has a line without the
   * stack.
   */
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

/** Failures with the same text and the same error are of one kind. A kind is over after `QUIET_MS` without a failure. */
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
      // Beyond the bound, all kinds of one text share one entry: messages that are all different must not fill the memory.
      const key = kinds.size < KINDS_MAX ? `${text}: ${message}` : text
      const known = kinds.get(key)
      if (known === undefined) {
        kinds.set(key, { level, text, message, since: now, last: now, count: 1, told: now })
        // A line that is written within a request has its id. The timer's lines belong to no request.
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
/** This is longer than a statement and the pause before the next round of background work may take together. */
const QUIET_MS = 30_000
const REMINDER_MS = 60_000
const KINDS_MAX = 100
