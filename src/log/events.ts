// Names every event of the server and writes its log line: one function an event. A line is constant text plus fields; fields never hold secrets.
import { createFailures, type Failures } from './failures.ts'
import type { Log } from './log.ts'

/** An event that is only counted (metrics/count-events.ts) and has no log line. */
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
  /**
   * `type`: the factors in lower case, `token`, `offline`, `device_signature` or `certificate_request`. `result`: `accepted`, or the reason of the
   * refusal.
   */
  authenticationChecked: untold as Untold<{ version: string; type: string; result: string }>,
  /** pawl answered a bank that had it check, open or seal something of a phone. `verdict`: `valid`, `repeated`, or the reason of the refusal. */
  doorAnswered: untold as Untold<{ door: string; verdict: string }>,
  authenticationFailed: (fields: { activationId: string; resourceId: string; reason: string }) =>
    log.info(fields, 'authentication failed'),
  /** `until` is the end of a temporary block. */
  activationBlocked: (fields: { activationId: string; reason: string; until: string | undefined }) =>
    log.warn(fields, 'activation blocked'),
  /** `stored` is the counter in the database, `known` is the higher one that this process stored before. */
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
  /** The user or the bank decided, or too many attempts failed. */
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
  /** `username` is undefined unless a user of that name exists: a stranger may type a password there. */
  credentialRefused: (fields: { username: string | undefined; source: string; reason: string }) =>
    log.warn(fields, 'credential refused'),
  /**
   * An access token or a client certificate was refused. No limit holds such callers back, so the first refusal of a kind has a line and the others
   * are counted.
   */
  callerRefused: ({ reason, ...fields }: { username: string | undefined; source: string; reason: string }) =>
    failures.tell('warn', { ...fields, err: `${reason}, from ${fields.source}` }, 'caller refused'),
  /** A trusted proxy sent the header. The first one of a proxy has a line, the others are counted. */
  forwardedUnreadable: ({ source }: { source: string }) =>
    failures.tell('warn', { err: `from ${source}` }, 'X-Forwarded-For of a proxy has a member that is no address: it ends there'),
  /** No limit holds back callers that open connections, so the first refusal of a kind has a line and the others are counted. */
  tlsRefused: (fields: { source: string; reason: string }) =>
    failures.tell('warn', { ...fields, err: `${fields.reason}, from ${fields.source}` }, 'a TLS connection was refused'),
  /** When the certificate of the internal listener ends, and the last authority of its callers. */
  tlsHolds: untold as Untold<{ of: 'certificate' | 'authorities'; endsAt: number }>,
  tlsRenewed: () => log.info('new files of TLS hold for new connections'),
  tlsNotRenewed: (fields: { reason: string }) => log.error(fields, 'new files of TLS are wrong, the former go on'),
  applicationMissing: (fields: { username: string; reason: string }) =>
    log.warn(fields, 'a call for an application was refused: the credential has none'),
  /**
   * `source`: an IPv4 address, or the /64 of an IPv6 address. Without `username`, all logins from the source wait, except those of users known
   * there.
   */
  loginsWait: (fields: { username: string | undefined; source: string; seconds: number }) =>
    log.warn(fields, 'too many wrong passwords: logins are refused for a while'),
  /** The caller gets the same answer as for a user that does not exist. */
  credentialAltered: (fields: { username: string }) =>
    log.error(fields, 'a credential was altered in the database and is refused: remove it and create it anew'),
  /** This happens once in the life of a database. If it happens again, somebody has removed the key of the MACs. */
  credentialsSealed: (fields: { credentials: readonly string[] }) =>
    log.warn(fields, 'credentials got their first MAC as they are: check their roles'),
  /** The same for credentials that pawl sends to receivers of webhooks. `webhooks` names each with the server that its credential is for. */
  webhooksSealed: (fields: { webhooks: readonly string[] }) =>
    log.warn(fields, 'credentials of webhooks got their first MAC as they are: check the servers that they are for'),
  adminPasswordReplaced: (fields: { username: string }) => log.warn(fields, 'admin password replaced by the configured one'),
})

const eventsOfRecords = (log: Log, failures: Failures) => ({
  /** `record`: table, column and row of the record. pawl goes on as if the record did not exist. */
  recordAltered: (fields: { record: string }) =>
    log.error(fields, 'a sealed record was altered in the database, or moved to another owner, and is refused'),
  /** `record`: the first that named this key. Lists leave such values out, and requests that need one fail. */
  masterKeyMissing: (fields: { keyId: string; record: string }) =>
    log.error(
      fields,
      'a sealed record names a master key that is not given: pawl key list says whether it is one record or many',
    ),
  bindingAltered: () =>
    log.error('the row of record_binding was altered in the database: sealed records that are bound to no owner are refused'),
  bindingStage: (fields: { stage: 'OPEN' | 'BEGUN' | 'BOUND' }) =>
    fields.stage === 'OPEN'
      ? log.warn(fields, 'sealed records are not bound to their users: pawl key bind, once no process of the version before runs')
      : log.info(
          fields,
          fields.stage === 'BEGUN' ? 'sealed records are to be bound to their users' : 'all sealed records are bound',
        ),
  /** `unopened`: the records that none of the keys opens, each by table, column and row. */
  recordsBound: (fields: { replaced: number; left: number; unopened: readonly string[] }) =>
    fields.unopened.length === 0
      ? log.info(fields, 'sealed records were bound to their users')
      : log.error(fields, 'sealed records were bound to their users, but for some that do not open'),
  bindingFailed: (fields: { err: unknown }) => failures.tell('error', fields, 'the binding of sealed records failed'),
})

