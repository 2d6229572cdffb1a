// Imports applications with their versions and the master key pair that is compiled into their apps (v3 §3.1).
import { addVersion, DEFAULT_VERSION } from '../../src/domain/application/application.ts'
import { createMasterKeys, insertMasterKeys } from '../../src/domain/application/master-keys.ts'
import { createPinningKeyPair } from '../../src/domain/pinning/pinning.ts'
import { places } from '../../src/domain/secrets/secrets.ts'
import { parseBase64, toBase64 } from '../../src/lib/base64.ts'
import { equalPublic, utf8 } from '../../src/lib/bytes.ts'
import { isForPaths, isIdentifier } from '../../src/lib/identifier.ts'
import {
  findApplication,
  findMasterKeyPairs,
  findVersionOwners,
  insertApplication,
  insertApplicationVersion,
  listApplicationVersions,
  setApplicationSettings,
} from '../../src/storage/application/applications.ts'
import { inTransaction } from '../../src/storage/database/database.ts'
import { insertPinningKeyPair } from '../../src/storage/pinning/pinning.ts'
import { explainRefusal, type ImportParts, isSourceId, NOT_FOR_PATHS, parseTexts, SECOND_ROW } from './parts.ts'
import { type OpenedKeyPair, openKeyPair } from './records.ts'
import type { SourceApplication, SourceVersion } from './source.ts'

/** The imported applications: each id with the number of its row. Rows that belong to another row of the same id are left out. */
export type TakenApplications = ReadonlyMap<string, number>

/** Imports applications that pawl does not have, or has with the key pair of the reference. */
export async function importApplications(parts: ImportParts): Promise<TakenApplications> {
  const { source, record } = parts
  const applications = await source.applications()
  const pairs = await source.masterKeyPairs()
  const versions = Map.groupBy(await source.versions(), ({ applicationNumber }) => applicationNumber)
  record.found('application', applications.length)
  record.found('version', [...versions.values()].flat().length)
  const taken = new Map<string, number>()
  const seenKeys = new Set<string>()
  for (const application of applications) {
    // The apps were built with the newest key pair, which has replaced older ones.
    const stored = pairs.find(({ applicationNumber }) => applicationNumber === application.number)
    const number = stored && parseBase64(stored.privateKey)
    const pair = number && stored && openKeyPair(number, stored.publicKey)
    const refusal = taken.has(application.applicationId) ? SECOND_ROW : await takeApplication(parts, application, pair)
    if (refusal === undefined) taken.set(application.applicationId, application.number)
    else record.leaveOut('application', application.applicationId, refusal)
    await takeVersions(parts, application, versions.get(application.number) ?? [], { isTaken: refusal === undefined, seenKeys })
    versions.delete(application.number)
  }
  for (const [application, lost] of versions)
    for (const { name, number } of lost)
      record.leaveOut('version', `${application}/${name ?? number}`, 'its application is missing')
  return taken
}

/** Imports an application. Returns undefined, or the reason why it is left out. */
async function takeApplication(
  parts: ImportParts,
  { applicationId, roles: storedRoles }: SourceApplication,
  pair: OpenedKeyPair | undefined,
): Promise<string | undefined> {
  const { db, record } = parts
  if (!isSourceId(applicationId)) return BAD_NAME
  if (!isForPaths(applicationId)) return NOT_FOR_PATHS
  if (pair === undefined) return 'it has no master key pair that can be read'
  if ((await findApplication(db, applicationId)) !== undefined) {
    const [own] = await findMasterKeyPairs(db, applicationId, ['EC_P256'])
    if (own === undefined || !equalPublic(own.publicKey, pair.publicKey)) return OTHER_APPLICATION
    record.alreadyThere('application', 1)
    return undefined
  }
  const roles = parseTexts(storedRoles)
  const good = roles?.filter((role) => isIdentifier(role) && !role.includes(','))
  try {
    if (!parts.isDryRun && !(await storeApplication(parts, applicationId, good ?? [], pair))) return OTHER_APPLICATION
  } catch (error) {
    return `the database refuses it: ${explainRefusal(error)}`
  }
  if (good === undefined || good.length !== roles?.length)
    record.mend('application', applicationId, 'taken without those of its roles that are no names')
  record.imported('application', 1)
  return undefined
}

