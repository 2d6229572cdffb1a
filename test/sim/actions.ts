// Lists the actions of phones, the bank, administrators and servers in a step, each with the promises of an answer 200.
import { member } from '../../phone/http.ts'
import { runHousekeeping } from '../../src/domain/housekeeping.ts'
import { deliverDue } from '../helpers/deliver.ts'
import { OFFLINE_ACTIONS } from './actions-offline.ts'
import { DOOR_ACTIONS } from './actions-door.ts'
import { TOKEN_ACTIONS } from './actions-token.ts'
import { UPGRADE_ACTIONS } from './actions-upgrade.ts'
import {
  type Action,
  bankJob,
  type Chore,
  codeJob,
  decided,
  ended,
  isNamedByUser,
  type Job,
  type KnownOperation,
  type Life,
  nextName,
  phonesOf,
  somePhone,
} from './jobs.ts'
import { activationCodeOf, createSimulatedPhone, FACTORS, MOSTLY_RIGHT, type SimulatedPhone } from './phones.ts'
import { TEMPLATE } from './prepared.ts'

/** The chore that may change any activation. */
export const HOUSEKEEPING = 'keeps house'
const PHONE_VERSIONS = ['3.0', '3.1', '3.2', '3.3', '4.0'] as const

/** The bank names the registration of a phone by its user, if the user has no other one, or by its id. */
function nameOf(life: Life, phone: SimulatedPhone): { readonly path: string; readonly userId?: string; readonly about?: string } {
  const { userId } = phone
  if (isNamedByUser(life, phone) && life.site.chance.happens(0.5)) return { path: '/registration', userId, about: userId }
  return { path: `/v2/registrations/${phone.activationId()}` }
}

const changeState = (life: Life, change: 'BLOCK' | 'UNBLOCK'): Job => {
  const phone = somePhone(life)
  const id = phone.activationId()
  const to = change === 'BLOCK' ? 'BLOCKED' : 'ACTIVE'
  const { path, userId, about } = nameOf(life, phone)
  const job = bankJob(
    life,
    `bank: ${change} ${userId ?? id}`,
    ['PUT', path, { ...(userId !== undefined && { userId }), change }],
    () => (look) => {
      const state = look.after.activations.get(id)?.state
      // Another request of the same step may have changed the state again.
      const isAlone = look.isCertain && look.changed.length === 1
      return isAlone && state !== to && state !== 'REMOVED' ? `${change} of ${id} was answered, and it is ${state}` : undefined
    },
    id,
  )
  return { ...job, about }
}

const pickOperation = ({ site, operations }: Life): KnownOperation | undefined =>
  operations.length === 0 ? undefined : site.chance.pick(operations.slice(-4))

/** A phone of the operation's user, or sometimes of another user. */
const approverOf = (life: Life, { userId }: KnownOperation): SimulatedPhone => {
  const phones = phonesOf(life, userId)
  return phones.length > 0 && life.site.chance.happens(0.9) ? life.site.chance.pick(phones) : somePhone(life)
}

