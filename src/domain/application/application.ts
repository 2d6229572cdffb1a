// Creates applications, their versions and master keys, and reads the values that are compiled into a mobile app (cloud §10).
import { toBase64 } from '../../lib/base64.ts'
import { utf8 } from '../../lib/bytes.ts'
import { administrationRefused, existsAlready, notFound, PawlError } from '../../lib/errors.ts'
import type { Events } from '../../log/events.ts'
import { emptySlots, findUserOfSeveral, lockMultiDevice, setMultiDevice } from '../../storage/activation/device-slot.ts'
import { removeExpiredActivations } from '../../storage/activation/expiry.ts'
import {
  type ApplicationVersionRow,
  findApplication,
  insertApplication,
  insertApplicationVersion,
  listApplications,
  listApplicationVersions,
  type Transfer,
} from '../../storage/application/applications.ts'
import { type Db, inTransaction, isUniqueViolation, type Pool, type Tx } from '../../storage/database/database.ts'
import type { MasterKeyAlgorithm } from '../../storage/database/schema.ts'
import { insertPinningKeyPair } from '../../storage/pinning/pinning.ts'
import { createPinningKeyPair } from '../pinning/pinning.ts'
import { type KeyParts, openApplicationSecret, places, unlessAltered } from '../secrets/secrets.ts'
import { createMasterKeys, insertMasterKeys, readMasterPublicKeys } from './master-keys.ts'

/** The values that are compiled into the mobile app, in Base64. */
interface MobileConfiguration {
  /** Uncompressed point on the curve of QR codes: 65 bytes on P-256, 97 on P-384. */
  readonly masterServerPublicKey: string
  /** Absent for P-256. */
  readonly qrSignatureCurve?: 'P-384'
  /** 16 bytes. */
  readonly appKey: string
  /** 16 bytes. The owner of the phone can read it. */
  readonly appSecret: string
}

/** The same values as the mobile SDKs of protocol 4.0 take them. What holds a secret is absent where somebody altered the secret. */
interface SdkConfiguration extends Omit<MobileConfiguration, 'appSecret'> {
  readonly appSecret?: string
  /** Base64 of version, application key and secret, and all public master keys (v4 §3.3). */
  readonly mobileSdkConfig?: string
}

/** Composes the text of a configuration. */
export type ComposeSdkConfiguration = (configuration: {
  readonly applicationKey: Uint8Array
  readonly applicationSecret: Uint8Array
  readonly masterPublicKeys: Readonly<Record<MasterKeyAlgorithm, Uint8Array>>
}) => string

/**
 * Creates an application with a version `default`, its master key pairs and a pinning key pair. Throws ADMINISTRATION_REFUSED when the
 * id is taken.
 */
export async function createApplication(
  parts: KeyParts & { readonly db: Tx },
  applicationId: string,
  displayName: string | null = null,
): Promise<void> {
  const at = new Date(parts.platform.now())
  const masterKeys = await createMasterKeys()
  if (!(await insertApplication(parts.db, applicationId, displayName, at))) throw existsAlready('application', applicationId)
  await insertMasterKeys(parts, applicationId, masterKeys)
  await insertPinningKeyPair(parts.db, createPinningKeyPair(parts, applicationId))
  await addVersion(parts, applicationId, DEFAULT_VERSION)
}

/** Creates the first application when PAWL_FIRST_APPLICATION names one. Does nothing if there is an application already. */
export async function bootstrapApplication(
  parts: KeyParts & { readonly db: Pool; readonly events: Events },
  applicationId: string | undefined,
): Promise<void> {
  if (applicationId === undefined || (await listApplications(parts.db)).length > 0) return
  try {
    await inTransaction(parts.db, (tx) => createApplication({ ...parts, db: tx }, applicationId))
    parts.events.firstApplicationCreated({ applicationId })
  } catch (error) {
    // Another process of the same first start was faster.
    if (!(error instanceof PawlError) || error.code !== 'ADMINISTRATION_REFUSED') throw error
  }
}

/** Throws ADMINISTRATION_REFUSED when there is no such application. */
export async function requireApplication(db: Db, applicationId: string): Promise<void> {
  if ((await findApplication(db, applicationId)) === undefined) throw notFound('application', applicationId)
}

/** Throws ADMINISTRATION_REFUSED unless each target is another existing application and is in only one entry. */
export async function requireTransfers(db: Db, applicationId: string, transfers: readonly Transfer[]): Promise<void> {
  const targets = transfers.flatMap((transfer) => transfer.targets)
  const known = new Set((await listApplications(db)).map((application) => application.applicationId))
  for (const [index, target] of targets.entries()) {
    if (target === applicationId) throw refuse(`${target} is the application itself`)
    if (targets.indexOf(target) !== index) throw refuse(`${target} stands in more than one entry`)
    if (!known.has(target)) throw refuse(`there is no application ${target}`)
  }
}

const refuse = (hint: string): PawlError => administrationRefused('transfers', hint)

