// One connection to PostgreSQL, watched: it is used again only while it answers and is known to be outside of any transaction. Otherwise
// what is answered 200 could lie in a transaction that nobody commits.
import type { PostgresPoolClient } from 'kysely'
import type { PoolClient, QueryResult } from 'pg'

export interface WatchedConnection extends Pick<PostgresPoolClient, 'release'> {
  /** One statement with its parameters. Rejects when the connection is not fit for use any more, also when the statement was done. */
  readonly query: (text: string, parameters: readonly unknown[]) => Promise<QueryResult>
  /**
   * Ends the connection unless it has answered after `turn`. A statement that waits for its answer has a last second: it may have been sent
   * just now, and its outcome is unknown once the connection is ended.
   */
  readonly endIfSilentSince: (turn: number) => void
  /** Ends the connection; what waits for an answer fails. */
  readonly end: (reason: string) => void
  /** Ends the connection now, or with the statement that waits for its answer. */
  readonly retire: (reason: string) => void
  /** How long the statement under way has waited for its answer, in milliseconds; 0 without one. */
  readonly waitedMs: () => number
}

interface WatchOptions {
  /** How long a statement may wait for its answer; undefined is for ever. */
  readonly answerMs: number | undefined
  /** Counts what is sent and answered on all connections of a pool, to tell what came first. */
  readonly nextTurn: () => number
  /** Told of a statement that was not answered in time, with the turn in which it was sent. */
  readonly onSilence: (sentAt: number) => void
  /** Told of every statement that failed. */
  readonly onFailure: (error: unknown) => void
  /** The name under which a text with parameters is prepared; undefined where it is to stay unprepared. */
  readonly nameOf: (text: string) => string | undefined
}

/** Watches a connection that has just been made. */
export function watchConnection(client: PoolClient, options: WatchOptions): WatchedConnection {
  const { answerMs, nextTurn, onSilence, onFailure, nameOf } = options
  let answeredAt = nextTurn()
  let isFit = true
  let hasBegun = false
  let waitsSince: number | undefined
  let deadline: NodeJS.Timeout | undefined
  // Fails what waits for an answer, and the pool lets go of it.
  const end = (reason: string): void => {
    isFit = false
    client.connection.stream.destroy(connectionLost(reason))
  }

  const waitFor = (milliseconds: number, sentAt: number): void => {
    clearTimeout(deadline)
    const own = setTimeout(() => {
      // An answer that has lain in the socket because this process was held up is read first.
      setImmediate(() => {
        if (deadline !== own) return
        end(`the database did not answer within ${answerMs} ms`)
        onSilence(sentAt)
      })
    }, milliseconds)
    deadline = own
  }

  const query = async (text: string, parameters: readonly unknown[]): Promise<QueryResult> => {
    if (BEGINS.test(text)) hasBegun = true
    else if (ENDS.test(text)) hasBegun = false
    const sentAt = nextTurn()
    waitsSince = performance.now()
    if (answerMs !== undefined) waitFor(answerMs, sentAt)
    try {
      const named = parameters.length > 0 && { name: nameOf(text), values: [...parameters] }
      const result = await client.query({ text, ...named })
      answeredAt = nextTurn()
      // What was done in a transaction that nobody commits is not durable, whatever its answer says.
      if (hasBegun || client.getTransactionStatus() === OUTSIDE) return result
    } catch (error) {
      onFailure(error)
      // A primary that has become a standby, or takes no writes for another reason: the next connection may lead elsewhere.
      if (codeOf(error) === READ_ONLY) isFit = false
      // 25P02: the transaction has failed before, and those who began it were told.
      if (!isAborted(error)) throw error
      isFit = false
      if (hasBegun) throw error
    } finally {
      clearTimeout(deadline)
      deadline = undefined
      waitsSince = undefined
    }
    end('the connection is in a transaction that nobody began')
    throw connectionLost('the connection was in a transaction that nobody began')
  }

  return {
    query,
    // Ends the connection together with its transaction, so that the database rolls back.
    release: (isDiscarded) => client.release(isDiscarded === true || !isFit || client.getTransactionStatus() !== OUTSIDE),
    endIfSilentSince: (turn) => {
      if (answeredAt > turn || !isFit) return
      if (deadline === undefined) end('the connection has fallen silent')
      else waitFor(LAST_SECOND_MS, turn)
    },
    end,
    retire: (reason) => {
      if (waitsSince === undefined) end(reason)
      else isFit = false
    },
    waitedMs: () => (waitsSince === undefined ? 0 : performance.now() - waitsSince),
  }
}

/** SQLSTATE 08006: the outcome of what was under way is unknown. */
const connectionLost = (message: string): Error => Object.assign(new Error(message), { code: '08006' })

const isAborted = (error: unknown): boolean => codeOf(error) === '25P02'

/** SQLSTATE, or what a socket says; undefined where there is none. */
export const codeOf = (error: unknown): unknown =>
  typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined

/** SQLSTATE read_only_sql_transaction. */
export const READ_ONLY = '25006'
/** SQLSTATE sqlclient_unable_to_establish_sqlconnection: what was to be done was not even sent. The cause says why. */
export const NOT_SENT = '08001'
/** SQLSTATE too_many_connections: of the server, the database or the role. */
export const NO_ROOM = '53300'
// ReadyForQuery says I outside of a transaction, T within one, E within one that has failed.
const OUTSIDE = 'I'
const BEGINS = /^(begin|start transaction)\b/i
const ENDS = /^(commit|rollback)$/i
const LAST_SECOND_MS = 1_000