const eventsOfCertificates = (log: Log) => ({
  certificateSeen: (fields: { applicationId: string; domain: string; daysToExpiry: number }) =>
    log.info(fields, 'the live certificate is pinned'),
  /** The certificate watcher reports this as an alarm. */
  certificateNotPinned: (fields: { applicationId: string; domain: string; daysToExpiry: number }) =>
    log.error(fields, 'the live certificate is not pinned: apps will refuse the connection'),
  certificateNotSeen: (fields: { applicationId: string; domain: string; reason: string }) =>
    log.warn(fields, 'the live certificate could not be read'),
  certificateWatchFailed: (fields: { err: unknown }) => log.error(fields, 'the certificate watcher failed'),
})

const eventsOfStart = (log: Log) => ({
  /** `reason`: the cause of the delay, one of a few constant texts. */
  startDelayed: ({ reason, ...fields }: { reason: string; holder?: string; migration?: string }) => log.info(fields, reason),
  firstApplicationCreated: (fields: { applicationId: string }) => log.info(fields, 'the first application is created'),
  publicUrlMissing: () => log.warn('PAWL_PUBLIC_URL is not set: serviceBaseUrl is the address of the listener for phones'),
})

const eventsOfRequests = (log: Log, failures: Failures) => ({
  /** `errorId` is the id in the answer to the caller. */
  utilityRequestRefused: (fields: { errorId: string; path: string; code: string }) =>
    log.info(fields, 'mobile utility request refused'),
  requestServed: (fields: { method: string; path: string; status: number; ms: number }) => log.debug(fields, 'request served'),
  /** A bug of pawl. Each failed request has its own line, which the request id in the answer leads to. */
  requestFailed: (fields: { requestId: string; method: string; path: string; err: unknown }) =>
    failures.tell('error', fields, 'request failed', true),
  requestRefused: (fields: { requestId: string; method: string; path: string; err: unknown }) =>
    failures.tell('error', fields, 'request refused, because something it needs is not available'),
  requestAborted: (fields: { method: string; path: string }) =>
    log.debug(fields, 'the caller went away before its request was whole'),
  connectionDropped: () =>
    failures.tell('warn', { err: new Error('more connections than PAWL_CONNECTIONS_MAX') }, 'a connection was not taken'),
  /** `source` had used up its share, or no place was left and `source` had most connections. */
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
  /** `by`: `database` ended the statement, or this `process` stopped waiting for it. */
  statementTimedOut: untold as Untold<{ by: 'database' | 'process' }>,
  /** One statement served `items` requests. */
  tripTaken: untold as Untold<{ trip: 'find' | 'store'; items: number }>,
  /** `seconds`: how far the clock of the process is ahead of the database's; negative when it is behind. */
  clockDiffers: (fields: { seconds: number }) =>
    log.error(
      fields,
      'the clock of this machine and that of the database differ: the process is not ready, its background work stands still',
    ),
  clockAgrees: () => log.info('the clock of this machine and that of the database agree again'),
})

const eventsOfWebhooks = (log: Log, failures: Failures) => ({
  /** `count` messages waited longer than PAWL_WEBHOOK_RETENTION_DAYS. */
  webhookDeliveriesLost: (fields: { count: number }) =>
    log.error(fields, 'webhook deliveries waited longer than the retention and were given up'),
  webhookDelivered: untold as Untold<{ webhookId: string; count: number }>,
  /** `failed` attempts of one batch failed. `reason` belongs to the first: a status or a host, never the path of the receiver. */
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
  auditChainBroken: (fields: { chain: string }) => log.error(fields, 'an audit chain was altered; verify the audit log'),
  /** A round of background work was completed in `ms` milliseconds. */
  roundDone: untold as Untold<{ work: 'housekeeping' | 'audit_sealing' | 'audit_delivery' | 'certificate_watch'; ms: number }>,
  outdatedDeleted: (fields: { operations: number; activations: number; messages: number }) =>
    log.info(fields, 'deleted what was kept for its days'),
  housekeepingFailed: (fields: { err: unknown }) => failures.tell('error', fields, 'housekeeping failed'),
})

/**
 * Returns the same events for use inside a transaction, which may be rolled back. `registrationChanged` is held until `tell` is called. Call `tell`
 * after the commit.
 */
export function holdChanges(events: Events): { readonly events: Events; readonly tell: () => void } {
  const held: Parameters<Events['registrationChanged']>[0][] = []
  const registrationChanged: Events['registrationChanged'] = (fields) => void held.push(fields)
  return { events: { ...events, registrationChanged }, tell: () => held.splice(0).forEach(events.registrationChanged) }
}
