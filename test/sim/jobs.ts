// Defines the parts of a simulation's actions: requests, the promises of their answers, and the simulation's data on phones and operations.
import { type HttpReply, type HttpRequest, member } from '../../phone/http.ts'
import { type Facts, sideOf } from './facts.ts'
import { bankRequest, type Code, type SimulatedPhone } from './phones.ts'
import type { Prepared } from './prepared.ts'
import type { Running, Site } from './site.ts'
import type { View } from './view.ts'

/** The database before and after a step. */
export interface Look {
  readonly before: View
  readonly after: View
  /** Whether no late statement of an earlier step ran in this one. */
  readonly isCertain: boolean
  /** The activations whose state requests of this step change, once for each request. */
  readonly changed: readonly string[]
}

/** Checks the promise of an answer about its step. Returns a text when it is broken. */
export type Check = (look: Look) => string | undefined

export interface Job {
  readonly name: string
  readonly request: HttpRequest
  readonly code?: Code
  /** The call of a door that the request makes. */
  readonly ask?: DoorAsk
  /** The activation whose state the request changes, other than by its code. */
  readonly changes?: string | undefined
  /** The activation or the user that the request is about, if neither `code` nor `changes` names it. */
  readonly about?: string | undefined
  /** Called with an answer 200. */
  readonly told: (reply: HttpReply) => Check | undefined
}

/** A bank's call of a door, which it repeats under the same key when no answer comes. */
export interface DoorAsk {
  readonly phone: SimulatedPhone
  readonly name: string
  readonly request: HttpRequest
  /** The Idempotency-Key; undefined when the bank sends none. */
  readonly key: string | undefined
  readonly code: Code | undefined
  /** Whether the server computes in the thread pool. */
  readonly isPooled: boolean
  /** Counts an acceptance, over all doors. `isFirst`: the bank did not make this call in an earlier step. */
  readonly accept: (life: Life, isFirst: boolean) => Check | undefined
  /** A call about the same code or token under another key, or without a key. */
  readonly renew: (key: string | undefined) => DoorAsk
  /** The time of the first sending; undefined before. */
  sentAt: number | undefined
  /** The first answer, which pawl keeps under the key; undefined while it is unknown. */
  first: { readonly verdict: DoorVerdict; readonly at: number } | undefined
}

export interface DoorVerdict {
  readonly isValid: boolean
  readonly reason?: string
  readonly flags?: readonly string[]
}

/** The verdict in an answer of a door; undefined when an envelope was not opened. */
export const verdictIn = ({ json }: HttpReply): DoorVerdict | undefined =>
  (member(json, 'isOpened') === undefined ? json : member(json, 'verdict')) as DoorVerdict | undefined

/** An offline challenge of the bank for one phone, with the codes that were accepted as answers. */
export interface ShownChallenge extends Omit<ShownOperation, 'registrationId' | 'isNamed'> {
  readonly challengeId: string
  readonly phone: SimulatedPhone
  readonly answers: Set<Code>
}

/** Work of a server. */
export interface Chore {
  readonly name: string
  readonly work: (running: Running) => Promise<unknown>
}

export interface Life {
  readonly site: Site
  readonly prepared: Prepared
  readonly facts: Facts
  /** Phones with an activation. */
  readonly phones: SimulatedPhone[]
  /** Phones whose activation has begun. */
  readonly newcomers: Newcomer[]
  readonly operations: KnownOperation[]
  /** Operations that the bank has shown to offline phones. */
  readonly shown: ShownOperation[]
  /** Offline challenges of the bank. */
  readonly challenges: ShownChallenge[]
  readonly tokens: KnownToken[]
  /** Calls of doors, the newest last. */
  readonly asks: DoorAsk[]
  /** The 4.0 sides of phones of 3.x whose upgrade has begun. */
  readonly upgrades: Upgrade[]
  /** The number of names given so far. */
  named: number
}

export interface Newcomer {
  readonly userId: string
  readonly activationCode: string
  /** The id of a registration that was made beside others. */
  readonly registrationId?: string
}

export interface KnownOperation {
  readonly id: string
  readonly data: string
  readonly userId: string
  /** The only activation that may decide it. */
  readonly only?: string
}

/** An operation whose QR code the bank has. */
export interface ShownOperation extends KnownOperation {
  readonly text: string
  readonly nonce: string
  /** The registration of the phone that the QR code is for. */
  readonly registrationId: string
  /** Whether the bank names the registration. */
  readonly isNamed: boolean
}

export interface KnownToken {
  readonly phone: SimulatedPhone
  readonly id: string
  /** The token in the form in which the phone keeps it. */
  readonly token: unknown
}

export interface Upgrade {
  readonly old: SimulatedPhone
  readonly phone: SimulatedPhone
}

export interface Action {
  readonly weight: number
  /** Whether it computes nothing in the thread pool, so that it may run beside others. */
  readonly isLight: boolean
  /** Makes the job or the chore; undefined when the action is impossible now. */
  readonly make: (life: Life) => Promise<Job | Chore | undefined> | Job | Chore | undefined
}

