// Reads the values for the mobile app of the default application, from a database that no server has open.
import { createContext } from '../../src/context.ts'
import { readSdkConfiguration } from '../../src/domain/application/application.ts'
import { createLog } from '../../src/log/log.ts'
import { systemPlatform } from '../../src/lib/platform.ts'
import { findDefaultApplicationId } from '../../src/storage/application/applications.ts'
import type { Terminal } from '../command.ts'
import { explainDatabase, readSettings } from './database.ts'

export interface LocalApplication {
  readonly applicationId: string
  readonly mobileSdkConfig: string
}

/**
 * Prepares the database as a start does, PAWL_FIRST_APPLICATION included, and reads the default application. Undefined without one, and when its
 * secret was altered in the database.
 */
export async function readLocalApplication(terminal: Pick<Terminal, 'env'>): Promise<LocalApplication | undefined> {
  const { config, secrets } = readSettings(terminal)
  try {
    const log = createLog('silent', process.stderr)
    const context = await createContext(config, secrets, { platform: systemPlatform, log, worksInBackground: false })
    try {
      const applicationId = await findDefaultApplicationId(context.db)
      if (applicationId === undefined) return undefined
      const { mobileSdkConfig } = await readSdkConfiguration(context, applicationId)
      return mobileSdkConfig === undefined ? undefined : { applicationId, mobileSdkConfig }
    } finally {
      await context.close()
    }
  } catch (error) {
    throw explainDatabase(error)
  }
}
