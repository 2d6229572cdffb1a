// Whether the configured master key belongs to the configured database.
import { StartError } from '../../src/lib/errors.ts'
import type { Answer, Terminal } from '../command.ts'
import { Fault } from '../fault.ts'
import { openInstallationKeys, withDatabase } from './database.ts'

/** Throws a Fault when it opens nothing there. */
export const checkKey = (terminal: Terminal): Promise<Answer> =>
  withDatabase(terminal, { mustExist: true }, async (database, settings) => {
    try {
      await openInstallationKeys(database, settings)
    } catch (error) {
      throw error instanceof StartError ? new Fault('refused', error.message) : error
    }
    return { json: { database: database.location, isOpened: true }, text: `${database.location}: the master key opens it\n` }
  })
