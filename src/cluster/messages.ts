// Defines the messages between workers and their primary.

/** To the primary. */
export type WorkerMessage =
  /** The worker listens; `startText` is for the operator, once. */
  | { readonly kind: 'ready'; readonly startText: string }
  /** Its event loop goes round. */
  | { readonly kind: 'alive' }
  /** Asks for a text of every worker. */
  | { readonly kind: 'collect'; readonly id: number }
  /** The text that was asked for. */
  | { readonly kind: 'text'; readonly round: number; readonly text: string }

/** To a worker. */
export type PrimaryMessage =
  | { readonly kind: 'tell'; readonly round: number }
  /** Answers `collect` with the texts of the workers that sent theirs in time. */
  | { readonly kind: 'collected'; readonly id: number; readonly texts: readonly string[] }
