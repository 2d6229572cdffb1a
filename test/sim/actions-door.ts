// Lists what a bank does with doors: it has pawl verify codes and tokens that phones sent to it, and repeats calls without an answer (cloud §12).
import { isDeepStrictEqual } from 'node:util'
import type { HttpReply } from '../../phone/http.ts'
import { headerOf, PHONE_ADDRESS, toDoor } from '../helpers/door.ts'
import {
  acceptCode,
  type Action,
  bankJob,
  canCount,
  type Check,
  type DoorAsk,
  type DoorVerdict,
  type Job,
  type KnownToken,
  type Life,
  nextName,
  SKEW_MAX_MS,
  somePhone,
  verdictIn,
} from './jobs.ts'
import { bankRequest, type Code, FACTORS, MOSTLY_RIGHT, type SimulatedPhone } from './phones.ts'
import { VERDICT_KEPT_MS } from './server.ts'

const client = { address: PHONE_ADDRESS }
const ANY_FACTORS = FACTORS.map((factors) => factors.toUpperCase())
/** The greatest difference between the clocks of two servers. */
const APART_MS = 2 * SKEW_MAX_MS

/** Whether the first answer is known, and every server must still have it. */
export const isKept = ({ key, sentAt = 0, first }: DoorAsk, now: number): boolean =>
  key !== undefined && first !== undefined && now < sentAt + VERDICT_KEPT_MS - APART_MS

/** Whether some server may still have the first answer. */
const mayBeKept = ({ first }: DoorAsk, now: number): boolean => first !== undefined && now < first.at + VERDICT_KEPT_MS + APART_MS

interface Asked extends Pick<DoorAsk, 'phone' | 'code' | 'accept' | 'renew'> {
  readonly path: string
  readonly body: object
  readonly key: string | undefined
  readonly isPooled?: boolean
}

export const askDoor = (life: Life, { path, body, key, isPooled = false, ...asked }: Asked): DoorAsk => ({
  ...asked,
  key,
  isPooled,
  name: `${asked.phone.name} ${asked.code ? `${asked.code.what} at ${asked.code.counter}` : 'shows a token'}: ${path} ${key ?? 'without a key'}`,
  request: bankRequest(life.prepared.admin, 'POST', path, body, key === undefined ? {} : { 'Idempotency-Key': key }),
  sentAt: undefined,
  first: undefined,
})

/** An Idempotency-Key, which a bank sends in most cases. */
export const someKey = (life: Life): string | undefined =>
  life.site.chance.happens(0.8) ? `${nextName(life, 'key')}-of-the-bank` : undefined

const askAboutCode = (life: Life, code: Code, key: string | undefined): DoorAsk =>
  askDoor(life, {
    phone: code.phone,
    code,
    path: '/verification/code',
    body: toDoor(code.request, { factors: ANY_FACTORS, client }),
    key,
    accept: acceptAtDoor(code),
    renew: (other) => askAboutCode(life, code, other),
  })

const askToOpen = (life: Life, code: Code, body: object, key: string | undefined): DoorAsk =>
  askDoor(life, {
    phone: code.phone,
    code,
    path: '/encryption/open',
    body,
    key,
    isPooled: true,
    accept: acceptAtDoor(code),
    // The bank knows the plaintext by now, so it may have the same code verified at another door.
    renew: (other) => askAboutCode(life, code, other),
  })

/** Counts an accepted code. Its check is of this step only when the bank has not asked about the code in an earlier one. */
export const acceptAtDoor =
  (code: Code): DoorAsk['accept'] =>
  (life, isFirst) => {
    const check = acceptCode(life, code, () => undefined)
    return isFirst || !code.isRight || code.accepted > 1 ? check : undefined
  }

/** A token with one of its headers, and how often the header was accepted. */
interface ShownToken extends KnownToken {
  readonly header: string
  accepted: number
}

const askAboutToken = (life: Life, shown: ShownToken, key: string | undefined): DoorAsk =>
  askDoor(life, {
    phone: shown.phone,
    code: undefined,
    path: '/verification/token',
    body: { token: shown.header, factors: ANY_FACTORS, client },
    key,
    accept: (_life, isFirst) => {
      shown.accepted += 1
      if (shown.accepted > 1) return () => `a header of token ${shown.id} was good twice`
      return isFirst ? checkToken(shown) : undefined
    },
    renew: (other) => askAboutToken(life, shown, other),
  })

const checkToken =
  ({ id, phone }: KnownToken): Check =>
  ({ before }) => {
    if (!before.tokens.has(id)) return `the removed token ${id} was good`
    const state = before.activations.get(phone.activationId())?.state
    return state === 'REMOVED' ? `a token of the removed activation of ${phone.name} was good` : undefined
  }

/** Makes the job of a call, and stores the call so that it can be repeated. */
export function doorJob(life: Life, ask: DoorAsk): Job {
  if (!life.asks.includes(ask)) life.asks.push(ask)
  const { name, request, code } = ask
  return { name, request, ask, ...(code && { code }), told: (reply) => toldAtDoor(life, ask, reply) }
}

