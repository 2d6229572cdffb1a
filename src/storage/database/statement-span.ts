// Statements in the trace of the request that causes them: their text with placeholders, never their parameters, which may be secrets.
import type { LogEvent } from 'kysely'
import { failureOf, startSpan } from '../../lib/trace.ts'

/** Told of each statement when it is over. */
export function traceStatement(event: LogEvent): void {
  const { sql: text } = event.query
  const startedMsAgo = event.queryDurationMillis
  const attributes = { 'db.system.name': 'postgresql', 'db.query.text': text }
  const span = startSpan(nameStatement(text), { kind: 'client', attributes, startedMsAgo })
  span?.end({ failure: event.level === 'error' ? failureOf(event.error) : undefined })
}

/** What it does and to which table, of a text with several the first: `select activation`. */
function nameStatement(text: string): string {
  const { insert, remove, update, select } = VERB_AND_TABLE.exec(text)?.groups ?? {}
  if (insert) return `insert ${insert}`
  if (remove) return `delete ${remove}`
  if (update) return `update ${update}`
  return select ? `select ${select}` : (/\w+/.exec(text)?.[0].toLowerCase() ?? 'statement')
}

const VERB_AND_TABLE =
  /\b(?:insert\s+into\s+"?(?<insert>\w+)|delete\s+from\s+"?(?<remove>\w+)|update\s+"?(?<update>\w+)|select\b[^]*?\bfrom\s+"?(?<select>\w+))/i
