// Tells operators what happens, one function an event. Lines are constant text plus fields; fields never hold secrets.
import { createFailures, type Failures } from './failures.ts'
import type { Log } from './log.ts'

/** An event for those who count: it has no line. */
type Untold<Fields> = (fields: Fields) => void
const untold = (): void => undefined

export function createEvents(log: Log) {
  const failures = createFailures(log)
  return {
    ...eventsOfPhones(log, failures),
    ...eventsOfOperations(log),
    ...eventsOfCallers(log, failures),
    ...eventsOfRecords(log, failures),
    ...eventsOfCertificates(log),
    ...eventsOfStart(log),
    ...eventsOfRequests(log, failures),
    ...eventsOfDatabase(log, failures),
    ...eventsOfWebhooks(log, failures),
    ...eventsOfBackground(log, failures),
  }
}

export type Events = ReturnType<typeof createEvents>

const eventsOfPhones = (log: Log, failures: Failures) => ({
  /** `type`: factors in lower case, `token`, `offline`, or what device keys signed; `result`: `accepted`, or one of the reasons of a refusal. */
  authenticationChecked: untold as Untold<{ version: string; type: string; result: string }>,
  /** What a bank was answered that had something of a phone checked; `verdict`: `valid`, `repeated`, or why not. */
  doorAnswered: untold as Untold<{ door: string; verdict: string }>,
  authenticationFailed: (fields: { activationId: string; resourceId: string; reason: string }) =>
    log.info(fields, 'authentication failed'),
  /** `until` is the end of a temporary block. */
  activationBlocked: (fields: { activationId: string; reason: string; until: string | undefined }) =>
    log.warn(fields, 'activation blocked'),
  /** Both are counters; `known` is what this process stored. */
  counterWentBack: (fields: { activationId: string; stored: number; known: number }) =>
    log.error(fields, 'the counter of an activation went back in the database; the one that is known is used'),
  envelopeRefused: (fields: { activationId: string | undefined; applicationKey: string | undefined; reason: string }) =>
    log.info(fields, 'encrypted request refused'),
  temporaryKeyRefused: (fields: { reason: string }) => log.info(fields, 'temporary key refused'),
  activationRefused: (fields: { reason: string }) => log.info(fields, 'activation refused'),
  userInfoFailed: (fields: { activationId: string; err: unknown }) => failures.tell('warn', fields, 'no user info'),
  activationProviderFailed: (fields: { applicationId: string; err: unknown }) =>
    failures.tell('warn', fields, 'the activation provider gave no user'),
  vaultUnlocked: (fields: { activationId: string; reason: string }) => log.info(fields, 'vault unlocked'),
  registrationChanged: (fields: { activationId: string; from: string; to: string; reason: string | null }) =>
    log.info(fields, 'registration changed'),
})

const eventsOfOperations = (log: Log) => ({
  operationCreated: untold as Untold<{ operationId: string }>,
  operationAttemptFailed: untold as Untold<{ operationId: string }>,
  /** By a decision of its user or the bank, or too many failures. */
  operationEnded: untold as Untold<{ state: 'APPROVED' | 'REJECTED' | 'CANCELED' | 'FAILED'; ageMs: number }>,
  operationsExpired: untold as Untold<{ count: number }>,
  placeholdersMissing: (fields: { operationId: string; template: string; names: string }) =>
    log.warn(fields, 'texts of an operation have placeholders without parameter'),
  screensLeftOut: (fields: { operationId: string; template: string; members: string }) =>
    log.warn(fields, 'the template has screens that phones refuse: they are left out'),
  templateChanged: (fields: { templateName: string; change: 'created' | 'changed' | 'deleted'; by: string }) =>
    log.info(fields, 'template changed'),
  templateDoubtful: (fields: { templateName: string; warning: string }) => log.warn(fields, 'a template of the file is doubtful'),
})