function toldAtDoor(life: Life, ask: DoorAsk, reply: HttpReply): Check | undefined {
  const verdict = verdictIn(reply)
  // The answer is about an envelope that was not opened.
  if (verdict === undefined) return undefined
  const now = life.site.now()
  const { key, first } = ask
  if (key !== undefined && first !== undefined) {
    if (isDeepStrictEqual(verdict, first.verdict) && mayBeKept(ask, now)) return undefined
    if (isKept(ask, now))
      return () => `${ask.name} was answered ${JSON.stringify(first.verdict)}, and then ${JSON.stringify(verdict)}`
  }
  const isFirst = key === undefined || ask.sentAt === now
  if (!verdict.isValid && verdict.reason !== 'FLAGS') return keepCounted(ask, verdict, now)
  ask.first = { verdict, at: now }
  const accepted = ask.accept(life, isFirst)
  return (look) => accepted?.(look) ?? (isFirst ? checkFlags(ask.phone, verdict)(look) : undefined)
}

/** Notes a refusal as the first answer when it surely counted as a failed attempt, because pawl keeps such an answer under its key. */
const keepCounted =
  (ask: DoorAsk, verdict: DoorVerdict, now: number): Check =>
  ({ before, after, isCertain, changed }) => {
    const { code, phone } = ask
    const id = phone.activationId()
    const [was, is] = [before.activations.get(id), after.activations.get(id)]
    if (code === undefined || !code.isGuess || verdict.reason !== 'CODE_WRONG' || !isCertain || changed.includes(id))
      return undefined
    if (was?.state !== 'ACTIVE' || is?.state !== 'ACTIVE' || is.counter !== was.counter || !canCount(before, code))
      return undefined
    ask.first ??= { verdict, at: now }
    return undefined
  }

/** A verdict names the flags that the activation had when its code was accepted. */
const checkFlags =
  (phone: SimulatedPhone, { flags = [] }: DoorVerdict): Check =>
  ({ before, after, isCertain, changed }) => {
    const id = phone.activationId()
    const isAlone = changed.filter((one) => one === flagsOf(id)).length <= 1
    const told = flags.join(',')
    const stored = [before, after].map(({ activations }) => activations.get(id)?.flags)
    return isCertain && isAlone && !stored.includes(told)
      ? `a verdict on ${phone.name} told the flags "${told}", and they were "${stored.join('", then "')}"`
      : undefined
  }

/** The name of a change of flags in the list of changes of a step. */
const flagsOf = (activationId: string): string => `flags of ${activationId}`

/** One of the latest calls. */
const someAsk = ({ site, asks }: Life, isPooled: boolean): DoorAsk | undefined => {
  const among = asks.slice(-8).filter((ask) => ask.isPooled === isPooled)
  return among.length === 0 ? undefined : site.chance.pick(among)
}

const again =
  (isPooled: boolean): Action['make'] =>
  (life) => {
    const ask = someAsk(life, isPooled)
    return ask && doorJob(life, ask)
  }

export const DOOR_ACTIONS: readonly Action[] = [
  {
    weight: 10,
    isLight: true,
    make: (life) => {
      const { chance } = life.site
      const code = somePhone(life).signForBank(chance.pick(FACTORS), chance.pick(MOSTLY_RIGHT))
      return doorJob(life, askAboutCode(life, code, someKey(life)))
    },
  },
  {
    weight: 6,
    isLight: false,
    make: async (life) => {
      const { code, body } = await somePhone(life).sealForBank(life.site.chance.pick(MOSTLY_RIGHT))
      return doorJob(life, askToOpen(life, code, body, someKey(life)))
    },
  },
  {
    weight: 8,
    isLight: false,
    make: async (life) => {
      if (life.tokens.length === 0) return undefined
      const known = life.site.chance.pick(life.tokens)
      const header = headerOf(await known.phone.useToken(known.token), 'Token')
      return doorJob(life, askAboutToken(life, { ...known, header, accepted: 0 }, someKey(life)))
    },
  },
  { weight: 8, isLight: true, make: again(false) },
  { weight: 3, isLight: false, make: again(true) },
  {
    weight: 4,
    isLight: true,
    make: (life) => {
      const ask = someAsk(life, false) ?? someAsk(life, true)
      return ask && doorJob(life, ask.renew(someKey(life)))
    },
  },
  {
    weight: 3,
    isLight: true,
    make: (life) => {
      const id = somePhone(life).activationId()
      const flags = life.site.chance.pick([[], ['VIP'], ['VIP', 'GOLD'], ['VERIFICATION_PENDING']])
      const request = ['PUT', `/admin/activations/${id}/flags`, { flags }] as const
      const job = bankJob(life, `bank: flags ${flags.join(' and ') || 'none'} of ${id}`, request, () => undefined, flagsOf(id))
      return { ...job, about: id }
    },
  },
]
