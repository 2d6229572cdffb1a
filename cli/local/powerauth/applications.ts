// Applications with their versions and the master key pair that their apps carry (v3 §3.1).
import { createMasterKeys, insertMasterKeys } from '../../../src/domain/application/master-keys.ts'
import { createPinningKeyPair } from '../../../src/domain/pinning/pinning.ts'
import { places } from '../../../src/domain/secrets/secrets.ts'
import { parseBase64, toBase64 } from '../../../src/lib/base64.ts'
import { equalPublic, utf8 } from '../../../src/lib/bytes.ts'
import { isIdentifier } from '../../../src/lib/identifier.ts'
import {
  findApplication,
  findMasterKeyPairs,
  findVersionOwners,
  insertApplication,
  insertApplicationVersion,
  listApplicationVersions,
  setApplicationSettings,
} from '../../../src/storage/applications.ts'
import { inTransaction } from '../../../src/storage/database.ts'
import { insertPinningKeyPair } from '../../../src/storage/pinning.ts'
import { type ImportParts, parseTexts } from './parts.ts'
import { type OpenedKeyPair, openKeyPair } from './records.ts'
import type { SourceApplication, SourceVersion } from './source.ts'

/** The ids of those that are there afterwards, with the key pair of the reference; what belongs to another one is left out. */
export async function importApplications(parts: ImportParts): Promise<ReadonlySet<string>> {
  const { source, record } = parts
  const applications = await source.applications()
  const pairs = await source.masterKeyPairs()
  const versions = await source.versions()
  record.found('application', applications.length)
  record.found('version', versions.length)
  const owners = await findVersionOwners(
    parts.db,
    versions.flatMap(({ applicationKey }) => applicationKey ?? []),
  )
  const taken = new Set<string>()
  for (const application of applications) {
    const own = versions.filter(({ applicationNumber }) => applicationNumber === application.number)
    // The apps were built with the newest pair; older ones have been replaced.
    const stored = pairs.find(({ applicationNumber }) => applicationNumber === application.number)
    const number = stored && parseBase64(stored.privateKey)
    const pair = number && stored && openKeyPair(number, stored.publicKey)
    const refusal = isIdentifier(application.applicationId) ? await takeApplication(parts, application, pair) : BAD_NAME
    if (refusal === undefined) taken.add(application.applicationId)
    else record.leaveOut('application', application.applicationId, refusal)
    await takeVersions(parts, application, own, { isTaken: refusal === undefined, owners })
  }
  return taken
}

/** Undefined, or why it is left out. */
async function takeApplication(
  parts: ImportParts,
  { applicationId, roles: storedRoles }: SourceApplication,
  pair: OpenedKeyPair | undefined,
): Promise<string | undefined> {
  const { db, platform, record } = parts
  const roles = parseTexts(storedRoles)
  if (pair === undefined) return 'it has no master key pair that can be read'
  if (roles === undefined || roles.some((role) => role.includes(','))) return 'its roles are not a JSON list of names'
  if ((await findApplication(db, applicationId)) !== undefined) {
    const [own] = await findMasterKeyPairs(db, applicationId, ['EC_P256'])
    if (own === undefined || !equalPublic(own.publicKey, pair.publicKey))
      return 'pawl has an application of this id with another master key pair'
    record.alreadyThere('application', 1)
    return undefined
  }
  if (!parts.isDryRun) {
    const others = await createMasterKeys(['EC_P384', 'ML_DSA_65', 'ML_DSA_87'])
    const imported = { algorithm: 'EC_P256', publicKey: pair.publicKey, exported: pair.pkcs8 } as const
    await inTransaction(db, async (tx) => {
      await insertApplication(tx, applicationId, null, new Date(platform.now()))
      if (roles.length > 0) await setApplicationSettings(tx, applicationId, { roles })
      await insertMasterKeys({ ...parts, db: tx }, applicationId, [imported, ...others])
      await insertPinningKeyPair(tx, createPinningKeyPair(parts, applicationId))
    })
  }
  record.imported('application', 1)
  return undefined
}

async function takeVersions(
  { db, recordKeys, platform, record, isDryRun }: ImportParts,
  { applicationId }: SourceApplication,
  versions: readonly SourceVersion[],
  { isTaken, owners }: { isTaken: boolean; owners: ReadonlyMap<string, string> },
): Promise<void> {
  const names = new Set(isTaken ? (await listApplicationVersions(db, applicationId)).map(({ name }) => name) : [])
  for (const { number, applicationKey: key, applicationSecret: secret, name, isSupported } of versions) {
    const id = `${applicationId}/${name ?? number}`
    const keyBytes = key === null ? undefined : parseBase64(key, KEY_BYTES)
    const secretBytes = secret === null ? undefined : parseBase64(secret, KEY_BYTES)
    if (!isTaken) record.leaveOut('version', id, 'its application is left out')
    else if (keyBytes === undefined || secretBytes === undefined)
      record.leaveOut('version', id, 'its key or secret is not Base64 of 16 bytes')
    else if (owners.get(toBase64(keyBytes)) === applicationId) record.alreadyThere('version', 1)
    else if (owners.has(toBase64(keyBytes))) record.leaveOut('version', id, 'another application of pawl has its key')
    else {
      // Names have to differ here; the number of the row makes them so.
      const wanted = name !== null && isIdentifier(name) ? name : 'unnamed'
      const free = names.has(wanted) ? `${wanted.slice(0, 240)} (${number})` : wanted
      names.add(free)
      const applicationKey = toBase64(keyBytes)
      if (!isDryRun)
        await insertApplicationVersion(db, {
          application_key: applicationKey,
          application_id: applicationId,
          name: free,
          application_secret: recordKeys.seal(places.applicationSecret(applicationKey), utf8(toBase64(secretBytes))),
          is_supported: isSupported,
          created_at: new Date(platform.now()),
        })
      record.imported('version', 1)
    }
  }
}

const BAD_NAME = 'its id is blank, too long, or has control characters'
const KEY_BYTES = 16
