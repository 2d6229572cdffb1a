// Gives the administrator a new password, which is printed once; whoever has that name is made anew as an administrator:
//   node scripts/admin.ts reset [--user admin]
// The embedded database can be opened only while the server is stopped. Running servers on PostgreSQL follow within five seconds.
import { parseArgs } from 'node:util'
import { resetAdmin } from '../src/domain/administrator.ts'
import { createCredentials } from '../src/domain/credential.ts'
import { loadInstallationKeys } from '../src/domain/installation-keys.ts'
import { loadMasterKey } from '../src/domain/master-key.ts'
import { createRecordKeys } from '../src/domain/record-keys.ts'
import { createEvents } from '../src/lib/events.ts'
import { createLog } from '../src/lib/log.ts'
import { systemPlatform as platform } from '../src/lib/platform.ts'
import { migrateDatabase } from '../src/storage/migrate.ts'
import { withDatabase } from './open-database.ts'

const USAGE = 'usage: node scripts/admin.ts reset [--user NAME]\n'
const username = readArguments()
if (username !== undefined) {
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
    const user = username === '' ? config.adminUser : username
    const password = await resetAdmin(parts, createCredentials(parts), user)
    process.stdout.write(`Administrator: ${user}, password: ${password} (shown only now)\n`)
  })
}

/** The user to reset, '' for the configured one; undefined when something else was asked for. */
function readArguments(): string | undefined {
  try {
    const { values, positionals } = parseArgs({
      options: { user: { type: 'string', default: '' }, help: { type: 'boolean', short: 'h' } },
      allowPositionals: true,
    })
    if (values.help !== true && positionals.length === 1 && positionals[0] === 'reset') return values.user
    process.stdout.write(USAGE)
    if (values.help !== true) process.exitCode = 1
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n${USAGE}`)
    process.exitCode = 1
  }
  return undefined
}
