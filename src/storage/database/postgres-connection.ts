// Watches one connection to PostgreSQL. It is reused only while it answers and is known to be outside of any transaction. Otherwise a request could
// get 200 for a change that lies in a transaction which nobody commits.
import type { PostgresPoolClient } from 'kysely'
import type { PoolClient, QueryResult } from 'pg'

export interface WatchedConnection extends Pick<PostgresPoolClient, 'release'> {
  /** Runs one statement with its parameters. Rejects when the connection must not be used any more, even if the statement was executed. */
  readonly query: (text: string, parameters: readonly unknown[]) => Promise<QueryResult>
  /**
   * Ends the connection unless it has answered after `turn`. If a statement is waiting for its answer, the connection gets one more second: the
   * statement may have been sent just now, and its outcome is unknown once the connection is ended.
   */
  readonly endIfSilentSince: (turn: number) => void
  /** Ends the connection; a statement that waits for its answer fails. */
  readonly end: (reason: string) => void
  /** Ends the connection now, or after the statement that waits for its answer. */
  readonly retire: (reason: string) => void
  /** Returns how long the current statement has waited for its answer, in milliseconds; 0 without one. */
  readonly waitedMs: () => number
}

interface WatchOptions {
  /** How long a statement may wait for its answer, in milliseconds; undefined: for ever. */
  readonly answerMs: number | undefined
  /** Numbers the statements and answers on all connections of a pool, so that their order is known. */
  readonly nextTurn: () => number
  /** Called when a statement was not answered in time, with the turn in which it was sent. */
  readonly onSilence: (sentAt: number) => void
  /** Called for every statement that failed. */
  readonly onFailure: (error: unknown) => void
  /** Returns the name under which a text with parameters is prepared; undefined: the text is not prepared. */
  readonly nameOf: (text: string) => string | undefined
}

/** Watches a new connection. */
export function watchConnection(client: PoolClient, options: WatchOptions): WatchedConnection {
  const { answerMs, nextTurn, onSilence, onFailure, nameOf } = options
  let answeredAt = nextTurn()
  let isFit = true
  let hasBegun = false
  let waitsSince: number | undefined
  let deadline: NodeJS.Timeout | undefined
  // Fails the statement that waits for an answer, and makes the pool drop the connection.
  const end = (reason: string): void => {
    isFit = false
    client.connection.stream.destroy(connectionLost(reason))
  }

  const waitFor = (milliseconds: number, sentAt: number): void => {
    clearTimeout(deadline)
    const own = setTimeout(() => {
      // This process may have been held up while an answer lay in the socket. setImmediate lets that answer be read first.
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
      // A change in a transaction that nobody commits is not durable, whatever the answer to its statement says.
      if (hasBegun || client.getTransactionStatus() === OUTSIDE) return result
    } catch (error) {
      onFailure(error)
      // The server has become a standby, or takes no writes for another reason. A new connection may lead to another server.
      if (codeOf(error) === READ_ONLY) isFit = false
      // 25P02: an earlier statement has failed in this transaction, and its caller got that error.
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
    // Ends a connection that is within a transaction, so that the database rolls back.
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

/** SQLSTATE 08006: the outcome of the current statement is unknown. */
const connectionLost = (message: string): Error => Object.assign(new Error(message), { code: '08006' })

const isAborted = (error: unknown): boolean => codeOf(error) === '25P02'

/** Returns the SQLSTATE or the code of a socket error; undefined when there is none. */
export const codeOf = (error: unknown): unknown =>
  typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined

/** SQLSTATE read_only_sql_transaction. */
export const READ_ONLY = '25006'
/** SQLSTATE sqlclient_unable_to_establish_sqlconnection: the statement was not sent. The cause of the error says why. */
export const NOT_SENT = '08001'
/** SQLSTATE too_many_connections: the server, the database or the role has reached its limit. */
export const NO_ROOM = '53300'
// ReadyForQuery says I outside of a transaction, T within one, E within a failed one.
const OUTSIDE = 'I'
const BEGINS = /^(begin|start transaction)\b/i
const ENDS = /^(commit|rollback)$/i
const LAST_SECOND_MS = 1_000