/** Stores an application. False when a server has just made one of this id, with another key pair. */
async function storeApplication(
  parts: ImportParts,
  applicationId: string,
  roles: readonly string[],
  pair: OpenedKeyPair,
): Promise<boolean> {
  const others = await createMasterKeys(['EC_P384', 'ML_DSA_65', 'ML_DSA_87'])
  const imported = { algorithm: 'EC_P256', publicKey: pair.publicKey, exported: pair.pkcs8 } as const
  return inTransaction(parts.db, async (tx) => {
    if (!(await insertApplication(tx, applicationId, null, new Date(parts.platform.now())))) return false
    if (roles.length > 0) await setApplicationSettings(tx, applicationId, { roles })
    await insertMasterKeys({ ...parts, db: tx }, applicationId, [imported, ...others])
    await insertPinningKeyPair(tx, createPinningKeyPair(parts, applicationId))
    return true
  })
}

/**
 * Imports the versions. An application that comes without a version that is switched on gets a new one. If it has versions in pawl, it gets none:
 * somebody may have switched them off.
 */
async function takeVersions(
  parts: ImportParts,
  { applicationId }: SourceApplication,
  versions: readonly SourceVersion[],
  { isTaken, seenKeys }: { isTaken: boolean; seenKeys: Set<string> },
): Promise<void> {
  const { db, record, isDryRun } = parts
  const stored = isTaken ? await listApplicationVersions(db, applicationId) : []
  const names = new Set(stored.map(({ name }) => name))
  let isShown = stored.length > 0
  for (const version of versions) {
    const id = `${applicationId}/${version.name ?? version.number}`
    const refusal = isTaken
      ? await takeVersion(parts, applicationId, version, { names, seenKeys })
      : 'its application is left out'
    if (refusal !== undefined) record.leaveOut('version', id, refusal)
    else isShown ||= version.isSupported
  }
  if (!isTaken || isShown || names.has(DEFAULT_VERSION)) return
  if (!isDryRun) await addVersion(parts, applicationId, DEFAULT_VERSION)
  record.mend('application', applicationId, 'taken with a new version: it has none that is on')
}

/**
 * Imports a version. Returns undefined, or the reason why it is left out. `names`: of the application's versions; `seenKeys`: of all earlier
 * versions.
 */
async function takeVersion(
  parts: ImportParts,
  applicationId: string,
  { number, applicationKey, applicationSecret, name, isSupported }: SourceVersion,
  { names, seenKeys }: { names: Set<string>; seenKeys: Set<string> },
): Promise<string | undefined> {
  const { db, recordKeys, platform, record } = parts
  const key = parseBase64(applicationKey ?? '', KEY_BYTES)
  const secret = parseBase64(applicationSecret ?? '', KEY_BYTES)
  if (key === undefined || secret === undefined) return 'its key or secret is not Base64 of 16 bytes'
  const application_key = toBase64(key)
  // Two Base64 texts may encode the same bytes.
  if (seenKeys.has(application_key)) return 'another version has its key'
  seenKeys.add(application_key)
  const owner = (await findVersionOwners(db, [application_key])).get(application_key)
  if (owner !== undefined && owner !== applicationId) return 'another application of pawl has its key'
  if (owner !== undefined) {
    record.alreadyThere('version', 1)
    return undefined
  }
  // Version names of an application are unique in pawl; the number of the row makes them so.
  const wanted = name !== null && isSourceId(name) && isForPaths(name) ? name : 'unnamed'
  const free = [wanted, `${wanted.slice(0, 240)} (${number})`, application_key].find((one) => !names.has(one)) ?? application_key
  try {
    if (!parts.isDryRun) {
      const application_secret = recordKeys.seal(places.applicationSecret(application_key), utf8(toBase64(secret)))
      const at = new Date(platform.now())
      const row = { application_key, application_id: applicationId, name: free, application_secret, is_supported: isSupported }
      if (!(await insertApplicationVersion(db, { ...row, created_at: at }))) return 'another version has its name'
    }
  } catch (error) {
    return `the database refuses it: ${explainRefusal(error)}`
  }
  names.add(free)
  if (free !== name) record.mend('version', `${applicationId}/${name ?? number}`, 'taken under another name', free)
  record.imported('version', 1)
  return undefined
}

const OTHER_APPLICATION = 'pawl has an application of this id with another master key pair'
const BAD_NAME = 'its id is blank, too long, or has control characters'
const KEY_BYTES = 16
