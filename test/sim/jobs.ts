// What an action of a simulation is made of: requests, what they promise, and what the simulation knows of phones and operations.
import { type HttpReply, type HttpRequest, member } from '../../phone/http.ts'
import { type Facts, sideOf } from './facts.ts'
import { bankRequest, type Code, type SimulatedPhone } from './phones.ts'
import type { Prepared } from './prepared.ts'
import type { Running, Site } from './site.ts'
import type { View } from './view.ts'

/** What a step looks like from both ends. */
export interface Look {
  readonly before: View
  readonly after: View
  /** No statement of an earlier step came in this one. */
  readonly isCertain: boolean
  /** The activations whose state was to be changed in this step, once for each request for it. */
  readonly changed: readonly string[]
}

/** What an answer promises about its step; a text when that is not so. */
export type Check = (look: Look) => string | undefined

export interface Job {
  readonly name: string
  readonly request: HttpRequest
  readonly code?: Code
  /** What a bank asks with it, of a door. */
  readonly ask?: DoorAsk
  /** The activation whose state it changes beside its code. */
  readonly changes?: string | undefined
  /** The activation or the user that it is about, where neither its code nor what it changes says so. */
  readonly about?: string | undefined
  /** Is told of an answer of 200. */
  readonly told: (reply: HttpReply) => Check | undefined
}

/** What a bank asks of a door, and asks again under the same key when no answer comes. */
export interface DoorAsk {
  readonly phone: SimulatedPhone
  readonly name: string
  readonly request: HttpRequest
  /** Undefined where the bank made none. */
  readonly key: string | undefined
  readonly code: Code | undefined
  /** Whether the server computes in the thread pool. */
  readonly isPooled: boolean
  /** Counts an acceptance, over all doors. `isFirst`: it was not asked in an earlier step. */
  readonly accept: (life: Life, isFirst: boolean) => Check | undefined
  /** The same code or token asked about under another key, or without. */
  readonly renew: (key: string | undefined) => DoorAsk
  /** When it was sent first; undefined before. */
  sentAt: number | undefined
  /** The first answer that is kept under the key, when it is known. */
  first: { readonly verdict: DoorVerdict; readonly at: number } | undefined
}

export interface DoorVerdict {
  readonly isValid: boolean
  readonly reason?: string
  readonly flags?: readonly string[]
}

/** The verdict in an answer of a door; undefined of an envelope that was not opened. */
export const verdictIn = ({ json }: HttpReply): DoorVerdict | undefined =>
  (member(json, 'isOpened') === undefined ? json : member(json, 'verdict')) as DoorVerdict | undefined

/** A text of the bank's own for one phone, as a QR code has it, and who has answered it. */
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
  /** With an activation. */
  readonly phones: SimulatedPhone[]
  /** On their way to one. */
  readonly newcomers: Newcomer[]
  readonly operations: KnownOperation[]
  /** Shown to phones that are offline. */
  readonly shown: ShownOperation[]
  /** Texts of the bank's own. */
  readonly challenges: ShownChallenge[]
  readonly tokens: KnownToken[]
  /** Of doors, the newest last. */
  readonly asks: DoorAsk[]
  /** Sides of 4.0 of phones of 3.x, for which an upgrade has begun. */
  readonly upgrades: Upgrade[]
  /** Counts what gets a name. */
  named: number
}

export interface Newcomer {
  readonly userId: string
  readonly activationCode: string
  /** Of a registration that was made beside others. */
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
  /** Of the phone that it is for. */
  readonly registrationId: string
  /** Whether the bank names it. */
  readonly isNamed: boolean
}

export interface KnownToken {
  readonly phone: SimulatedPhone
  readonly id: string
  /** As the phone keeps it. */
  readonly token: unknown
}

export interface Upgrade {
  readonly old: SimulatedPhone
  readonly phone: SimulatedPhone
}

export interface Action {
  readonly weight: number
  /** Computes nothing in the thread pool, so that it may run beside others. */
  readonly isLight: boolean
  /** Undefined when there is nothing to do it with. */
  readonly make: (life: Life) => Promise<Job | Chore | undefined> | Job | Chore | undefined
}

/** The phones of a user: of two sides of an upgrade the one that goes on. */
export const phonesOf = ({ phones }: Life, userId: string): readonly SimulatedPhone[] =>
  phones.filter((phone) => phone.userId === userId)

/** Whether a path that names a user is about this phone, if it is about any. */
export const isNamedByUser = (life: Life, { userId }: SimulatedPhone): boolean =>
  phonesOf(life, userId).length === 1 && !life.newcomers.some((newcomer) => newcomer.userId === userId)

export const somePhone = ({ site, phones }: Life): SimulatedPhone => site.chance.pick(phones)
export const nextName = (life: Life, kind: string): string => {
  life.named += 1
  return `${kind}-${life.named}`
}

/** The generation of the protocol that a phone speaks. */
export const generationOf = ({ version }: Pick<SimulatedPhone, 'version'>): number => (version === '4.0' ? 4 : 3)

/** Whether a block that ends by itself may have ended, by the clock of some server. */
const mayHaveEnded = (until: number | null, now: number): boolean => until !== null && until <= now + SKEW_MAX_MS

/** Any request with a code. `told`: what it promises beside the move of the counter. */
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

/** A code was accepted: what that promises, and what `told` does beside. */
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
    // An upgraded side has a number of its own, which codes of 3.x may have moved on before it began (v4 §10.4).
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

/** Whether a guess counts in a step that finds `before`: what has no key to be wrong with does not, nor does what comes late or far too early. */
export function canCount(before: View, { phone, isBiometric, counter }: Code): boolean {
  const target = before.activations.get(phone.activationId())
  // A code of 3.x for an activation that is of 4.0 by now, a biometric one without biometry.
  if (target?.generation !== generationOf(phone) || (isBiometric && !target.hasBiometry)) return false
  // An upgraded side has numbers of its own (v4 §10.4).
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

/** The same of a phone's decision: it is the only one, and not any phone's where the operation is for one. */
export const decided =
  (life: Life, { id, only }: KnownOperation, phone: SimulatedPhone, status: string): (() => Check | undefined) =>
  () => {
    const before = life.facts.ended.get(id)
    if (before !== undefined) return () => `operation ${id} was told to be ${before}, and then ${phone.name} made it ${status}`
    if (only === undefined || phone.activationId() === only) return ended(life, id, status)()
    return () => `operation ${id} is for ${only} alone, and ${phone.name} made it ${status}`
  }

/** How many counter values a server tries. */
export const LOOK_AHEAD = 20
/** How far the clock of a server is off at most. */
export const SKEW_MAX_MS = 30_000
