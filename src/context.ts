// Composes the server: builds every part once from the configuration, and passes the parts down.
import { setTimeout as sleep } from 'node:timers/promises'
import packageJson from '../package.json' with { type: 'json' }
import type { Config } from './config/config.ts'
import type { Secrets } from './config/secrets.ts'
import type { DeviceParts } from './api/device/parts.ts'
import type { CloudParts } from './api/cloud/parts.ts'
import type { MobileTokenParts } from './api/mobile-token/parts.ts'
import { createDecoy } from './channel/secrets.ts'
import { createActivationOtps } from './domain/activation/otp.ts'
import { bootstrapApplication } from './domain/application/application.ts'
import { createCustomObjectMemory } from './domain/application/custom-object.ts'
import { startCertificateWatch } from './domain/pinning/watch.ts'
import { startAuditDelivery } from './domain/audit/deliver.ts'
import { startAuditSealing } from './domain/audit/seal.ts'
import { createAuditVerification } from './domain/audit/verification.ts'
import { applyAdminPassword, createFirstAdmin } from './domain/credential/administrator.ts'
import { createAccessTokens } from './domain/credential/access-token.ts'
import { createCredentials } from './domain/credential/credential.ts'
import { createTickets } from './domain/credential/session.ts'
import { createOidcLogins } from './domain/oidc/logins.ts'
import { startHousekeeping } from './domain/housekeeping.ts'
import { createHttpProvider, type HttpProvider } from './domain/user-info/http-provider.ts'
import { type InstallationKeys, isWritten, loadInstallationKeys, requireMasterKey } from './domain/installation-keys.ts'
import { findKeyOrigin, loadMasterKeys } from './domain/secrets/master-key.ts'
import { createPinning } from './domain/pinning/pinning.ts'
import { createSharedFailures } from './domain/limits/shared-failures.ts'
import { createWindow } from './domain/limits/window.ts'
import { startBinding } from './domain/secrets/binding.ts'
import { createRecordKeys } from './domain/secrets/record-keys.ts'
import { installTemplates, readTemplateFile } from './domain/template/installation.ts'
import { createTemplateReader, createTemplateTexts } from './domain/template/reader.ts'
import { createPushSenders, type PushSenders } from './domain/push/senders.ts'
import { startWebhookDelivery } from './domain/webhook/loop.ts'
import type { ServiceState } from './http/connections.ts'
import { createFairQueue } from './lib/fair-queue.ts'
import { keepAnswer } from './lib/kept-answer.ts'
import { type Caches, createCaches } from './lib/memory.ts'
import { type Clock, createClock } from './lib/clock.ts'
import { createEvents, type Events } from './log/events.ts'
import type { Log } from './log/log.ts'
import type { Platform } from './lib/platform.ts'
import { startRounds } from './lib/rounds.ts'
import type { Tracer } from './lib/trace.ts'
import { createMetrics, type Metrics, type Peers } from './metrics/metrics.ts'
import { v3 } from './protocol/v3/index.ts'
import { v4 } from './protocol/v4/index.ts'
import { composeSdkConfiguration } from './protocol/v4/sdk-configuration.ts'
import { createAuthenticationStore } from './storage/request/authentication.ts'
import { createExchangeBasisReader } from './storage/activation/keys.ts'
import { createStatusReader } from './storage/activation/find.ts'
import { explainDatabaseFailure } from './storage/database/failure.ts'
import { type Database, openDatabase, pingDatabase } from './storage/database/database.ts'
import { DELAYS, migrateDatabase, type MigrationDelay, requireMigrated } from './storage/database/migrate.ts'
import { requireDatabase } from './storage/database/requirements.ts'
import { createTokenReads } from './storage/token/reads.ts'
import { enablePushProviders } from './storage/webhook/push-providers.ts'
import { createUniqueValueStore } from './storage/activation/unique-values.ts'
import { readVitalSigns } from './storage/vital-signs.ts'

