// Runs the doctor: examines an installation from its settings to its receivers, and says what to do.
import { X509Certificate } from 'node:crypto'
import { existsSync } from 'node:fs'
import { connect as openSocket } from 'node:net'
import { join } from 'node:path'
import { StartError } from '../../src/lib/errors.ts'
import { readWritableBytes } from '../../src/lib/disk.ts'
import { readPeerCertificate } from '../../src/domain/pinning/certificate.ts'
import { openDatabase } from '../../src/storage/database/database.ts'
import { findPooler } from './pooler-probe.ts'
import type { Answer, Terminal } from '../command.ts'
import { examineDatabase } from './database.ts'
import type { Finding, Instruments } from './finding.ts'
import { examineNetwork } from './network.ts'
import { examinePooler } from './pooler.ts'
import { examinePush } from './push.ts'
import { examineFiles, examineSettings } from './settings.ts'

/** Returns every finding, those first whose fault may cause the others. */
export async function examine(instruments: Instruments): Promise<readonly Finding[]> {
  const { settings, findings } = examineSettings(instruments)
  if (settings === undefined) return findings
  const sections = await Promise.all([
    examinePooler(settings, instruments),
    examineDatabase(settings, instruments),
    examineNetwork(settings, instruments),
    examinePush(settings),
  ])
  return [...findings, ...(await examineFiles(settings, instruments)), ...sections.flat()]
}

/** The findings of `pawl doctor`; the exit code is 1 when something is broken. */
export async function diagnose({ env, note }: Terminal): Promise<Answer> {
  note('looking at settings, database, network and receivers')
  const findings = await examine(createInstruments(env))
  const countOf = (wanted: Finding['state']): number => findings.filter(({ state }) => state === wanted).length
  const [broken, warnings] = [countOf('fault'), countOf('warning')]
  const text = findings.map(render).join('') + summarize(broken, warnings)
  return { json: { findings }, text, exitCode: broken === 0 ? 0 : 1 }
}

function summarize(broken: number, warnings: number): string {
  const state = broken === 0 ? 'nothing is broken' : `${broken} ${broken === 1 ? 'thing is' : 'things are'} broken`
  return warnings === 0 ? `${state}\n` : `${state}, ${warnings} ${warnings === 1 ? 'warning' : 'warnings'}\n`
}

const MARKS = { ok: 'ok      ', warning: 'WARNING ', fault: 'BROKEN  ', skipped: 'skipped ' }

const render = ({ check, state, says, todo }: Finding): string =>
  `${MARKS[state]} ${check}: ${says}\n${todo === undefined ? '' : `          ${todo}\n`}`

const TIMEOUT_MS = 5_000

const createInstruments = (env: Terminal['env']): Instruments => ({
  env,
  now: Date.now,
  open: async ({ config: { dataDir, databasePooler: pooler }, secrets: { databaseUrl } }) => {
    if (databaseUrl === undefined && !existsSync(join(dataDir, 'database')))
      throw new StartError(`there is no database in ${dataDir}`)
    return openDatabase({ databaseUrl, dataDir, poolSize: 1, pooler })
  },
  findPooler,
  writableBytes: readWritableBytes,
  connect: ({ hostname, port, protocol }) =>
    new Promise((resolve, reject) => {
      const host = hostname.replace(/^\[(.*)\]$/, '$1')
      const socket = openSocket({ host, port: Number(port) || (protocol === 'https:' ? 443 : 80), timeout: TIMEOUT_MS })
      socket.once('connect', () => {
        socket.destroy()
        resolve()
      })
      socket.once('timeout', () => socket.destroy(new Error('no answer in time')))
      socket.once('error', reject)
    }),
  readCertificate: async (host, port) => {
    const { der, chainProblem } = await readPeerCertificate({ host, port, arePrivateAllowed: true, timeoutMs: TIMEOUT_MS })
    return { expiresAt: new X509Certificate(der).validToDate, chainProblem }
  },
})
