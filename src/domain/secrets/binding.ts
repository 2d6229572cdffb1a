// Moves an installation to sealed records that are bound to their owner. A bound record of an activation is sealed for its user and its application
// (`places`), so it does not open in the row of another user. Versions before sealed a record for its row alone. Such unbound records are accepted
// until a server has sealed them all anew. Then they are refused for ever, even when somebody puts one back. A row of the database with a MAC says
// that unbound records are still accepted. Without this row they are refused.
//
//   OPEN   processes of the version before may run, which read no bound record: new records are unbound
//   BEGUN  new records are bound; once every process knows it, servers seal the others anew
//   none   all are bound
//
// An embedded database has one process, which begins to bind at its start. On PostgreSQL an operator begins with `pawl key bind`, once no process
// of the version before runs.
import type { KeyObject } from 'node:crypto'
import type { Events } from '../../log/events.ts'
import { startRounds } from '../../lib/rounds.ts'
import { BOUND_FORM, keyIdOf } from '../../lib/sealed-value.ts'
import type { Database, Db } from '../../storage/database/database.ts'
import { beginBinding, endBinding, findBinding, hasBoundRecords, signBinding } from '../../storage/secrets/record-binding.ts'
import type { BindingStage } from '../../storage/database/schema.ts'
import { OWNED_TABLES } from '../../storage/secrets/sealed-columns.ts'
import { type RecordKeys, SEALED_BYTES_MIN } from './record-keys.ts'
import { rotateRecords, type RotationTerms } from './rotation.ts'
import { authenticateRow, isRowAuthentic } from './row-mac.ts'

export interface BindingParts {
  readonly db: Db
  readonly recordKeys: RecordKeys
  readonly installationKeys: { readonly credentialMac: KeyObject }
  readonly events: Pick<Events, 'bindingAltered' | 'bindingStage' | 'bindingFailed' | 'recordsBound'>
}

/** The stage in the row at this moment. */
interface Binding {
  readonly stage: BindingStage
  /** Whether every process has read this stage. */
  readonly isSettled: boolean
}

/**
 * Reads the row, and sets the record keys of this process to its stage. Undefined when all records are bound. An altered row counts as missing, and
 * a process never goes back to an earlier stage. A row of a migration has no MAC yet; a long search for bound records shows that it is not forged.
 * `scan` is the connection for this search.
 */
export async function followBinding(
  { db, recordKeys, installationKeys, events }: BindingParts,
  { scan = db, settleSeconds = SETTLE_SECONDS }: { readonly scan?: Db; readonly settleSeconds?: number } = {},
): Promise<Binding | undefined> {
  const { credentialMac } = installationKeys
  let askedAt = performance.now()
  let row = await findBinding(db, settleSeconds)
  if (row?.stage === 'OPEN' && row.mac === null && !(await hasBoundRecords(scan))) {
    await signBinding(db, macOf(credentialMac, 'OPEN'))
    askedAt = performance.now()
    row = await findBinding(db, settleSeconds)
  }
  const isAuthentic = row !== undefined && isRowAuthentic(credentialMac, decidingRow(row.stage), row.mac)
  if (row !== undefined && !isAuthentic) events.bindingAltered()
  const stage = isAuthentic ? row?.stage : undefined
  recordKeys.boundRecords.areUnboundTaken = stage !== undefined
  recordKeys.boundRecords.areBound ||= stage !== 'OPEN'
  recordKeys.boundRecords.knownUntil = askedAt + KNOWN_MS
  return stage && { stage, isSettled: row?.isSettled === true }
}

/** Begins the binding: new records are bound from now on, and servers seal the others anew. */
export async function beginToBind(parts: BindingParts): Promise<Binding | undefined> {
  await beginBinding(parts.db, macOf(parts.installationKeys.credentialMac, 'BEGUN'))
  return followBinding(parts)
}

export interface BindingTerms {
  readonly database: Pick<Database, 'kind' | 'openPatient'>
  /** False for a process that does not seal records anew itself. */
  readonly works: boolean
  /** After so many seconds every process has read that the binding has begun. */
  readonly settleSeconds?: number
  readonly intervalMs?: number
}

/**
 * Reads the row at the start and then regularly, and seals records anew when needed. The returned function stops this and waits for a running
 * round.
 */
export async function startBinding(
  parts: BindingParts,
  { database, works, settleSeconds = database.kind === 'embedded' ? 0 : SETTLE_SECONDS, intervalMs = INTERVAL_MS }: BindingTerms,
): Promise<() => Promise<void>> {
  const { events } = parts
  parts.recordKeys.boundRecords.areBound = false
  let stage = (await followAtStart(parts, database))?.stage
  if (stage === undefined) return async () => undefined
  events.bindingStage({ stage })
  let dueAt = 0
  return startRounds(
    async (signal) => {
      if (stage === undefined) return
      const binding = await followBinding(parts, { settleSeconds })
      const isDue = works && binding?.stage === 'BEGUN' && binding.isSettled && performance.now() >= dueAt
      // If a round leaves records, the next one would leave them too. So the process waits for a while.
      if (isDue) dueAt = performance.now() + AGAIN_MS
      const next = isDue && (await bindRecords(parts, signal)) ? undefined : binding?.stage
      if (next !== stage) events.bindingStage({ stage: next ?? 'BOUND' })
      stage = next
    },
    intervalMs,
    { onFailure: (err) => events.bindingFailed({ err }) },
  )
}

async function followAtStart(parts: BindingParts, { kind, openPatient }: BindingTerms['database']): Promise<Binding | undefined> {
  const patient = openPatient?.()
  try {
    const first = await followBinding(parts, { scan: patient?.db ?? parts.db })
    return first?.stage === 'OPEN' && kind === 'embedded' ? await beginToBind(parts) : first
  } finally {
    await patient?.close()
  }
}

/**
 * Seals unbound records anew. Ends the binding and returns true when none is left. Altered records stay, and are refused from then on. While some
 * records are under a missing master key, the binding does not end.
 */
export async function bindRecords(parts: BindingParts, signal?: AbortSignal): Promise<boolean> {
  const { db, recordKeys, events } = parts
  let isKeyMissing = false
  const isDone: RotationTerms['isDone'] = ({ bound }, value) => {
    if (bound === undefined || value[0] === BOUND_FORM) return true
    isKeyMissing ||= value.length >= SEALED_BYTES_MIN && !recordKeys.keyIds.includes(keyIdOf(value))
    return false
  }
  const terms = { tables: OWNED_TABLES, isDone, ...(signal && { signal }) }
  const rotation = await rotateRecords(parts, undefined, terms).catch((error: unknown) => {
    if (signal?.aborted !== true) throw error
  })
  // This process is stopping. The next one continues.
  if (rotation === undefined) return false
  const { replaced, left, unopened } = rotation
  events.recordsBound({ replaced, left, unopened })
  if (left > 0 || isKeyMissing) return false
  await endBinding(db)
  recordKeys.boundRecords.areUnboundTaken = false
  return true
}

const decidingRow = (stage: BindingStage) => ({ table: 'record_binding', fields: [stage] })
const macOf = (key: KeyObject, stage: BindingStage): Uint8Array => authenticateRow(key, decidingRow(stage))

const INTERVAL_MS = 5_000
const AGAIN_MS = 60_000
/** A process that has not read the row for so long does not seal unbound records, and answers UNAVAILABLE. */
const KNOWN_MS = 30_000
/** Longer than KNOWN_MS, plus the time to store a record that was sealed in its last moment. */
const SETTLE_SECONDS = 120
