// Collects the promises of answers 200, which must hold for ever, and checks them and the invariants that always hold.
import type { AuditReport } from '../../src/domain/audit/verification.ts'
import type { Received } from './site.ts'
import type { View } from './view.ts'

/** The promises that servers have made by their answers. */
export interface Facts {
  /** The least counter by side of an activation (sideOf). */
  readonly counters: Map<string, number>
  readonly removed: Set<string>
  /** The final status that an answer named, by operation. */
  readonly ended: Map<string, string>
  readonly operations: Set<string>
  /** Users with a registration. */
  readonly registered: Set<string>
  readonly tokens: Set<string>
  /** Removed tokens. */
  readonly goneTokens: Set<string>
  readonly credentials: Set<string>
  /** The position of the newest head, by chain of the audit log. */
  readonly heads: Map<string, number>
}

export const createFacts = (): Facts => ({
  counters: new Map(),
  removed: new Set(),
  ended: new Map(),
  operations: new Set(),
  registered: new Set(),
  tokens: new Set(),
  goneTokens: new Set(),
  credentials: new Set(),
  heads: new Map(),
})

/** Each generation of the protocol has a counter of its own (v4 §10.4). */
export const sideOf = (activationId: string, generation: number): string => `${activationId} of ${generation}`

/** Describes the first broken promise; undefined when there is none. */
export function findBrokenPromise(facts: Facts, view: View): string | undefined {
  for (const { id, counter: found, generation } of view.activations.values()) {
    const counter = facts.counters.get(sideOf(id, generation)) ?? 0
    if (found < counter) return `a code was accepted at counter ${counter - 1} of ${id}, and the counter is ${found}`
  }
  for (const id of facts.removed) {
    const state = view.activations.get(id)?.state
    if (state !== 'REMOVED') return `the removal of ${id} was answered, and it is ${state}`
  }
  for (const [id, status] of facts.ended) {
    const found = view.operations.get(id)?.status
    if (found !== status) return `operation ${id} was told to be ${status}, and is ${found}`
  }
  for (const id of facts.operations)
    if (!view.operations.has(id)) return `the creation of operation ${id} was answered, and it is gone`
  for (const id of facts.tokens) if (!view.tokens.has(id)) return `token ${id} was handed out, and is gone`
  for (const id of facts.goneTokens) if (view.tokens.has(id)) return `the removal of token ${id} was answered, and it is there`
  for (const id of facts.credentials) if (!view.credentials.has(id)) return `credential ${id} was created, and is gone`
  const users = new Set([...view.activations.values()].map(({ userId }) => userId))
  for (const id of facts.registered) if (!users.has(id)) return `the registration of ${id} was answered, and is gone`
  return undefined
}

/** Describes the first value that went back from one view to the next. */
export function findStepBack(before: View, after: View): string | undefined {
  for (const [id, was] of before.activations) {
    const is = after.activations.get(id)
    if (is === undefined) return `activation ${id} is gone`
    if (is.counter < was.counter && is.generation === was.generation)
      return `the counter of ${id} went back from ${was.counter} to ${is.counter}`
    if (was.state === 'REMOVED' && is.state !== 'REMOVED') return `the removed activation ${id} is ${is.state} again`
    if (is.generation < was.generation) return `${id} went back to generation ${is.generation}`
    // Each accepted code moves the counter by at least one.
    if (is.accepted > is.counter && !is.isUpgraded)
      return `${id} has accepted ${is.accepted} codes, and its counter is ${is.counter}`
  }
  for (const [id, { status }] of before.operations) {
    const now = after.operations.get(id)?.status
    if (now === undefined) return `operation ${id} is gone`
    if (status !== 'PENDING' && now !== status) return `the final operation ${id} went from ${status} to ${now}`
  }
  return undefined
}

/**
 * Describes the first activation that changed in a step without a request about it: a request about one phone must not change others of its user.
 * `meant`: the ids of the activations, and of the users, that the step's requests are about.
 */
export function findDisturbed(before: View, after: View, meant: ReadonlySet<string>): string | undefined {
  for (const [id, { all, userId, state }] of after.activations) {
    const was = before.activations.get(id)
    if (was !== undefined && was.all !== all && !meant.has(id) && !meant.has(userId))
      return `nobody asked for anything about ${id} of ${userId}, and it has changed (${was.state}, now ${state})`
  }
  return undefined
}

/** Describes the first broken promise of webhooks: each message comes at least once, and messages of one object in the order of its changes. */
export function findWrongDelivery(view: View, received: readonly Received[]): string | undefined {
  const first = new Map<string, number>()
  for (const [place, { deliveryId }] of received.entries()) if (!first.has(deliveryId)) first.set(deliveryId, place)
  const last = new Map<string, { place: number; id: string }>()
  for (const { id, lane, status } of view.deliveries) {
    const place = first.get(id)
    if (status === 'DELIVERED' && place === undefined) return `message ${id} counts as delivered, and was not received`
    if (status === 'DEAD') continue
    const before = last.get(lane)
    if (before !== undefined && (place ?? Infinity) < before.place)
      return `message ${id} came before ${before.id}, an earlier one of its object`
    last.set(lane, { place: place ?? Infinity, id })
  }
  const known = new Set(view.deliveries.map(({ id }) => id))
  const stranger = received.find(({ deliveryId }) => !known.has(deliveryId))
  return stranger && `message ${stranger.deliveryId} was received, and tells of a change that is not stored`
}

/** Describes the first fault of the audit log: a chain that does not verify, or a head that went back. */
export function findWrongChain(facts: Facts, report: AuditReport): string | undefined {
  for (const { chain, fault, headPosition } of report.chains) {
    if (fault !== undefined) return `the audit chain ${chain} does not verify: ${fault.problem}`
    if (headPosition < (facts.heads.get(chain) ?? 0)) return `the audit chain ${chain} became shorter`
    facts.heads.set(chain, headPosition)
  }
  return undefined
}
