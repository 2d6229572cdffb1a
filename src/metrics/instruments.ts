// Defines every metric of the server: name, meaning, labels. docs/METRICS.md is made from this list (node scripts/metrics-docs.ts).
//
// Labels have few values: routes as mounted, names of states and reasons, ids of webhooks and names of pinned domains, at most 200 of each. A label
// is never the id of a user, an activation or an operation, and never a text from a caller.
import { createRequire } from 'node:module'
import type { Counter as CounterOf, Gauge as GaugeOf, Histogram as HistogramOf, Registry as RegistryOf } from 'prom-client'

// Loads only the necessary parts of prom-client. The whole package also loads OpenTelemetry and quantiles, 60 modules.
const load = createRequire(import.meta.url)

const Counter = load('prom-client/lib/counter.js') as typeof CounterOf
const Gauge = load('prom-client/lib/gauge.js') as typeof GaugeOf
const Histogram = load('prom-client/lib/histogram.js') as typeof HistogramOf
const Registry = load('prom-client/lib/registry.js') as typeof RegistryOf

/** Creates the metrics of one server, in a registry of their own. */
export function createInstruments() {
  const registry = new Registry()
  const define = defineIn(registry)
  const instruments = {
    registry,
    ...requestsOf(define),
    ...phonesOf(define),
    ...operationsOf(define),
    ...webhooksOf(define),
    ...databaseOf(define),
    ...cachesOf(define),
    ...alterationsOf(define),
    ...roundsOf(define),
    ...certificatesOf(define),
    ...faultsOf(define),
    ...processOf(define),
  }
  // A series of a rare event begins with zero here, because Prometheus computes no rate for the first value of a series.
  for (const by of ['database', 'process']) instruments.statementTimeouts.inc({ by }, 0)
  for (const altered of ['counter', 'credential', 'record', 'record_binding']) instruments.alterations.inc({ of: altered }, 0)
  for (const fault of ['internal', 'unavailable']) instruments.failedRequests.inc({ of: fault }, 0)
  for (const what of ['envelope', 'temporary_key', 'activation', 'credential']) instruments.refusals.inc({ of: what }, 0)
  for (const work of ['housekeeping', 'audit_sealing', 'audit_delivery', 'certificate_watch', 'webhooks', 'record_binding'])
    instruments.failedRounds.inc({ work }, 0)
  return instruments
}

export type Instruments = ReturnType<typeof createInstruments>

/** Functions that each make one metric in a registry. */
const defineIn = (registry: InstanceType<typeof Registry>) => {
  const registers = [registry]
  return {
    counter: <L extends string = never>(name: string, help: string, labelNames: readonly L[] = []) =>
      new Counter<L>({ name, help, labelNames, registers }),
    gauge: <L extends string = never>(name: string, help: string, labelNames: readonly L[] = []) =>
      new Gauge<L>({ name, help, labelNames, registers }),
    histogram: <L extends string = never>(
      name: string,
      help: string,
      buckets: readonly number[],
      labelNames: readonly L[] = [],
    ) => new Histogram<L>({ name, help, labelNames, buckets: [...buckets], registers }),
  }
}

type Define = ReturnType<typeof defineIn>

const requestsOf = ({ counter, histogram }: Define) => ({
  requests: histogram('pawl_http_request_duration_seconds', 'Requests, from their headers to the end of their answer', TIMES, [
    'method',
    'route',
    'status',
  ]),
  droppedConnections: counter(
    'pawl_http_connections_dropped_total',
    'Connections that were not taken, or ended for others: too many at once',
  ),
})

const phonesOf = ({ counter }: Define) => ({
  verifications: counter(
    'pawl_verifications_total',
    'Authentication codes, tokens, offline passwords and device signatures of phones that were checked. type: the factors, token, offline, ' +
      'device_signature or certificate_request. version: of the protocol; of the last three its generation. result: accepted, or why not',
    ['version', 'type', 'result'],
  ),
  doorAnswers: counter(
    'pawl_door_answers_total',
    'Answers to banks that had something checked which a phone sent to them. door: code, token, open, seal, offline or offline_challenge. ' +
      'verdict: valid, repeated (with Idempotency-Key), or why not',
    ['door', 'verdict'],
  ),
  refusals: counter(
    'pawl_refusals_total',
    'What was refused before or beside a code. of: envelope (not a malformed one), temporary_key, activation or credential',
    ['of'],
  ),
  blockedActivations: counter('pawl_activations_blocked_total', 'Activations that wrong codes blocked'),
  changedActivations: counter(
    'pawl_activations_changed_total',
    'Changes of the state of activations by this process, other than blocks by wrong codes',
    ['state'],
  ),
})

