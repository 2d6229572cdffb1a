// pawl admin reset: gives the administrator a new password in the database itself.
import { resetAdmin } from '../../src/domain/credential/administrator.ts'
import { createCredentials } from '../../src/domain/credential/credential.ts'
import { forPaths, USERNAME } from '../../src/lib/identifier.ts'
import { createEvents } from '../../src/log/events.ts'
import { createLog } from '../../src/log/log.ts'
import type { Platform } from '../../src/lib/platform.ts'
import type { Database } from '../../src/storage/database/database.ts'
import { migrateDatabase } from '../../src/storage/database/migrate.ts'
import { Fault } from '../fault.ts'
import { openInstallationKeys, type Settings } from './database.ts'

const NAME = forPaths(USERNAME)

/** Makes the user of this name an administrator, and returns the new password. Throws a Fault for a name that cannot be a user name. */
export async function resetAdministrator(
  database: Database,
  settings: Settings,
  platform: Platform,
  user: string,
): Promise<string> {
  if (!new RegExp(NAME.pattern).test(user)) throw new Fault('usage', `--user ${NAME.description}`)
  await migrateDatabase(database)
  const { db } = database
  const { config } = settings
  const installationKeys = await openInstallationKeys(database, settings, platform)
  const parts = {
    db,
    platform,
    events: createEvents(createLog(config.logLevel, process.stderr)),
    installationKeys,
    settings: config,
  }
  return resetAdmin(parts, createCredentials(parts), user)
}