/** Adds a version with a random key and secret. Throws ADMINISTRATION_REFUSED when the name is taken. */
export async function addVersion({ db, platform, recordKeys }: KeyParts, applicationId: string, name: string): Promise<void> {
  const applicationKey = toBase64(platform.randomBytes(16))
  const isInserted = await insertApplicationVersion(db, {
    application_key: applicationKey,
    application_id: applicationId,
    name,
    application_secret: recordKeys.seal(places.applicationSecret(applicationKey), utf8(toBase64(platform.randomBytes(16)))),
    created_at: new Date(platform.now()),
  })
  if (!isInserted) throw existsAlready('version', `${name} of ${applicationId}`)
}

/**
 * Reads the configuration of one version. Without `versionName` it takes the version `default`, else the oldest supported one. Throws
 * ADMINISTRATION_REFUSED when the application or the version does not exist, and when its secret was altered in the database.
 */
export async function readMobileConfiguration(
  parts: KeyParts,
  applicationId: string,
  versionName?: string,
): Promise<MobileConfiguration> {
  const { appSecret, ...values } = await readValues(parts, applicationId, versionName)
  if (appSecret !== undefined) return { ...values, appSecret }
  throw administrationRefused('version', 'its secret was altered in the database: add a version')
}

async function readValues(
  parts: KeyParts,
  applicationId: string,
  versionName: string | undefined,
): Promise<Omit<SdkConfiguration, 'mobileSdkConfig'>> {
  const application = await findApplication(parts.db, applicationId)
  if (application === undefined) throw notFound('application', applicationId)
  const version = chooseVersion(await listApplicationVersions(parts.db, applicationId), versionName)
  if (version === undefined) throw notFound('version', `${versionName ?? DEFAULT_VERSION} of ${applicationId}`)
  const publicKeys = await readMasterPublicKeys(parts, applicationId)
  const appSecret = unlessAltered(() => openApplicationSecret(parts.recordKeys, version))
  const isP256 = application.isProtocol3Admitted
  return {
    masterServerPublicKey: toBase64(isP256 ? publicKeys.EC_P256 : publicKeys.EC_P384),
    ...(!isP256 && { qrSignatureCurve: 'P-384' as const }),
    appKey: version.applicationKey,
    ...(appSecret !== undefined && { appSecret }),
  }
}

/**
 * Reads the same, with the text for SDKs of protocol 4.0. When the secret of the version was altered in the database, both secret and text are left
 * out.
 */
export async function readSdkConfiguration(
  parts: KeyParts & { readonly composeSdkConfiguration: ComposeSdkConfiguration },
  applicationId: string,
  versionName?: string,
): Promise<SdkConfiguration> {
  const configuration = await readValues(parts, applicationId, versionName)
  if (configuration.appSecret === undefined) return configuration
  const mobileSdkConfig = parts.composeSdkConfiguration({
    applicationKey: fromBase64(configuration.appKey),
    applicationSecret: fromBase64(configuration.appSecret),
    masterPublicKeys: await readMasterPublicKeys(parts, applicationId),
  })
  return { ...configuration, mobileSdkConfig }
}

const fromBase64 = (text: string): Uint8Array => Buffer.from(text, 'base64')

function chooseVersion(versions: readonly ApplicationVersionRow[], name: string | undefined): ApplicationVersionRow | undefined {
  if (name !== undefined) return versions.find((version) => version.name === name)
  return versions.find((version) => version.name === DEFAULT_VERSION) ?? versions.find((version) => version.isSupported)
}

/** The name of the first version of an application. */
export const DEFAULT_VERSION = 'default'

/**
 * Stores whether a user of an application may have several phones. Switching this off throws ADMINISTRATION_REFUSED while a user has several,
 * because the bank must say which one goes. A phone that is bound at the same time waits, or is bound under the old setting.
 */
export async function switchMultiDevice(tx: Tx, applicationId: string, isMultiDevice: boolean, at: Date): Promise<void> {
  const before = await lockMultiDevice(tx, applicationId)
  if (before === undefined || before === isMultiDevice) return
  await setMultiDevice(tx, applicationId, isMultiDevice)
  // The existing phone of a user keeps its empty slot. A user has at most one of these.
  if (isMultiDevice) return
  while ((await removeExpiredActivations(tx, at, ROWS)) === ROWS);
  const userId = await findUserOfSeveral(tx, applicationId)
  if (userId !== undefined) throw refusal(`user ${userId} has several`)
  try {
    // Each statement handles a bounded number of rows and begins behind the rows of the one before.
    for (let last: string | undefined = ''; last !== undefined; ) last = await emptySlots(tx, applicationId, last, ROWS)
  } catch (error) {
    // A second phone of a user was bound meanwhile.
    if (isUniqueViolation(error, 'activation_live')) throw refusal('a user has got a second one just now')
    throw error
  }
}

const refusal = (why: string): PawlError =>
  administrationRefused('isMultiDevice', `must stay true while a user has several live registrations: ${why}`)

const ROWS = 5_000
