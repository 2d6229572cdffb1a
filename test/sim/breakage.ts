// Servers that are wrong on purpose, so that it is known what a simulation finds. What is spoilt is the text of a statement, or what the
// driver does with a connection; the code under src stays as it is.

export interface Breakage {
  /** The statement as the wrong server would have sent it. */
  readonly patch: (text: string) => string
  /** A connection whose statement was lost within a transaction is used again, and its transaction stays open. */
  readonly keepsBrokenConnections: boolean
  /** How many statements were spoilt. */
  readonly patched: () => number
}

/** In a text of SQL: what the wrong server leaves out, and what it has instead. */
interface Patch {
  readonly isMeant: RegExp
  readonly replaced: RegExp
  readonly by: string
}

export const BREAKAGES = {
  none: () => breaking(undefined),
  /** A code is stored whatever happened to the activation since it was read. */
  'no compare-and-set': () =>
    breaking({ isMeant: MOVES_ACTIVATION, replaced: /and a\.row_version = i\."?row_?version"?/i, by: '' }),
  /** A wrong code leaves no trace in the activation. */
  'failures are not counted': () =>
    breaking({
      isMeant: MOVES_ACTIVATION,
      replaced: /failed_attempts = i\."?failed_?attempts"?/i,
      by: 'failed_attempts = a.failed_attempts',
    }),
  /** A door forgets what it answered. */
  'verdicts of doors are not kept': () =>
    breaking({ isMeant: KEEPS_VERDICTS, replaced: /where "verdictKey" is not null/, by: 'where false' }),
  /** The bank blocks one phone, and all of its user are blocked. */
  'a phone disturbs the others of its user': () =>
    breaking({
      isMeant: /update activation a set state = i\."to", row_version/,
      replaced: /a\.activation_id = i\."activationId" and a\.row_version = i\."rowVersion" and/,
      by: 'a.user_id = (select user_id from activation where activation_id = i."activationId") and',
    }),
  /** The list of a phone has what is for another one. */
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
