// Reports what an import did, or would do: counts, and each row that it left out or changed, with the reason.

export const KINDS = ['application', 'version', 'template', 'activation', 'token', 'webhook'] as const
export type Kind = (typeof KINDS)[number]

export interface Tally {
  readonly found: number
  /** In a dry run: rows that would be imported. */
  readonly imported: number
  readonly alreadyThere: number
  readonly leftOut: number
}

/** Rows that were left out or changed for the same reason. */
export interface Reasoned {
  readonly kind: Kind
  readonly reason: string
  readonly count: number
  /** The ids of the first rows. */
  readonly ids: readonly string[]
}

export interface Report {
  readonly tallies: Readonly<Record<Kind, Tally>>
  readonly leftOut: readonly Reasoned[]
  /** The rows that were taken with a part dropped or changed. */
  readonly mended: readonly Reasoned[]
}

/** The report about a row: why it was left out, or what was mended. */
export type Told = { readonly kind: Kind; readonly id: string } & ({ readonly reason: string } | { readonly mended: string })

export interface Recorder {
  readonly found: (kind: Kind, count: number) => void
  readonly imported: (kind: Kind, count: number) => void
  readonly alreadyThere: (kind: Kind, count: number) => void
  /** Reports a row that is left out. Rows with the same fault have the same `reason`; values of the row go into `detail`. */
  readonly leaveOut: (kind: Kind, id: string, reason: string, detail?: string) => void
  /** Reports a row that is taken with a part dropped or changed. */
  readonly mend: (kind: Kind, id: string, reason: string, detail?: string) => void
  readonly report: () => Report
}

/** `tell` gets every reported row; the report itself keeps only counts and the first ids. */
export function createRecorder(tell: (row: Told) => void): Recorder {
  const tallies = Object.fromEntries(
    KINDS.map((kind) => [kind, { found: 0, imported: 0, alreadyThere: 0, leftOut: 0 }]),
  ) as unknown as Record<Kind, { -readonly [M in keyof Tally]: number }>
  const leftOut = createReasons()
  const mended = createReasons()
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
      leftOut.add(kind, id, reason)
      tell({ kind, id, reason: withDetail(reason, detail) })
    },
    mend: (kind, id, reason, detail) => {
      mended.add(kind, id, reason)
      tell({ kind, id, mended: withDetail(reason, detail) })
    },
    report: () => ({ tallies, leftOut: leftOut.list(), mended: mended.list() }),
  }
}

function createReasons() {
  const reasons = new Map<string, { kind: Kind; reason: string; count: number; ids: string[] }>()
  return {
    add: (kind: Kind, id: string, reason: string): void => {
      const key = `${kind} ${reason}`
      const entry = reasons.get(key) ?? { kind, reason, count: 0, ids: [] }
      reasons.set(key, entry)
      entry.count += 1
      if (entry.ids.length < IDS_SHOWN && !entry.ids.includes(id)) entry.ids.push(id)
    },
    list: (): readonly Reasoned[] => [...reasons.values()],
  }
}

const withDetail = (reason: string, detail: string | undefined): string =>
  detail === undefined ? reason : `${reason}: ${detail}`

const IDS_SHOWN = 10
