// What an import did, or would do: counts, and what it left out, each with its reason.

export const KINDS = ['application', 'version', 'template', 'activation', 'token', 'webhook'] as const
export type Kind = (typeof KINDS)[number]

export interface Tally {
  readonly found: number
  /** In a dry run: would be. */
  readonly imported: number
  readonly alreadyThere: number
  readonly leftOut: number
}

export interface LeftOut {
  readonly kind: Kind
  readonly reason: string
  readonly count: number
  /** The first ones. */
  readonly ids: readonly string[]
}

export interface Report {
  readonly tallies: Readonly<Record<Kind, Tally>>
  readonly leftOut: readonly LeftOut[]
}

/** Counts while the import goes on. */
export interface Recorder {
  readonly found: (kind: Kind, count: number) => void
  readonly imported: (kind: Kind, count: number) => void
  readonly alreadyThere: (kind: Kind, count: number) => void
  /** `reason` is the same text for rows of the same kind of trouble; what is of one row alone goes into `detail`. */
  readonly leaveOut: (kind: Kind, id: string, reason: string, detail?: string) => void
  readonly report: () => Report
}

/** `onLeftOut` is told of every row, of which the report keeps counts and the first ids. */
export function createRecorder(
  onLeftOut: (row: { readonly kind: Kind; readonly id: string; readonly reason: string }) => void,
): Recorder {
  const tallies = Object.fromEntries(
    KINDS.map((kind) => [kind, { found: 0, imported: 0, alreadyThere: 0, leftOut: 0 }]),
  ) as unknown as Record<Kind, { -readonly [M in keyof Tally]: number }>
  const reasons = new Map<string, { kind: Kind; reason: string; count: number; ids: string[] }>()
  return {
    found: (kind, count) => {
      tallies[kind].found += count
    },
    imported: (kind, count) => {
      tallies[kind].imported += count
    },
    alreadyThere: (kind, count) => {
      tallies[kind].alreadyThere += count
    },
    leaveOut: (kind, id, reason, detail) => {
      tallies[kind].leftOut += 1
      const key = `${kind} ${reason}`
      const entry = reasons.get(key) ?? { kind, reason, count: 0, ids: [] }
      reasons.set(key, entry)
      entry.count += 1
      if (entry.ids.length < IDS_SHOWN) entry.ids.push(id)
      onLeftOut({ kind, id, reason: detail === undefined ? reason : `${reason}: ${detail}` })
    },
    report: () => ({ tallies, leftOut: [...reasons.values()] }),
  }
}

const IDS_SHOWN = 10