export const ACTIONS: readonly Action[] = [
  {
    weight: 14,
    isLight: true,
    make: (life) => codeJob(life, somePhone(life).validate(life.site.chance.pick(FACTORS), 'RIGHT')),
  },
  {
    weight: 8,
    isLight: true,
    make: (life) =>
      codeJob(life, somePhone(life).validate(life.site.chance.pick(FACTORS), life.site.chance.pick(['GUESS', 'STRANGE']))),
  },
  {
    weight: 8,
    isLight: true,
    make: (life) => {
      const { codes } = somePhone(life)
      const { chance } = life.site
      return codes.length === 0 ? undefined : codeJob(life, chance.pick(chance.happens(0.5) ? codes.slice(-2) : codes))
    },
  },
  {
    weight: 8,
    isLight: true,
    make: (life) => {
      const phone = somePhone(life)
      const { userId } = phone
      const only = life.site.chance.happens(0.5) ? phone.activationId() : undefined
      const body = { userId, template: TEMPLATE, parameters: {}, ...(only !== undefined && { registrationId: only }) }
      const path = only === undefined ? '/operations' : '/v2/operations'
      const key = nextName(life, 'key')
      let id: string | undefined
      return bankJob(
        life,
        `bank: an operation for ${userId}${only === undefined ? '' : ` at ${only}`}`,
        ['POST', path, body, { 'Idempotency-Key': key }],
        (reply) => {
          const created = String(member(reply.json, 'operationId'))
          if (id !== undefined && id !== created) return () => 'one request of the bank made two operations'
          if (id === undefined) life.operations.push({ id: created, data: 'A2', userId, ...(only !== undefined && { only }) })
          id = created
          life.facts.operations.add(created)
          return undefined
        },
      )
    },
  },
  {
    weight: 9,
    isLight: true,
    make: (life) => {
      const operation = pickOperation(life)
      if (operation === undefined) return undefined
      const approver = approverOf(life, operation)
      const code = approver.approve(operation, life.site.chance.pick(MOSTLY_RIGHT))
      return codeJob(life, code, decided(life, operation, approver, 'APPROVED'))
    },
  },
  {
    weight: 4,
    isLight: true,
    make: (life) => {
      const operation = pickOperation(life)
      if (operation === undefined) return undefined
      const approver = approverOf(life, operation)
      return codeJob(life, approver.reject(operation.id), decided(life, operation, approver, 'REJECTED'))
    },
  },
  {
    weight: 4,
    isLight: true,
    make: (life) => {
      const operation = pickOperation(life)
      if (operation === undefined) return undefined
      const path = `/operations?operationId=${operation.id}`
      return bankJob(life, `bank: cancels ${operation.id}`, ['DELETE', path], ended(life, operation.id, 'CANCELED'))
    },
  },
  { weight: 3, isLight: true, make: (life) => changeState(life, 'BLOCK') },
  { weight: 6, isLight: true, make: (life) => changeState(life, 'UNBLOCK') },
  {
    weight: 1,
    isLight: true,
    make: (life) => {
      const phone = somePhone(life)
      const id = phone.activationId()
      const { path, userId, about } = nameOf(life, phone)
      const named = userId === undefined ? path : `${path}?userId=${userId}`
      const told = (): undefined => void life.facts.removed.add(id)
      return { ...bankJob(life, `bank: removes ${userId ?? id}`, ['DELETE', named], told, id), about }
    },
  },
  {
    weight: 1,
    isLight: true,
    make: (life) => {
      const phone = somePhone(life)
      const id = phone.activationId()
      const told = (): undefined => void life.facts.removed.add(id)
      return codeJob(life, phone.remove(), told, id)
    },
  },
  { weight: 2, isLight: true, make: (life) => skip(somePhone(life), 1 + life.site.chance.below(6)) },
  ...TOKEN_ACTIONS,
  ...DOOR_ACTIONS,
  ...OFFLINE_ACTIONS,
  ...UPGRADE_ACTIONS,
  {
    weight: 3,
    isLight: true,
    make: (life) => {
      const userId = nextName(life, 'user')
      return bankJob(life, `bank: registers ${userId}`, ['POST', '/registration', { userId }], ({ json }) => {
        life.facts.registered.add(userId)
        life.newcomers.push({ userId, activationCode: activationCodeOf(json) })
        return undefined
      })
    },
  },
  {
    weight: 3,
    isLight: true,
    make: (life) => {
      const { userId } = somePhone(life)
      return bankJob(
        life,
        `bank: registers another phone of ${userId}`,
        ['POST', '/v2/registrations', { userId }],
        ({ json }) => {
          const registrationId = String(member(json, 'registrationId'))
          life.newcomers.push({ userId, activationCode: activationCodeOf(json), registrationId })
          return ({ after }) =>
            after.activations.has(registrationId) ? undefined : `registration ${registrationId} was answered, and is not there`
        },
      )
    },
  },
  {
    weight: 3,
    isLight: false,
    make: async (life) => {
      const newcomer = life.newcomers.shift()
      if (newcomer === undefined) return undefined
      const { userId, activationCode, registrationId } = newcomer
      const version = life.site.chance.pick(PHONE_VERSIONS)
      const phone = createSimulatedPhone(life.prepared, nextName(life, 'phone'), { userId, version }, life.site.chance)
      const request = await phone.prepareActivation(activationCode)
      let isBound = false
      return {
        name: `${phone.name} exchanges keys`,
        request,
        about: registrationId ?? userId,
        told: (reply) => {
          if (isBound) return () => `an activation code of ${userId} was good twice`
          isBound = true
          request.open(reply)
          life.phones.push(phone)
          return ({ after }) => {
            const state = after.activations.get(phone.activationId())?.state
            return state === undefined ? `the activation of ${phone.name} was answered, and is not there` : undefined
          }
        },
      }
    },
  },
  {
    weight: 4,
    isLight: true,
    make: (life) => {
      const phone = life.phones.slice(life.prepared.phones.length).at(-1)
      if (phone === undefined) return undefined
      const id = phone.activationId()
      const { path, userId, about } = nameOf(life, phone)
      const job = bankJob(
        life,
        `bank: commits ${userId ?? id}`,
        ['POST', `${path}/commit`, userId === undefined ? {} : { userId }],
        () => (look) => {
          const state = look.after.activations.get(id)?.state
          return state === 'PENDING_COMMIT' ? `the commit of ${id} was answered, and it is ${state}` : undefined
        },
        id,
      )
      return { ...job, about }
    },
  },
  {
    weight: 3,
    isLight: true,
    make: (life) => {
      const phone = life.phones.findLast(({ confirm }) => confirm !== undefined)
      const code = phone?.confirm?.()
      return code && codeJob(life, code)
    },
  },
  {
    weight: 2,
    isLight: false,
    make: (life) => {
      const username = nextName(life, 'clerk')
      const body = { username, role: 'read-only' }
      return bankJob(life, `administrator: creates ${username}`, ['POST', '/admin/users', body], () => {
        life.facts.credentials.add(username)
        return undefined
      })
    },
  },
  {
    weight: 6,
    isLight: false,
    make: () => ({ name: 'delivers webhooks', work: ({ context }) => deliverDue(context) }),
  },
  {
    weight: 3,
    isLight: false,
    make: () => ({ name: HOUSEKEEPING, work: ({ context }) => runHousekeeping(context) }),
  },
  {
    weight: 6,
    isLight: false,
    make: () => ({ name: 'seals the audit log', work: ({ seal }) => seal() }),
  },
]

/** Moves a phone's counter ahead, as requests do that never left the phone. */
const skip = (phone: SimulatedPhone, steps: number): Chore => ({
  name: `${phone.name} loses ${steps} codes`,
  work: async () => phone.skip(steps),
})
