// The administrator from the command line, for an operator who has lost the password.
import { resetAdmin } from '../src/domain/credential/administrator.ts'
import { createCredentials } from '../src/domain/credential/credential.ts'
import { loadInstallationKeys } from '../src/domain/installation-keys.ts'
import { loadMasterKey } from '../src/domain/secrets/master-key.ts'
import { createRecordKeys } from '../src/domain/secrets/record-keys.ts'
import { createEvents } from '../src/lib/events.ts'
import { createLog } from '../src/lib/log.ts'
import { systemPlatform as platform } from '../src/lib/platform.ts'
import { migrateDatabase } from '../src/storage/migrate.ts'
import { runCommand, UsageError } from './command-line.ts'
import { withDatabase } from './open-database.ts'

const usage = `Gives the administrator of the configured database a new password and prints it; an embedded one only while its server is stopped:
  node scripts/admin.ts reset [--user admin]
Whoever has that name is made anew as an administrator. Running servers on PostgreSQL follow within five seconds.`

await runCommand({ usage, options: { user: { type: 'string' } }, wordsMax: 1 }, async ({ values, words: [command] }) => {
  if (command !== 'reset') throw new UsageError('give reset')
  await withDatabase({ mustExist: true }, async (database, { config, secrets }) => {
    await migrateDatabase(database)
    const { db, kind } = database
    const recordKeys = createRecordKeys(loadMasterKey(secrets.masterKey, kind, config.dataDir, platform), platform)
    const installationKeys = await loadInstallationKeys(db, recordKeys, platform)
    const parts = {
      db,
      platform,
      events: createEvents(createLog(config.logLevel, process.stderr)),
      installationKeys,
      settings: config,
    }
    const user = values.user ?? config.adminUser
    const password = await resetAdmin(parts, createCredentials(parts), user)
    process.stdout.write(`Administrator: ${user}, password: ${password} (shown only now)\n`)
  })
})
