// Records of an activation are sealed for its user and its application (`places`): a row that somebody moves to another user opens nothing. Those
// of a version before are sealed for their row alone. They are taken until a server has sealed them all anew, and then refused for ever, also
// when one is put back. A row of the database says that they are still taken, under a MAC; without the row they are not.
//
//   OPEN   processes of the version before may run, which read no bound record: new records are unbound
//   BEGUN  new records are bound; once every process knows it, servers seal the others anew
//   none   all are bound
//
// An embedded database has one process, which begins at its start. On PostgreSQL an operator says that none of before is left (`pawl key bind`).
import type { KeyObject } from 'node:crypto'
import type { Events } from '../../log/events.ts'
import { startRounds } from '../../lib/rounds.ts'
import { BOUND_FORM, keyIdOf } from '../../lib/sealed-value.ts'
import type { Database, Db } from '../../storage/database/database.ts'
import { beginBinding, endBinding, findBinding, hasBoundRecords, signBinding } from '../../storage/secrets/record-binding.ts'
import type { BindingStage } from '../../storage/database/schema.ts'
import { OWNED_TABLES } from '../../storage/secrets/sealed-columns.ts'
import type { RecordKeys } from './record-keys.ts'
import { rotateRecords, type RotationTerms } from './rotation.ts'
import { authenticateRow, isRowAuthentic } from './row-mac.ts'

export interface BindingParts {
  readonly db: Db
  readonly recordKeys: RecordKeys
  readonly installationKeys: { readonly credentialMac: KeyObject }
  readonly events: Pick<Events, 'bindingAltered' | 'bindingStage' | 'bindingFailed' | 'recordsBound'>
}

/** What the row says of this moment. */
interface Binding {
  readonly stage: BindingStage
  /** Whether every process knows it. */
  readonly isSettled: boolean
}

/**
 * Reads the row, and sets the record keys of this process to its stage; undefined when all records are bound. An altered row counts as missing,
 * and a process never goes back to an earlier stage. `scan` is the connection for the long search that tells the row of a migration from a
 * forged one.
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
  /** False for a process that leaves the sealing to others. */
  readonly works: boolean
  /** The time after which every process knows that the binding has begun. */
  readonly settleSeconds?: number
  readonly intervalMs?: number
}

/** Follows the row from the start on, and seals records anew when needed. The returned function stops that, and waits for a running round. */
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
      // What could not be sealed now cannot be in a moment.
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
 * Seals unbound records anew, and ends the binding when none is left: then it returns true. Altered records are left, and refused from then on.
 * While records are under a missing master key, the binding does not end.
 */
export async function bindRecords(parts: BindingParts, signal?: AbortSignal): Promise<boolean> {
  const { db, recordKeys, events } = parts
  let isKeyMissing = false
  const isDone: RotationTerms['isDone'] = ({ bound }, value) => {
    if (bound === undefined || value[0] === BOUND_FORM) return true
    isKeyMissing ||= !recordKeys.keyIds.includes(keyIdOf(value))
    return false
  }
  const terms = { tables: OWNED_TABLES, isDone, ...(signal && { signal }) }
  const rotation = await rotateRecords(parts, undefined, terms).catch((error: unknown) => {
    if (signal?.aborted !== true) throw error
  })
  // The process ends; the next one goes on.
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
/** A process that has not asked for so long seals no unbound record, and says that it is not available. */
const KNOWN_MS = 30_000
/** Longer than that, and than what was sealed in its last moment needs to be stored. */
const SETTLE_SECONDS = 120
