// Counts the events of the server. The code that reports an event knows nothing of metrics.
import type { Events } from '../log/events.ts'
import type { Instruments } from './instruments.ts'

/** Returns the same events, each of which is also counted. `now`: milliseconds since 1970. */
export function countEvents(events: Events, instruments: Instruments, now: () => number): Events {
  const i = instruments
  const failRound = (work: string) => () => i.failedRounds.inc({ work })
  const counts: { readonly [Name in keyof Events]?: (...told: Parameters<Events[Name]>) => void } = {
    authenticationChecked: ({ version, type, result }) => i.verifications.inc({ version, type, result }),
    doorAnswered: ({ door, verdict }) => i.doorAnswers.inc({ door, verdict }),
    activationBlocked: () => i.blockedActivations.inc(),
    registrationChanged: ({ to }) => i.changedActivations.inc({ state: to }),
    envelopeRefused: () => i.refusals.inc({ of: 'envelope' }),
    temporaryKeyRefused: () => i.refusals.inc({ of: 'temporary_key' }),
    activationRefused: () => i.refusals.inc({ of: 'activation' }),
    credentialRefused: () => i.refusals.inc({ of: 'credential' }),
    callerRefused: () => i.refusals.inc({ of: 'credential' }),
    operationCreated: () => i.createdOperations.inc(),
    operationAttemptFailed: () => i.failedAttempts.inc(),
    operationEnded: ({ state, ageMs }) => {
      i.endedOperations.inc({ state })
      i.operationAges.observe({ state }, ageMs / 1000)
    },
    operationsExpired: ({ count }) => i.endedOperations.inc({ state: 'EXPIRED' }, count),
    webhookDelivered: ({ webhookId, count }) => i.webhookAttempts.inc({ webhook: webhookId, result: 'delivered' }, count),
    webhookAttemptsFailed: ({ webhookId, failed }) => i.webhookAttempts.inc({ webhook: webhookId, result: 'failed' }, failed),
    webhookDeliveryDead: ({ webhookId }) => i.deadDeliveries.inc({ webhook: webhookId }),
    pushDropped: ({ provider, reason }) => i.droppedPushes.inc({ provider, reason }),
    tripTaken: ({ trip, items }) => i.trips.observe({ trip }, items),
    connectionAwaited: ({ ms }) => i.poolWaits.observe(ms / 1000),
    statementTimedOut: ({ by }) => i.statementTimeouts.inc({ by }),
    databaseConnectionLost: () => i.lostConnections.inc(),
    connectionRefused: () => i.refusedConnections.inc(),
    connectionDropped: () => i.droppedConnections.inc(),
    connectionEnded: () => i.droppedConnections.inc(),
    requestFailed: () => i.failedRequests.inc({ of: 'internal' }),
    requestRefused: () => i.failedRequests.inc({ of: 'unavailable' }),
    auditChainBroken: () => i.brokenChains.inc(),
    counterWentBack: () => i.alterations.inc({ of: 'counter' }),
    credentialAltered: () => i.alterations.inc({ of: 'credential' }),
    recordAltered: () => i.alterations.inc({ of: 'record' }),
    masterKeyMissing: () => i.alterations.inc({ of: 'record' }),
    bindingAltered: () => i.alterations.inc({ of: 'record_binding' }),
    bindingStage: ({ stage }) => i.unboundRecordsTaken.set(stage === 'BOUND' ? 0 : 1),
    bindingFailed: failRound('record_binding'),
    tlsHolds: ({ of, endsAt }) => i.internalTlsExpiry.set({ of }, endsAt / 1000),
    certificateNotPinned: () => i.certificateAlarms.inc(),
    roundDone: ({ work, ms }) => {
      i.rounds.observe({ work }, ms / 1000)
      i.lastRound.set({ work }, now() / 1000)
    },
    housekeepingFailed: failRound('housekeeping'),
    auditSealingFailed: failRound('audit_sealing'),
    auditDeliveryFailed: failRound('audit_delivery'),
    certificateWatchFailed: failRound('certificate_watch'),
    webhookRoundFailed: failRound('webhooks'),
  }
  const counted = Object.entries(counts) as [keyof Events, (...told: unknown[]) => void][]
  return {
    ...events,
    ...Object.fromEntries(
      counted.map(([name, count]) => {
        const tell = events[name] as (...told: unknown[]) => void
        const both = (...told: unknown[]): void => {
          count(...told)
          tell(...told)
        }
        return [name, both]
      }),
    ),
  }
}
