// Imports the database of a PowerAuth server (docs/IMPORT.md). Rows come after those that they refer to.
import { Fault } from '../fault.ts'
import { importActivations, openServerKeyPair } from './activations.ts'
import { importApplications } from './applications.ts'
import { importCallbacks } from './callbacks.ts'
import type { SourceParts, TargetParts } from './parts.ts'
import type { Report } from './report.ts'
import { importTemplates } from './templates.ts'

export interface ImportReport extends Report {
  /** Counts of rows for which pawl has no table. */
  readonly notTaken: { readonly pendingOperations: number; readonly recoveryCodes: number }
}

/** Opens the target and runs `work` on it. */
export type WithTarget = (work: (target: TargetParts) => Promise<ImportReport>) => Promise<ImportReport>

/**
 * Imports every row that pawl does not have yet. Opens the target only after the master DB encryption key has opened a record; otherwise throws
 * a Fault. Webhooks come last, so that they get no messages about imported activations.
 */
export async function importAll(from: SourceParts, withTarget: WithTarget): Promise<ImportReport> {
  await checkMasterDbKey(from)
  return withTarget(async (target) => {
    const parts = { ...from, ...target }
    const { operations, recoveryCodes } = await from.source.countOthers()
    const applications = await importApplications(parts)
    await importTemplates(parts)
    await importActivations(parts, applications)
    await importCallbacks(parts, applications)
    return { ...from.record.report(), notTaken: { pendingOperations: operations, recoveryCodes } }
  })
}

/** A single record that does not open may be spoiled. When none of several opens, the key is wrong. */
async function checkMasterDbKey(from: SourceParts): Promise<void> {
  const samples = await from.source.encryptedActivations(SAMPLES)
  if (samples.length === 0 || samples.some((row) => openServerKeyPair(from, row) !== undefined)) return
  throw new Fault(
    'refused',
    from.hasMasterDbKey
      ? `the master DB encryption key opens none of ${samples.length} encrypted records: nothing was imported`
      : 'the records are encrypted: give the master DB encryption key with --master-db-key-file; nothing was imported',
  )
}

const SAMPLES = 200
