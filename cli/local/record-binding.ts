// pawl key bind: begins to bind sealed records to their users, and says how far a database of an earlier version has come.
import { beginToBind, followBinding } from '../../src/domain/secrets/binding.ts'
import type { Database } from '../../src/storage/database/database.ts'
import { requireMigrated } from '../../src/storage/database/migrate.ts'
import { countUnbound, findBinding } from '../../src/storage/secrets/record-binding.ts'
import type { BindingStage } from '../../src/storage/database/schema.ts'
import type { Answer, Terminal } from '../command.ts'
import { openBindingParts, patiently, withDatabase } from './database.ts'

export interface BindingProgress {
  readonly stage: BindingStage | 'BOUND'
  /** Rows with a record that is bound to no user. */
  readonly left: number
}

/** Reads how far the binding has come. Before its end, it reads every row. */
export async function readBinding(database: Database): Promise<BindingProgress> {
  const row = await findBinding(database.db, 0)
  return row === undefined ? { stage: 'BOUND', left: 0 } : { stage: row.stage, left: await patiently(database, countUnbound) }
}

/** Begins the binding, unless it has begun. */
export const bindRecords = (terminal: Terminal): Promise<Answer> =>
  withDatabase(terminal, { mustExist: true }, async (database, settings, platform) => {
    await requireMigrated(database.db)
    if ((await findBinding(database.db, 0)) !== undefined) {
      const parts = await openBindingParts(database, settings, platform)
      const binding = await patiently(database, (scan) => followBinding(parts, { scan }))
      if (binding?.stage === 'OPEN') await beginToBind(parts)
    }
    const progress = await readBinding(database)
    return {
      json: { ...progress },
      text: `${SAID[progress.stage](progress.left)}\n`,
      exitCode: progress.stage === 'OPEN' ? 1 : 0,
    }
  })

const SAID: Readonly<Record<BindingProgress['stage'], (left: number) => string>> = {
  BOUND: () => 'all sealed records are bound to their users',
  BEGUN: (left) =>
    `new records are bound to their users; ${left} rows are left, which servers seal anew two minutes after the beginning`,
  OPEN: (left) => `the row of record_binding was altered in the database; ${left} rows are not bound to their users`,
}