export interface Context extends DeviceParts, MobileTokenParts, CloudParts {
  readonly log: Log
  readonly clock: Clock
  readonly metrics: Metrics
  readonly tracer: Tracer | undefined
  readonly settings: Config
  readonly installationKeys: InstallationKeys
  readonly protocols: DeviceParts['protocols']
  readonly decoys: DeviceParts['decoys']
  /** Where the database is, in words for the operator. */
  readonly dataLocation: string
  /** Makes the administrator of a first start, and returns the password to be shown. Call it once the server listens. */
  readonly createFirstAdmin: () => Promise<string | undefined>
  readonly databaseKind: Database['kind']
  /** Resolves when the database answers and takes writes, and otherwise rejects. */
  readonly pingDatabase: () => Promise<void>
  readonly serviceState: ServiceState
  readonly close: () => Promise<void>
}

/** The parts that the process brings. Tests bring an open database of their own. */
export interface Surroundings {
  readonly platform: Platform
  readonly log: Log
  readonly database?: Database
  /** The other processes that listen on the same port. */
  readonly peers?: Peers | undefined
  /** Makes the traces of requests; undefined without traces. */
  readonly tracer?: Tracer | undefined
  /** False for a process that leaves all background work to other processes. */
  readonly worksInBackground?: boolean
  /** Present while the start lasts. */
  readonly starting?: Starting
}

export interface Starting {
  /** Called with a few words that say what the start waits for. */
  readonly onDelay: (reason: string) => void
  /** Ends a start on PostgreSQL that has not yet written rows. The start then throws the reason of the signal. */
  readonly signal: AbortSignal
}

/**
 * Opens and migrates the database, unwraps the keys, and applies the settings of templates, administrator's password and first application. Throws
 * StartError with one line for the operator.
 */
export async function createContext(config: Config, secrets: Secrets, surroundings: Surroundings): Promise<Context> {
  const { platform: own, log, tracer, peers, worksInBackground = true } = surroundings
  const metrics = createMetrics(createEvents(log), () => clock.now(), peers)
  const { events } = metrics
  const clock = createClock(own, events)
  const platform: Platform = { ...own, now: clock.now }
  const caches = createCaches()
  const templatesOfFile = config.templatesFile === undefined ? undefined : readTemplateFile(config.templatesFile)
  const database = surroundings.database ?? (await openConfigured(config, secrets, events, tracer !== undefined))
  try {
    const base = await prepareDatabase({ config, secrets, database, events, clock, platform, caches }, surroundings)
    const stopBinding = await startBinding(base, { database, works: worksInBackground })
    const credentials = createCredentials(base)
    await installTemplates(base, templatesOfFile)
    await applyAdminPassword(base, credentials, config.adminUser, secrets.adminPassword)
    await bootstrapApplication(base, config.firstApplication)
    const pushSenders = await startPushes(base, secrets)
    const templateTexts = createTemplateTexts(base.db, caches)
    const background = worksInBackground ? startBackground({ ...base, templateTexts, pushSenders }, secrets) : []
    const channel = createChannel(base, caches)
    metrics.watch({
      version: packageJson.version,
      databaseKind: database.kind,
      poolUse: database.poolUse,
      listCaches: caches.list,
      clockDifference: clock.difference,
      read: () => readVitalSigns(base.db),
    })
    // No limit holds for readiness, and strangers may ask for it. Therefore all who ask at once share one connection.
    const readiness = keepAnswer(() => pingDatabase(database), platform.monotonic, 0)
    const stopHearing = startHearing(clock, database)
    const stopForgetting = caches.startForgetting(() => platform.now())
    return {
      ...channel,
      ...createParts(channel, caches),
      ...createProviders(config, secrets),
      log,
      metrics,
      tracer,
      credentials,
      templateTexts,
      pushSenders,
      pingDatabase: async () => void (await readiness.read(0)),
      serviceState: { phase: 'serving' },
      publicListener: { address: undefined },
      dataLocation: database.location,
      createFirstAdmin: () => createFirstAdmin(base, credentials, config.adminUser),
      close: async () => {
        stopForgetting()
        await Promise.all([stopHearing(), stopBinding(), ...background.map((stop) => stop())])
        for (const { sender } of pushSenders.values()) sender.close()
        metrics.close()
        await database.close()
      },
    }
  } catch (error) {
    metrics.close()
    // The process does not wait longer for a database that does not answer. Its connections end with the process.
    await Promise.race([database.close(), sleep(CLOSE_MS)])
    throw explainDatabaseFailure(error, database)
  }
}

