// Which metric each event moves, by how much, and that the event still has its log line.
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createEvents, type Events } from '../log/events.ts'
import { countEvents } from './count-events.ts'
import { createInstruments } from './instruments.ts'

const NOW = 1_700_000_000_000
const err = new Error('of a test')
const EVENTS = createEvents(pino({ enabled: false }))

type Told = { readonly [Name in keyof Events]: readonly [name: Name, ...told: Parameters<Events[Name]>] }[keyof Events]

/** The lines of all metrics that are not zero. */
const movedIn = async ({ registry }: ReturnType<typeof createInstruments>): Promise<readonly string[]> =>
  (await registry.metrics()).split('\n').filter((line) => line !== '' && !/^#|_bucket\{| 0$/.test(line))

const CASES: readonly (readonly [told: Told, ...moved: string[]])[] = [
  [
    ['authenticationChecked', { version: '3.3', type: 'possession', result: 'accepted' }],
    'pawl_verifications_total{version="3.3",type="possession",result="accepted"} 1',
  ],
  [['doorAnswered', { door: 'code', verdict: 'valid' }], 'pawl_door_answers_total{door="code",verdict="valid"} 1'],
  [['activationBlocked', { activationId: 'a', reason: 'r', until: undefined }], 'pawl_activations_blocked_total 1'],
  [
    ['registrationChanged', { activationId: 'a', from: 'ACTIVE', to: 'REMOVED', reason: null }],
    'pawl_activations_changed_total{state="REMOVED"} 1',
  ],
  [
    ['envelopeRefused', { activationId: undefined, applicationKey: undefined, reason: 'r' }],
    'pawl_refusals_total{of="envelope"} 1',
  ],
  [['temporaryKeyRefused', { reason: 'r' }], 'pawl_refusals_total{of="temporary_key"} 1'],
  [['activationRefused', { reason: 'r' }], 'pawl_refusals_total{of="activation"} 1'],
  [['credentialRefused', { username: undefined, source: 's', reason: 'r' }], 'pawl_refusals_total{of="credential"} 1'],
  [['callerRefused', { username: undefined, source: 's', reason: 'r' }], 'pawl_refusals_total{of="credential"} 1'],
  [['operationCreated', { operationId: 'o' }], 'pawl_operations_created_total 1'],
  [['operationAttemptFailed', { operationId: 'o' }], 'pawl_operation_failed_attempts_total 1'],
  [
    ['operationEnded', { state: 'APPROVED', ageMs: 2_500 }],
    'pawl_operations_ended_total{state="APPROVED"} 1',
    'pawl_operation_decision_seconds_sum{state="APPROVED"} 2.5',
    'pawl_operation_decision_seconds_count{state="APPROVED"} 1',
  ],
  [['operationsExpired', { count: 3 }], 'pawl_operations_ended_total{state="EXPIRED"} 3'],
  [['webhookDelivered', { webhookId: 'w', count: 3 }], 'pawl_webhook_attempts_total{webhook="w",result="delivered"} 3'],
  [
    ['webhookAttemptsFailed', { webhookId: 'w', failed: 3, reason: 'r' }],
    'pawl_webhook_attempts_total{webhook="w",result="failed"} 3',
  ],
  [
    ['webhookDeliveryDead', { webhookId: 'w', deliveryId: 'd', reason: 'r' }],
    'pawl_webhook_deliveries_dead_total{webhook="w"} 1',
  ],
  [['pushDropped', { provider: 'apns', reason: 'over' }], 'pawl_push_dropped_total{provider="apns",reason="over"} 1'],
  [
    ['tripTaken', { trip: 'find', items: 3 }],
    'pawl_database_trip_items_sum{trip="find"} 3',
    'pawl_database_trip_items_count{trip="find"} 1',
  ],
  [['connectionAwaited', { ms: 250 }], 'pawl_database_wait_seconds_sum 0.25', 'pawl_database_wait_seconds_count 1'],
  [['statementTimedOut', { by: 'process' }], 'pawl_database_statement_timeouts_total{by="process"} 1'],
  [['databaseConnectionLost', { err }], 'pawl_database_connections_lost_total 1'],
  [['connectionRefused', { err }], 'pawl_database_connections_refused_total 1'],
  [['connectionDropped'], 'pawl_http_connections_dropped_total 1'],
  [['connectionEnded', { source: 's' }], 'pawl_http_connections_dropped_total 1'],
  [['requestFailed', { requestId: 'r', method: 'GET', path: '/', err }], 'pawl_failures_total{of="internal"} 1'],
  [['requestRefused', { requestId: 'r', method: 'GET', path: '/', err }], 'pawl_failures_total{of="unavailable"} 1'],
  [['auditChainBroken', { chain: 'c' }], 'pawl_audit_chains_broken_total 1'],
  [['counterWentBack', { activationId: 'a', stored: 1, known: 2 }], 'pawl_database_alterations_total{of="counter"} 1'],
  [['credentialAltered', { username: 'u' }], 'pawl_database_alterations_total{of="credential"} 1'],
  [['recordAltered', { record: 'r' }], 'pawl_database_alterations_total{of="record"} 1'],
  [['masterKeyMissing', { keyId: 'k', record: 'r' }], 'pawl_database_alterations_total{of="record"} 1'],
  [['bindingAltered'], 'pawl_database_alterations_total{of="record_binding"} 1'],
  [['bindingStage', { stage: 'OPEN' }], 'pawl_unbound_records_taken 1'],
  [['bindingStage', { stage: 'BEGUN' }], 'pawl_unbound_records_taken 1'],
  [['bindingStage', { stage: 'BOUND' }]],
  [['bindingFailed', { err }], 'pawl_background_failures_total{work="record_binding"} 1'],
  [['tlsHolds', { of: 'certificate', endsAt: NOW }], 'pawl_internal_tls_expiry_timestamp_seconds{of="certificate"} 1700000000'],
  [['certificateNotPinned', { applicationId: 'a', domain: 'd', daysToExpiry: 1 }], 'pawl_certificate_not_pinned_total 1'],
  [
    ['roundDone', { work: 'housekeeping', ms: 2_500 }],
    'pawl_background_round_seconds_sum{work="housekeeping"} 2.5',
    'pawl_background_round_seconds_count{work="housekeeping"} 1',
    'pawl_background_last_success_timestamp_seconds{work="housekeeping"} 1700000000',
  ],
  [['housekeepingFailed', { err }], 'pawl_background_failures_total{work="housekeeping"} 1'],
  [['auditSealingFailed', { err }], 'pawl_background_failures_total{work="audit_sealing"} 1'],
  [['auditDeliveryFailed', { err }], 'pawl_background_failures_total{work="audit_delivery"} 1'],
  [['certificateWatchFailed', { err }], 'pawl_background_failures_total{work="certificate_watch"} 1'],
  [['webhookRoundFailed', { err }], 'pawl_background_failures_total{work="webhooks"} 1'],
]

const tests = CASES.map(([[name, ...fields], ...moved]) => ({ name, fields, moved }))

test.each(tests)('the event $name of $fields moves $moved', async ({ name, fields, moved }) => {
  const heard: unknown[] = []
  const instruments = createInstruments()
  const events = countEvents({ ...EVENTS, [name]: (...told: unknown[]) => heard.push(told) }, instruments, () => NOW)
  const before = await movedIn(instruments)
  const tell = events[name] as (...told: readonly unknown[]) => void
  tell(...fields)
  expect((await movedIn(instruments)).filter((line) => !before.includes(line))).toEqual(moved)
  expect(heard).toEqual([fields])
})

test('the cases have all events that are counted', () => {
  const counted = countEvents(EVENTS, createInstruments(), () => NOW)
  const names = (Object.keys(EVENTS) as (keyof Events)[]).filter((name) => counted[name] !== EVENTS[name])
  expect(new Set(CASES.map(([[name]]) => name))).toEqual(new Set(names))
})
