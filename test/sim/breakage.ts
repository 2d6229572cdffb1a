// Breaks servers on purpose, to show which faults a simulation finds. It changes the text of a statement, or the driver's use of a connection;
// the code under src stays as it is.

export interface Breakage {
  /** Changes a statement into the one that a wrong server would send. */
  readonly patch: (text: string) => string
  /** Whether a connection is used again after it lost a statement within a transaction, which stays open. */
  readonly keepsBrokenConnections: boolean
  /** The number of changed statements. */
  readonly patched: () => number
}

/** A change of the SQL statements that `isMeant` matches: `by` takes the place of the part `replaced`. */
interface Patch {
  readonly isMeant: RegExp
  readonly replaced: RegExp
  readonly by: string
}

export const BREAKAGES = {
  none: () => breaking(undefined),
  /** A code is stored even if the activation has changed since it was read. */
  'no compare-and-set': () =>
    breaking({
      isMeant: MOVES_ACTIVATION,
      replaced: /and a\.row_version = [^]*? and a\.counter <= coalesce\(i\."fromCounter", a\.counter\)/,
      by: `and a.state = i."from"`,
    }),
  /** A wrong code leaves no trace in the activation. */
  'failures are not counted': () =>
    breaking({
      isMeant: MOVES_ACTIVATION,
      replaced: /failed_attempts = i\."?failed_?attempts"?/i,
      by: 'failed_attempts = a.failed_attempts',
    }),
  /** A door forgets its answers. */
  'verdicts of doors are not kept': () =>
    breaking({ isMeant: KEEPS_VERDICTS, replaced: /where "verdictKey" is not null/, by: 'where false' }),
  /** When the bank blocks one phone, all phones of its user are blocked. */
  'a phone disturbs the others of its user': () =>
    breaking({
      isMeant: /update activation set state = \$\d+, row_version = row_version \+ 1, block_expires_at/,
      replaced: /activation_id = (\$\d+) and row_version = (\$\d+) and/,
      by: 'user_id = (select user_id from activation where activation_id = $1) and (row_version = $2 or true) and',
    }),
  /** The list of a phone contains operations for another phone. */
  'operations for one phone are shown to others': () =>
    breaking({ isMeant: LISTS_OPERATIONS, replaced: LISTS_OPERATIONS, by: 'true' }),
  'connections are used again with an open transaction': () => ({ ...breaking(undefined), keepsBrokenConnections: true }),
} as const satisfies Record<string, () => Breakage>

export type BreakageName = keyof typeof BREAKAGES

const LISTS_OPERATIONS = /\("w"\."activation_id" is null or "w"\."activation_id" = k\."tokenActivationId"\)/
const KEEPS_VERDICTS = /insert into door_verdict[^]*where "verdictKey" is not null/
const MOVES_ACTIVATION = /update activation a set counter = i\.counter/

function breaking(patch: Patch | undefined): Breakage {
  let patched = 0
  return {
    patch: (text) => {
      if (patch === undefined || !patch.isMeant.test(text)) return text
      const spoilt = text.replace(patch.replaced, patch.by)
      if (spoilt === text) throw new Error(`a statement has changed, and cannot be spoilt any more:\n${text}`)
      patched += 1
      return spoilt
    },
    keepsBrokenConnections: false,
    patched: () => patched,
  }
}