const CLOSE_MS = 1_000
/** The limit for one source and one OpenID provider. A user who binds a phone sends one code. */
const OIDC_REDEMPTIONS_PER_MINUTE = 10
/** The keys that asked least recently are forgotten first, so the count of one that asks all the time is kept among so many. */
const TEMPORARY_KEY_ASKERS_MAX = 10_000
/** For work in threads: a few at once keep all threads busy. As many wait as requests may be in flight at two listeners. */
const THREAD_TURNS = { atOnce: 8, waitingMax: 1000 }

/** Opens the database that the settings name. */
const openConfigured = (config: Config, { databaseUrl }: Secrets, events: Events, isTraced: boolean): Promise<Database> =>
  openDatabase({
    databaseUrl,
    dataDir: config.dataDir,
    poolSize: config.databasePoolSize,
    pooler: config.databasePooler,
    isTraced,
    onConnectionError: (err) => events.databaseConnectionLost({ err }),
    onNoRoom: (err) => events.connectionRefused({ err }),
    onConnection: (ms) => events.connectionAwaited({ ms }),
    onTimeout: (by) => events.statementTimedOut({ by }),
  })

interface Opened {
  readonly config: Config
  readonly secrets: Secrets
  readonly database: Database
  readonly events: Events
  readonly clock: Clock
  readonly platform: Platform
  readonly caches: Caches
}

/** Unwraps the keys and brings the schema up to date. Returns the parts that all other parts are made of. */
async function prepareDatabase(
  { config, secrets, database, events, clock, platform, caches }: Opened,
  { starting, worksInBackground = true }: Pick<Surroundings, 'starting' | 'worksInBackground'>,
) {
  const { db } = database
  // The embedded database opens fast, so its start need not be interrupted.
  const signal = database.kind === 'postgresql' ? starting?.signal : undefined
  const masterKeys = await untilAborted(
    loadMasterKeys({ config, secrets }, database.kind, platform, () => isWritten(db)),
    signal,
  )
  const recordKeys = createRecordKeys(masterKeys, platform, {
    caches,
    onAltered: events.recordAltered,
    onMissingKey: events.masterKeyMissing,
    origin: findKeyOrigin({ config, secrets }, database.kind),
  })
  await untilAborted(requireDatabase(database), signal)
  await untilAborted(requireMasterKey(db, recordKeys), signal)
  if (database.readTime !== undefined) await untilAborted(clock.hear(database.readTime), signal)
  const onDelay = ({ kind, ...fields }: MigrationDelay): void => {
    events.startDelayed({ reason: DELAYS[kind], ...fields })
    starting?.onDelay(DELAYS[kind])
  }
  await (config.migrate === 'start' ? migrateDatabase(database, { onDelay, signal }) : requireMigrated(db))
  const installationKeys = await loadInstallationKeys(db, recordKeys, platform, events)
  // The embedded database has one process, so its counts of failures are not shared. They are shared in the background.
  const hasOthers = database.kind === 'postgresql' && worksInBackground
  const sharedFailures = hasOthers ? createSharedFailures(db, installationKeys.codeLookup, platform) : undefined
  const databaseKind = database.kind
  return { db, databaseKind, platform, clock, recordKeys, events, installationKeys, sharedFailures, settings: config }
}

type Base = Awaited<ReturnType<typeof prepareDatabase>>

/** Tells the triggers of the database to write pushes from now on for the providers with configured credentials, and for no others. */
async function startPushes({ db, platform, settings }: Base, secrets: Secrets): Promise<PushSenders> {
  const senders = await createPushSenders(settings, secrets, platform)
  const providers = Array.from(senders.values(), ({ provider, sender: { url } }) => ({ provider, url }))
  await enablePushProviders(db, providers, new Date(platform.now()))
  return senders
}

