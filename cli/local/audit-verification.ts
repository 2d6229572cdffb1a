// Runs pawl audit verify and export on the database itself: verifies the logs against noted heads, and prints their rows.
import { exportAudit } from '../../src/domain/audit/lines.ts'
import { type AuditReport, type ChainReport, type NotedHead, verifyAudit } from '../../src/domain/audit/verification.ts'
import type { Answer, Terminal } from '../command.ts'
import { usageFault } from '../fault.ts'
import { openInstallationKeys, patiently, withDatabase } from './database.ts'

/** Parses `CHAIN=POSITION:SEAL`. Throws a Fault for another text. */
export function parseHead(text: string, option: string): NotedHead {
  const [, chain = '', position, seal = ''] = /^(.+)=(\d{1,15}):([0-9a-f]{64})$/.exec(text) ?? []
  if (position === undefined) throw usageFault(`${option} ${text}: not of the form CHAIN=POSITION:SEAL`)
  return { chain, position: Number(position), seal }
}

/** Verifies the log of the configured database; the exit code is 1 when a row was altered or is missing. */
export const verifyLocal = (terminal: Terminal, heads: readonly NotedHead[]): Promise<Answer> =>
  withDatabase(terminal, { mustExist: true, online: '--online asks a running server' }, async (database, settings, platform) => {
    const installationKeys = await openInstallationKeys(database, settings, platform)
    const report = await verifyAudit({ db: database.db, installationKeys }, heads)
    return { json: report, text: renderReport(report), exitCode: report.isIntact ? 0 : 1 }
  })

/** Prints the log as lines, and at the end the head of each chain. */
export const exportLocal = (terminal: Terminal, after: readonly NotedHead[]): Promise<Answer> =>
  withDatabase(terminal, { mustExist: true }, (database, settings, platform) =>
    patiently(database, async (db) => {
      const installationKeys = await openInstallationKeys(database, settings, platform)
      const write = (line: string): void => terminal.write(`${line}\n`)
      const chains = await exportAudit({ db, installationKeys }, after, write, () => terminal.print(''))
      const json = {
        next: chains.map(({ chain, position, seal }) => `${chain}=${position}:${seal}`),
        problems: chains.flatMap(({ chain, problem }) => (problem === undefined ? [] : [`${chain}: ${problem}`])),
      }
      return { json, text: `${JSON.stringify(json)}\n`, exitCode: json.problems.length === 0 ? 0 : 1 }
    }),
  )

const renderReport = ({ isIntact, chains }: AuditReport): string =>
  chains.map(render).join('') + (isIntact ? 'the audit log is intact\n' : 'THE AUDIT LOG WAS ALTERED\n')

function render({ chain, sealed, unsealed, startPosition, headPosition, headSeal, fault }: ChainReport): string {
  const removed = startPosition === 0 ? '' : `, ${startPosition} removed by retention`
  const { problem = '', position, sequence } = fault ?? {}
  const place = [position === undefined ? [] : [`position ${position}`], sequence === undefined ? [] : [`sequence ${sequence}`]]
  const broken = fault && `  BROKEN: ${problem} (${place.flat().join(', ') || 'state of the chain'})\n`
  return `${chain}: ${sealed} sealed, ${unsealed} not yet${removed}\n  head ${chain}=${headPosition}:${headSeal}\n${broken ?? ''}`
}