const eventsOfCallers = (log: Log, failures: Failures) => ({
  /** The name only of a known user: what a stranger types there may be a password. */
  credentialRefused: (fields: { username: string | undefined; source: string; reason: string }) =>
    log.warn(fields, 'credential refused'),
  /** An access token or a client certificate, which nothing else holds back: the first of a kind has a line, the others are counted. */
  callerRefused: ({ reason, ...fields }: { username: string | undefined; source: string; reason: string }) =>
    failures.tell('warn', { ...fields, err: `${reason}, from ${fields.source}` }, 'caller refused'),
  /** By a proxy that is trusted. The first of a proxy has a line, the others are counted. */
  forwardedUnreadable: ({ source }: { source: string }) =>
    failures.tell('warn', { err: `from ${source}` }, 'X-Forwarded-For of a proxy has a member that is no address: it ends there'),
  /** As refused callers: nothing else holds back who opens connections. */
  tlsRefused: (fields: { source: string; reason: string }) =>
    failures.tell('warn', { ...fields, err: `${fields.reason}, from ${fields.source}` }, 'a TLS connection was refused'),
  tlsRenewed: () => log.info('new files of TLS hold for new connections'),
  tlsNotRenewed: (fields: { reason: string }) => log.error(fields, 'new files of TLS are wrong, the former go on'),
  applicationMissing: (fields: { username: string; reason: string }) =>
    log.warn(fields, 'a call for an application was refused: the credential has none'),
  /** `source`: an address, or a /64 of IPv6. Without a name, all logins of the source that are not known. */
  loginsWait: (fields: { username: string | undefined; source: string; seconds: number }) =>
    log.warn(fields, 'too many wrong passwords: logins are refused for a while'),
  /** Refused as if there were no such user. */
  credentialAltered: (fields: { username: string }) =>
    log.error(fields, 'a credential was altered in the database and is refused: remove it and create it anew'),
  /** Once in the life of a database; another time somebody has removed the key of the MACs. */
  credentialsSealed: (fields: { credentials: readonly string[] }) =>
    log.warn(fields, 'credentials got their first MAC as they are: check their roles'),
  /** The same of credentials for receivers of webhooks; each has the server that they are for. */
  webhooksSealed: (fields: { webhooks: readonly string[] }) =>
    log.warn(fields, 'credentials of webhooks got their first MAC as they are: check the servers that they are for'),
  adminPasswordReplaced: (fields: { username: string }) => log.warn(fields, 'admin password replaced by the configured one'),
})

const eventsOfRecords = (log: Log, failures: Failures) => ({
  /** `record`: its place. Refused as if there were none. */
  recordAltered: (fields: { record: string }) =>
    log.error(fields, 'a sealed record was altered in the database, or moved to another owner, and is refused'),
  bindingAltered: () =>
    log.error('the row of record_binding was altered in the database: sealed records that are bound to no owner are refused'),
  bindingStage: (fields: { stage: 'OPEN' | 'BEGUN' | 'BOUND' }) =>
    fields.stage === 'OPEN'
      ? log.warn(fields, 'sealed records are not bound to their users: pawl key bind, once no process of the version before runs')
      : log.info(
          fields,
          fields.stage === 'BEGUN' ? 'sealed records are to be bound to their users' : 'all sealed records are bound',
        ),
  /** `unopened`: places of records that open under none of the keys. */
  recordsBound: (fields: { replaced: number; left: number; unopened: readonly string[] }) =>
    fields.unopened.length === 0
      ? log.info(fields, 'sealed records were bound to their users')
      : log.error(fields, 'sealed records were bound to their users, but for some that do not open'),
  bindingFailed: (fields: { err: unknown }) => failures.tell('error', fields, 'the binding of sealed records failed'),
})

const eventsOfCertificates = (log: Log) => ({
  certificateSeen: (fields: { applicationId: string; domain: string; daysToExpiry: number }) =>
    log.info(fields, 'the live certificate is pinned'),
  /** The alarm of the certificate watcher. */
  certificateNotPinned: (fields: { applicationId: string; domain: string; daysToExpiry: number }) =>
    log.error(fields, 'the live certificate is not pinned: apps will refuse the connection'),
  certificateNotSeen: (fields: { applicationId: string; domain: string; reason: string }) =>
    log.warn(fields, 'the live certificate could not be read'),
  certificateWatchFailed: (fields: { err: unknown }) => log.error(fields, 'the certificate watcher failed'),
})

const eventsOfStart = (log: Log) => ({
  /** `reason`: what takes its time, one of a few texts. */
  startDelayed: ({ reason, ...fields }: { reason: string; holder?: string; migration?: string }) => log.info(fields, reason),
  firstApplicationCreated: (fields: { applicationId: string }) => log.info(fields, 'the first application is created'),
  publicUrlMissing: () => log.warn('PAWL_PUBLIC_URL is not set: serviceBaseUrl is the address of the listener for phones'),
})

const eventsOfRequests = (log: Log, failures: Failures) => ({
  /** `errorId` is what the caller got. */
  utilityRequestRefused: (fields: { errorId: string; path: string; code: string }) =>
    log.info(fields, 'mobile utility request refused'),
  requestServed: (fields: { method: string; path: string; status: number; ms: number }) => log.debug(fields, 'request served'),
  /** A bug of ours: each has its line, which the caller names by its request id. */
  requestFailed: (fields: { requestId: string; method: string; path: string; err: unknown }) =>
    failures.tell('error', fields, 'request failed', true),
  requestRefused: (fields: { requestId: string; method: string; path: string; err: unknown }) =>
    failures.tell('error', fields, 'request refused, because something it needs is not available'),
  requestAborted: (fields: { method: string; path: string }) =>
    log.debug(fields, 'the caller went away before its request was whole'),
  connectionDropped: () =>
    failures.tell('warn', { err: new Error('more connections than PAWL_CONNECTIONS_MAX') }, 'a connection was not taken'),
  /** `source` had its share or, where no place was left, most. */
  connectionEnded: (fields: { source: string }) =>
    failures.tell(
      'warn',
      { ...fields, err: 'more than three quarters of PAWL_CONNECTIONS_MAX or PAWL_REQUESTS_IN_FLIGHT_MAX are taken' },
      'a connection was ended for others',
    ),
})

