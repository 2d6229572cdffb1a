// Examines settings, files and free space, before the doctor opens the database.
import { existsSync, type Stats, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { endsOfTls } from '../../src/crypto/certificate.ts'
import { readTemplateFile } from '../../src/domain/template/installation.ts'
import { loadTls, type TlsFiles, tlsFilesOf } from '../../src/http/internal-tls.ts'
import { explainFault, Fault } from '../fault.ts'
import { readSettings, type Settings } from '../local/database.ts'
import { type Finding, fault, type Instruments, judgeEnd, ok, skipped, warning } from './finding.ts'

/** Returns the settings, or a finding for each wrong setting. */
export function examineSettings({ env }: Instruments): { readonly settings?: Settings; readonly findings: readonly Finding[] } {
  try {
    const settings = readSettings({ env })
    return { settings, findings: [ok('settings', 'every setting is known and has a good value')] }
  } catch (error) {
    const problems = error instanceof Fault ? error.message.split('\n') : [explainFault(error)]
    return { findings: problems.map((problem) => fault('settings', problem, 'docs/CONFIG.md says what each setting takes')) }
  }
}

/** Examines the file of templates, the files of TLS, the key file, and the free space for the embedded database. */
export async function examineFiles(
  { config, secrets }: Settings,
  { writableBytes, now }: Instruments,
): Promise<readonly Finding[]> {
  const isEmbedded = secrets.databaseUrl === undefined
  const tlsFiles = tlsFilesOf(config)
  return [
    ...(config.templatesFile === undefined ? [] : [examineTemplates(config.templatesFile)]),
    ...(tlsFiles === undefined ? [] : examineTlsFiles(tlsFiles, now())),
    ...(isEmbedded && existsSync(config.dataDir)
      ? [examineKeyFile(config.dataDir, secrets.masterKeys !== undefined || config.masterKeyCommand !== undefined)]
      : []),
    ...(isEmbedded ? [await examineDisk(config.dataDir, writableBytes)] : []),
  ]
}

function examineTemplates(path: string): Finding {
  try {
    return ok('templates', `${path} has ${readTemplateFile(path).length} templates`)
  } catch (error) {
    return fault('templates', explainFault(error), 'mend the file: a start with it is refused')
  }
}

/** Examines when the certificate of the internal listener ends, and when the last authority of its callers does. */
function examineTlsFiles(files: TlsFiles, now: number): readonly Finding[] {
  try {
    const { certificate, authorities } = endsOfTls(loadTls(files))
    const judge = (what: string, end: number, path: string): Finding => {
      const endsAt = new Date(end)
      const says = `${what} ends ${endsAt.toISOString()}`
      return judgeEnd('internal TLS', says, `renew ${path}: the server reads it again by itself`, { endsAt, now })
    }
    return [
      judge('the certificate of the internal listener', certificate, files.certificate),
      judge('the last authority for certificates of callers', authorities, files.clientCa),
    ]
  } catch (error) {
    return [fault('internal TLS', explainFault(error), 'mend the file: a start with it is refused')]
  }
}

function examineKeyFile(dataDir: string, isGiven: boolean): Finding {
  const path = join(dataDir, 'master.key')
  let found: Stats | undefined
  try {
    found = statSync(path, { throwIfNoEntry: false })
  } catch (error) {
    return fault('key file', explainFault(error), 'run this under the account of the server')
  }
  if (found === undefined)
    return isGiven
      ? ok('key file', 'the master key comes from the settings')
      : fault('key file', `${path} is not there`, 'put it back from the backup: with a new one no activation works')
  return (found.mode & 0o077) === 0
    ? ok('key file', `only its owner reads ${path}`)
    : fault('key file', `others may read ${path}`, `chmod 600 ${path}`)
}

const GIB = 2 ** 30

/** The folder itself, or where the first start makes it. */
const nearestFolder = (path: string): string => (existsSync(path) ? path : nearestFolder(dirname(resolve(path))))

async function examineDisk(dataDir: string, writableBytes: Instruments['writableBytes']): Promise<Finding> {
  let free: number | undefined
  try {
    free = await writableBytes(nearestFolder(dataDir))
  } catch (error) {
    return fault('disk', explainFault(error), 'look at the disk: a database that cannot write answers 503')
  }
  if (free === undefined) return skipped('disk', `the file system does not tell how much is free where ${dataDir} lies`)
  const says = `${(free / GIB).toFixed(1)} GiB are free where ${dataDir} lies`
  if (free < GIB / 8) return fault('disk', says, 'make room now: a database that cannot write answers 503')
  return free < GIB ? warning('disk', says, 'make room') : ok('disk', says)
}