/** Starts the work that runs in the background. The returned functions stop it. */
function startBackground(base: Base & Pick<Context, 'templateTexts' | 'pushSenders'>, { auditSinkAuthorization }: Secrets) {
  const { auditSinkUrl, certificateWatch } = base.settings
  return [
    startHousekeeping(base),
    startAuditSealing(base),
    ...(auditSinkUrl === undefined ? [] : [startAuditDelivery(base, auditSinkUrl, auditSinkAuthorization)]),
    startWebhookDelivery(base),
    ...(certificateWatch ? [startCertificateWatch(base)] : []),
  ]
}

/** Makes the parts that the channel needs. */
function createChannel(base: Base, caches: Caches) {
  const { db, events, recordKeys, platform, settings, sharedFailures: shared } = base
  return {
    ...base,
    authenticationStore: createAuthenticationStore(db, events, caches),
    readExchangeBasis: createExchangeBasisReader(db),
    useUniqueValues: createUniqueValueStore(db),
    codeFailures: createWindow({ perMinute: settings.codeFailuresPerMinute, others: shared && { shared, of: 'code' } }),
    sourceFailures: createWindow({ perMinute: settings.sourceFailuresPerMinute, others: shared && { shared, of: 'source' } }),
    decoys: { v3: createDecoy(v3, recordKeys, platform), v4: createDecoy(v4, recordKeys, platform) },
  }
}

/** Makes the parts that the APIs need in addition to the channel. */
function createParts(channel: ReturnType<typeof createChannel>, caches: Caches) {
  const { db, platform, settings, installationKeys } = channel
  return {
    verifyAccessToken: createAccessTokens(channel),
    tickets: createTickets(platform),
    activationOtps: createActivationOtps(installationKeys.credentialHash, platform),
    pinning: createPinning(channel),
    verifyAudit: createAuditVerification(channel),
    protocols: { v3, v4 },
    readStatus: createStatusReader(db),
    customObjects: createCustomObjectMemory(db, installationKeys.codeLookup),
    composeSdkConfiguration,
    templates: createTemplateReader(db, platform, caches),
    tokenReads: createTokenReads(db),
    mobileReads: createWindow({ perMinute: settings.mobileReadsPerMinute }),
    otpAttempts: createWindow({ perMinute: settings.otpAttemptsPerMinute }),
    temporaryKeys: createWindow({ perMinute: settings.temporaryKeysPerMinute, keysMax: TEMPORARY_KEY_ASKERS_MAX }),
    temporaryKeyTurns: createFairQueue(THREAD_TURNS),
    deviceSignatureTurns: createFairQueue(THREAD_TURNS),
    oidcLogins: createOidcLogins(channel),
    oidcRedemptions: createWindow({ perMinute: OIDC_REDEMPTIONS_PER_MINUTE }),
  }
}

/** Settles as `promise` does, or rejects with the reason of `signal` if that aborts first. */
async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise
  signal.throwIfAborted()
  const aborted = Promise.withResolvers<never>()
  const stop = (): void => aborted.reject(signal.reason)
  signal.addEventListener('abort', stop)
  return Promise.race([promise, aborted.promise]).finally(() => signal.removeEventListener('abort', stop))
}

/** Reads the database's time every few seconds. The returned function ends that. */
function startHearing(clock: Clock, { readTime }: Database): () => Promise<void> {
  if (readTime === undefined) return async () => undefined
  // Other parts report that the database does not answer.
  return startRounds(() => clock.hear(readTime), HEAR_MS, { onFailure: () => undefined })
}

const HEAR_MS = 5_000

/** Makes the clients of the bank's providers that the operator configured. */
const createProviders = (config: Config, secrets: Secrets) => ({
  userInfoProvider: createOptional('PAWL_USER_INFO', config.userInfoUrl, config.userInfoTimeoutMs, secrets.userInfoAuthorization),
  activationProvider: createOptional(
    'PAWL_ACTIVATION_PROVIDER',
    config.activationProviderUrl,
    config.activationProviderTimeoutMs,
    secrets.activationProviderAuthorization,
  ),
})

const createOptional = (
  setting: string,
  url: string | undefined,
  timeoutMs: number,
  authorization: string | undefined,
): HttpProvider | undefined => (url === undefined ? undefined : createHttpProvider({ setting, url, timeoutMs, authorization }))