const eventsOfDatabase = (log: Log, failures: Failures) => ({
  connectionRefused: (fields: { err: unknown }) =>
    failures.tell('warn', fields, 'the database has no room for another connection, requests wait for those that there are'),
  connectionAwaited: untold as Untold<{ ms: number }>,
  databaseConnectionLost: (fields: { err: unknown }) => failures.tell('warn', fields, 'an idle database connection broke'),
  /** `by`: the database ended the statement, or the process stopped waiting for it. */
  statementTimedOut: untold as Untold<{ by: 'database' | 'process' }>,
  /** One statement for so many requests. */
  tripTaken: untold as Untold<{ trip: 'find' | 'store'; items: number }>,
  /** `seconds`: by which the process's own clock is ahead, negative when it is behind. */
  clockDiffers: (fields: { seconds: number }) =>
    log.error(
      fields,
      'the clock of this machine and that of the database differ: the process is not ready, its background work stands still',
    ),
  clockAgrees: () => log.info('the clock of this machine and that of the database agree again'),
})

const eventsOfWebhooks = (log: Log, failures: Failures) => ({
  /** Messages that waited longer than PAWL_WEBHOOK_RETENTION_DAYS. */
  webhookDeliveriesLost: (fields: { count: number }) =>
    log.error(fields, 'webhook deliveries waited longer than the retention and were given up'),
  webhookDelivered: untold as Untold<{ webhookId: string; count: number }>,
  /** The failed attempts of one batch. `reason` is that of the first, with the status or the host, never the path of the receiver. */
  webhookAttemptsFailed: (fields: { webhookId: string; failed: number; reason: string }) =>
    log.info(fields, 'webhook attempts failed'),
  webhookDeliveryDead: (fields: { webhookId: string; deliveryId: string; reason: string }) =>
    log.warn(fields, 'webhook delivery given up, it can be replayed'),
  webhookDisabled: (fields: { webhookId: string; reason: string }) => log.warn(fields, 'webhook disabled'),
  webhookUnusable: (fields: { webhookId: string; err: unknown }) =>
    failures.tell('error', fields, 'webhook cannot be sent', true),
  /** `reason`: `over`, `no_device`, `forgotten` or `refused`. */
  pushDropped: untold as Untold<{ provider: string; reason: string }>,
  pushRefused: (fields: { activationId: string; provider: string; reason: string }) =>
    log.warn(fields, 'a push was refused, and would be again'),
  pushTokenForgotten: (fields: { activationId: string; provider: string; reason: string }) =>
    log.info(fields, 'a push token is not known any more and was forgotten'),
  webhookRoundFailed: (fields: { err: unknown }) => failures.tell('error', fields, 'delivering webhooks failed'),
})

const eventsOfBackground = (log: Log, failures: Failures) => ({
  auditSealingFailed: (fields: { err: unknown }) => failures.tell('error', fields, 'the audit log could not be sealed'),
  auditDeliveryFailed: (fields: { err: unknown }) =>
    failures.tell('error', fields, 'the audit log could not be delivered; what waits is sent again'),
  auditChainBroken: (fields: { chain: string }) =>
    log.error(fields, 'an audit chain was altered and is sealed no further; verify the audit log'),
  /** A round of background work that went through. */
  roundDone: untold as Untold<{ work: 'housekeeping' | 'audit_sealing' | 'audit_delivery' | 'certificate_watch'; ms: number }>,
  outdatedDeleted: (fields: { operations: number; activations: number; messages: number }) =>
    log.info(fields, 'deleted what was kept for its days'),
  housekeepingFailed: (fields: { err: unknown }) => failures.tell('error', fields, 'housekeeping failed'),
})

/**
 * For a transaction, which may be rolled back: the same events, but that of a changed registration waits for `tell`, to be called when the
 * change is committed.
 */
export function holdChanges(events: Events): { readonly events: Events; readonly tell: () => void } {
  const held: Parameters<Events['registrationChanged']>[0][] = []
  const registrationChanged: Events['registrationChanged'] = (fields) => void held.push(fields)
  return { events: { ...events, registrationChanged }, tell: () => held.splice(0).forEach(events.registrationChanged) }
}
