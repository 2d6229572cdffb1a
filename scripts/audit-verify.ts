// Verifies the audit log of the configured database; exit status 1 when it is not as it was written.
import { type AuditReport, type ChainReport, type NotedHead, verifyAudit } from '../src/domain/audit/verification.ts'
import { loadInstallationKeys } from '../src/domain/installation-keys.ts'
import { loadMasterKey } from '../src/domain/secrets/master-key.ts'
import { createRecordKeys } from '../src/domain/secrets/record-keys.ts'
import { systemPlatform } from '../src/lib/platform.ts'
import { runCommand } from './command-line.ts'
import { withDatabase } from './open-database.ts'

const usage = `Verifies the audit log of the configured database; exit status 1 when it is not as it was written:
  node scripts/audit-verify.ts [--expect-head CHAIN=POSITION:SEAL]...
The heads that it prints are for keeping elsewhere, in the form that --expect-head takes: only they tell later that nobody cut
the log, or wrote it anew with the key. The embedded database can be opened only while the server is stopped; else ask
GET /admin/audit/verification.`

await runCommand({ usage, options: { 'expect-head': { type: 'string', multiple: true, default: [] } } }, async ({ values }) => {
  const heads = values['expect-head'].map(parseHead)
  await withDatabase({ mustExist: true }, async ({ db, kind }, { config, secrets }) => {
    const recordKeys = createRecordKeys(loadMasterKey(secrets.masterKey, kind, config.dataDir, systemPlatform), systemPlatform)
    const installationKeys = await loadInstallationKeys(db, recordKeys, systemPlatform)
    print(await verifyAudit({ db, installationKeys }, heads))
  })
})

function parseHead(text: string): NotedHead {
  const [, chain = '', position, seal = ''] = /^(.+)=(\d{1,15}):([0-9a-f]{64})$/.exec(text) ?? []
  if (position === undefined) throw new Error(`--expect-head ${text}: not of the form CHAIN=POSITION:SEAL`)
  return { chain, position: Number(position), seal }
}

function print({ isIntact, chains }: AuditReport): void {
  process.stdout.write(chains.map(render).join('') + (isIntact ? 'the audit log is intact\n' : 'THE AUDIT LOG WAS ALTERED\n'))
  if (!isIntact) process.exitCode = 1
}

function render({ chain, sealed, unsealed, startPosition, headPosition, headSeal, fault }: ChainReport): string {
  const removed = startPosition === 0 ? '' : `, ${startPosition} removed by retention`
  const { problem = '', position, sequence } = fault ?? {}
  const place = [position === undefined ? [] : [`position ${position}`], sequence === undefined ? [] : [`sequence ${sequence}`]]
  const broken = fault && `  BROKEN: ${problem} (${place.flat().join(', ') || 'state of the chain'})\n`
  return `${chain}: ${sealed} sealed, ${unsealed} not yet${removed}\n  head ${chain}=${headPosition}:${headSeal}\n${broken ?? ''}`
}