const operationsOf = ({ counter, gauge, histogram }: Define) => ({
  createdOperations: counter('pawl_operations_created_total', 'Operations that were created'),
  failedAttempts: counter('pawl_operation_failed_attempts_total', 'Failed attempts to approve an operation'),
  endedOperations: counter('pawl_operations_ended_total', 'Operations that reached a final state', ['state']),
  operationAges: histogram(
    'pawl_operation_decision_seconds',
    'Age at which operations were approved, rejected, canceled, or failed',
    AGES,
    ['state'],
  ),
  pendingOperations: gauge('pawl_operations_pending', 'Operations that wait for their user, up to 100000'),
  oldestOperation: gauge('pawl_operations_pending_oldest_seconds', 'Age of the oldest of them'),
})

const webhooksOf = ({ counter, gauge }: Define) => ({
  webhookAttempts: counter('pawl_webhook_attempts_total', 'Attempts to deliver a message. result: delivered or failed', [
    'webhook',
    'result',
  ]),
  deadDeliveries: counter('pawl_webhook_deliveries_dead_total', 'Messages given up after their last attempt', ['webhook']),
  droppedPushes: counter(
    'pawl_push_dropped_total',
    'Pushes that were not sent, or to nobody. reason: over (nobody needs it any more), no_device, forgotten (the provider does not know the token), or refused (for good)',
    ['provider', 'reason'],
  ),
  waitingDeliveries: gauge('pawl_webhook_deliveries_waiting', 'Messages that wait, up to 10000', ['webhook']),
  webhookLag: gauge('pawl_webhook_lag_seconds', 'Age of the oldest message that waits; 0 when none does', ['webhook']),
  webhookFailures: gauge('pawl_webhook_failures_in_row', 'Failed attempts since the last success', ['webhook']),
  webhookEnabled: gauge('pawl_webhook_enabled', '1 when the webhook is enabled', ['webhook']),
})

const databaseOf = ({ counter, gauge, histogram }: Define) => ({
  poolConnections: gauge('pawl_database_connections', 'Connections to PostgreSQL. state: busy or idle', ['state']),
  poolMax: gauge('pawl_database_connections_max', 'Connections that the process may open'),
  poolWaiting: gauge('pawl_database_waiting', 'Callers that wait for a connection now'),
  poolWaits: histogram('pawl_database_wait_seconds', 'How long callers waited who found no idle connection', WAITS),
  statementTimeouts: counter(
    'pawl_database_statement_timeouts_total',
    'Statements without an answer in time. by: database (its own limit) or process (no answer at all)',
    ['by'],
  ),
  lostConnections: counter('pawl_database_connections_lost_total', 'Connections that broke while idle'),
  refusedConnections: counter(
    'pawl_database_connections_refused_total',
    'Connections for which the database had no room; requests waited for those that there were',
  ),
  durable: gauge(
    'pawl_database_durable',
    '1 when what is committed survives a crash of the database, by its fsync, full_page_writes and synchronous_commit; the embedded database does not wait for the disk',
  ),
  trips: histogram(
    'pawl_database_trip_items',
    'Requests that shared one statement of an authentication. trip: find (the read) or store (the write)',
    ITEMS,
    ['trip'],
  ),
  clockDifference: gauge(
    'pawl_clock_difference_seconds',
    "By how much the clock of the process is ahead of the database's, negative when it is behind; 0 for the embedded database",
  ),
  lastReading: gauge(
    'pawl_database_reading_timestamp_seconds',
    'When the metrics that come from the database were read last; they are left out when that is over a minute ago',
  ),
})