/** The phones of a user. Of the two sides of an upgrade, this is the one in `phones`. */
export const phonesOf = ({ phones }: Life, userId: string): readonly SimulatedPhone[] =>
  phones.filter((phone) => phone.userId === userId)

/** Whether a path that names the user can only be about this phone. */
export const isNamedByUser = (life: Life, { userId }: SimulatedPhone): boolean =>
  phonesOf(life, userId).length === 1 && !life.newcomers.some((newcomer) => newcomer.userId === userId)

export const somePhone = ({ site, phones }: Life): SimulatedPhone => site.chance.pick(phones)
export const nextName = (life: Life, kind: string): string => {
  life.named += 1
  return `${kind}-${life.named}`
}

/** The generation of the protocol that a phone speaks. */
export const generationOf = ({ version }: Pick<SimulatedPhone, 'version'>): number => (version === '4.0' ? 4 : 3)

/** Whether a block with an end may be over by the clock of some server. */
const mayHaveEnded = (until: number | null, now: number): boolean => until !== null && until <= now + SKEW_MAX_MS

/** Makes the job of a request with a code. `told`: the promise of its answer, other than the move of the counter. */
export function codeJob(life: Life, code: Code, told: () => Check | undefined = () => undefined, changes?: string): Job {
  const { phone, counter } = code
  return {
    name: `${phone.name} ${code.what} at ${counter}`,
    request: code.request,
    code,
    changes,
    told: () => acceptCode(life, code, told),
  }
}

/** Notes that a code was accepted, calls `told`, and returns the check of the promises. */
export function acceptCode(life: Life, code: Code, told: () => Check | undefined): Check | undefined {
  const { phone, counter } = code
  const id = phone.activationId()
  if (!code.isRight) return () => `a wrong code of ${phone.name} was accepted`
  code.accepted += 1
  if (code.accepted > 1) return () => `${phone.name}: the code at ${counter} was accepted twice`
  const side = sideOf(id, generationOf(phone))
  life.facts.counters.set(side, Math.max(life.facts.counters.get(side) ?? 0, counter + 1))
  const further = told()
  return (look) => {
    const was = look.before.activations.get(id)
    // An upgraded side has a counter of its own, which goes on from that of 3.x (v4 §10.4).
    if (was !== undefined && !was.isUpgraded && !code.isUpgrade && was.counter > counter)
      return `${phone.name}: the code at ${counter} was accepted when the counter was ${was.counter}`
    if (was?.state === 'REMOVED') return `the removed activation of ${phone.name} has verified a code`
    if (was !== undefined && was.generation !== generationOf(phone) && !code.isUpgrade)
      return `${phone.name} has verified a code, and its activation is of generation ${was.generation}`
    const isBlocked = was?.state === 'BLOCKED' && !mayHaveEnded(was.blockedUntil, life.site.now())
    if (isBlocked && look.isCertain && !look.changed.includes(id))
      return `the blocked activation of ${phone.name} has verified a code`
    return further?.(look)
  }
}

/** Whether a guess counts as a failed attempt: the server must have the keys to verify it, and its counter must be within the look-ahead. */
export function canCount(before: View, { phone, isBiometric, counter }: Code): boolean {
  const target = before.activations.get(phone.activationId())
  // The server cannot verify a code of 3.x for an upgraded activation, nor a biometric code without biometry.
  if (target?.generation !== generationOf(phone) || (isBiometric && !target.hasBiometry)) return false
  // An upgraded side has a counter of its own (v4 §10.4).
  const ahead = counter - target.counter
  return !target.isUpgraded && ahead >= 0 && ahead < LOOK_AHEAD
}

export function bankJob(
  life: Life,
  name: string,
  [method, path, json, more]: readonly [string, string, unknown?, Record<string, string>?],
  told: (reply: HttpReply) => Check | undefined,
  changes?: string,
): Job {
  return { name, request: bankRequest(life.prepared.admin, method, path, json, more), told, changes }
}

export const ended =
  (life: Life, id: string, status: string): (() => undefined) =>
  () => {
    life.facts.ended.set(id, status)
    return undefined
  }

/** Notes a phone's decision. It must be the only one, and by the phone for which the operation is, if it is for one. */
export const decided =
  (life: Life, { id, only }: KnownOperation, phone: SimulatedPhone, status: string): (() => Check | undefined) =>
  () => {
    const before = life.facts.ended.get(id)
    if (before !== undefined) return () => `operation ${id} was told to be ${before}, and then ${phone.name} made it ${status}`
    if (only === undefined || phone.activationId() === only) return ended(life, id, status)()
    return () => `operation ${id} is for ${only} alone, and ${phone.name} made it ${status}`
  }

/** The number of counter values that a server tries. */
export const LOOK_AHEAD = 20
/** The greatest error of a server's clock. */
export const SKEW_MAX_MS = 30_000
