// The verification of the audit log on the database itself, and the heads that are kept elsewhere.
import { type AuditReport, type ChainReport, type NotedHead, verifyAudit } from '../../src/domain/audit/verification.ts'
import type { Answer, Terminal } from '../command.ts'
import { usageFault } from '../fault.ts'
import { openInstallationKeys, withDatabase } from './database.ts'

/** Throws a Fault when the text is no head. */
export function parseHead(text: string): NotedHead {
  const [, chain = '', position, seal = ''] = /^(.+)=(\d{1,15}):([0-9a-f]{64})$/.exec(text) ?? []
  if (position === undefined) throw usageFault(`--expect-head ${text}: not of the form CHAIN=POSITION:SEAL`)
  return { chain, position: Number(position), seal }
}

/** Verifies the log of the configured database; the exit code is 1 when it is not as it was written. */
export const verifyLocal = (terminal: Terminal, heads: readonly NotedHead[]): Promise<Answer> =>
  withDatabase(terminal, { mustExist: true }, async (database, settings) => {
    const installationKeys = await openInstallationKeys(database, settings)
    const report = await verifyAudit({ db: database.db, installationKeys }, heads)
    return { json: report, text: renderReport(report), exitCode: report.isIntact ? 0 : 1 }
  })

const renderReport = ({ isIntact, chains }: AuditReport): string =>
  chains.map(render).join('') + (isIntact ? 'the audit log is intact\n' : 'THE AUDIT LOG WAS ALTERED\n')

function render({ chain, sealed, unsealed, startPosition, headPosition, headSeal, fault }: ChainReport): string {
  const removed = startPosition === 0 ? '' : `, ${startPosition} removed by retention`
  const { problem = '', position, sequence } = fault ?? {}
  const place = [position === undefined ? [] : [`position ${position}`], sequence === undefined ? [] : [`sequence ${sequence}`]]
  const broken = fault && `  BROKEN: ${problem} (${place.flat().join(', ') || 'state of the chain'})\n`
  return `${chain}: ${sealed} sealed, ${unsealed} not yet${removed}\n  head ${chain}=${headPosition}:${headSeal}\n${broken ?? ''}`
}