const cachesOf = ({ counter, gauge }: Define) => ({
  cacheEntries: gauge('pawl_cache_entries', 'Entries of a cache', ['cache']),
  cacheEntriesMax: gauge('pawl_cache_entries_max', 'Entries it may have', ['cache']),
  cacheHits: counter('pawl_cache_hits_total', 'Questions it answered', ['cache']),
  cacheMisses: counter('pawl_cache_misses_total', 'Questions it could not answer', ['cache']),
})

const alterationsOf = ({ counter, gauge }: Define) => ({
  sealLag: gauge('pawl_audit_seal_lag_seconds', 'Age of the oldest audit row that may not be sealed; 0 when all are', ['log']),
  brokenChains: counter('pawl_audit_chains_broken_total', 'Audit chains that were found altered'),
  alterations: counter(
    'pawl_database_alterations_total',
    'What somebody changed in the database by hand. of: counter (of an activation, put back), credential, record (sealed) or record_binding',
    ['of'],
  ),
  unboundRecordsTaken: gauge(
    'pawl_unbound_records_taken',
    'Whether sealed records are taken that are bound to no user; 0 once all are bound (pawl key bind)',
  ),
})

const roundsOf = ({ counter, gauge, histogram }: Define) => ({
  rounds: histogram('pawl_background_round_seconds', 'Rounds of background work that went through', ROUNDS, ['work']),
  failedRounds: counter('pawl_background_failures_total', 'Rounds of background work that failed', ['work']),
  lastRound: gauge('pawl_background_last_success_timestamp_seconds', 'When a round went through last', ['work']),
})

const certificatesOf = ({ counter, gauge }: Define) => ({
  certificateExpiry: gauge(
    'pawl_certificate_expiry_timestamp_seconds',
    'When a pinned certificate expires; days left are (it - time()) / 86400. certificate: pinned (the one that lasts longest) or live ' +
      '(seen at the domain, with PAWL_CERTIFICATE_WATCH)',
    ['application', 'domain', 'certificate'],
  ),
  internalTlsExpiry: gauge(
    'pawl_internal_tls_expiry_timestamp_seconds',
    'With PAWL_INTERNAL_TLS_...: when the certificate of the internal listener ends, or the last of the authorities of its callers. of: ' +
      'certificate or authorities',
    ['of'],
  ),
  certificateAlarms: counter(
    'pawl_certificate_not_pinned_total',
    'Looks at a domain that showed a certificate that is not pinned',
  ),
})

const faultsOf = ({ counter, gauge }: Define) => ({
  failedRequests: counter('pawl_failures_total', 'Requests that failed by a fault of the server. of: internal or unavailable', [
    'of',
  ]),
  info: gauge('pawl_info', 'Always 1; its labels say what runs', ['version', 'database']),
})

const processOf = ({ counter, gauge }: Define) => ({
  processorTime: counter('process_cpu_seconds_total', 'Processor time of the process, all threads'),
  residentMemory: gauge('process_resident_memory_bytes', 'Memory of the process'),
  heapUsed: gauge('nodejs_heap_size_used_bytes', 'Heap in use'),
  heapTotal: gauge('nodejs_heap_size_total_bytes', 'Heap that is reserved'),
  externalMemory: gauge('nodejs_external_memory_bytes', 'Memory of buffers and other objects outside of the heap'),
  openFiles: gauge('process_open_fds', 'Open file descriptors, where the system tells'),
  filesMax: gauge(
    'process_max_fds',
    'File descriptors that the process may open. Beyond them the system ends connections unserved',
  ),
  started: gauge('process_start_time_seconds', 'When the process started'),
  loopDelay: gauge(
    'pawl_event_loop_delay_seconds',
    'By how much timers were late since the reading before. quantile: 0.5, 0.9, 0.99, or 1 for the longest',
    ['quantile'],
  ),
  loopUse: gauge('pawl_event_loop_utilization_ratio', 'Share of time in which the event loop was busy since the reading before'),
})

const TIMES = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10]
const AGES = [5, 15, 30, 60, 120, 300, 600, 1_800, 7_200, 86_400]
const WAITS = [0.001, 0.005, 0.02, 0.1, 0.5, 2.5]
const ITEMS = [1, 2, 4, 8, 16, 32, 64]
const ROUNDS = [0.01, 0.05, 0.25, 1, 5, 30]
