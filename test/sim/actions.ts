// What phones, the bank, administrators and the servers themselves may do in a step, and what an answer of 200 then promises.
import { member } from '../../phone/http.ts'
import { runHousekeeping } from '../../src/domain/housekeeping.ts'
import { deliverDue } from '../../src/domain/webhook/delivery.ts'
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
  type Job,
  type KnownOperation,
  type Life,
  nextName,
  somePhone,
} from './jobs.ts'
import { activationCodeOf, createSimulatedPhone, FACTORS, MOSTLY_RIGHT, type SimulatedPhone } from './phones.ts'
import { TEMPLATE } from './prepared.ts'

const PHONE_VERSIONS = ['3.0', '3.1', '3.2', '3.3', '4.0'] as const

const changeState = (life: Life, change: 'BLOCK' | 'UNBLOCK'): Job => {
  const phone = somePhone(life)
  const id = phone.activationId()
  const to = change === 'BLOCK' ? 'BLOCKED' : 'ACTIVE'
  return bankJob(
    life,
    `bank: ${change} ${phone.userId}`,
    ['PUT', '/registration', { userId: phone.userId, change }],
    () => (look) => {
      const state = look.after.activations.get(id)?.state
      // Somebody else may have changed it again in the same step.
      const isAlone = look.isCertain && look.changed.length === 1
      return isAlone && state !== to && state !== 'REMOVED' ? `${change} of ${id} was answered, and it is ${state}` : undefined
    },
    id,
  )
}

const pickOperation = ({ site, operations }: Life): KnownOperation | undefined =>
  operations.length === 0 ? undefined : site.chance.pick(operations.slice(-4))

const phoneOf = ({ phones }: Life, userId: string): SimulatedPhone | undefined => phones.find((phone) => phone.userId === userId)

/** The phone of an operation, or sometimes that of somebody else. */
const approverOf = (life: Life, { userId }: KnownOperation): SimulatedPhone =>
  (life.site.chance.happens(0.9) && phoneOf(life, userId)) || somePhone(life)

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
      const only = life.site.chance.happens(0.3) ? phone.activationId() : undefined
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
      // A user who was bound anew has another activation, which it is then about.
      const isOnly = life.phones.filter(({ userId }) => userId === phone.userId).length === 1
      return bankJob(
        life,
        `bank: removes ${phone.userId}`,
        ['DELETE', `/registration?userId=${phone.userId}`],
        () => {
          if (isOnly) life.facts.removed.add(id)
          return undefined
        },
        id,
      )
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
      return bankJob(life, `bank: registers ${userId}`, ['POST', '/registration', { userId }], (reply) => {
        life.facts.registered.add(userId)
        life.newcomers.push({ userId, activationCode: activationCodeOf(reply) })
        return undefined
      })
    },
  },
  {
    weight: 3,
    isLight: false,
    make: async (life) => {
      const newcomer = life.newcomers.shift()
      if (newcomer === undefined) return undefined
      const { userId, activationCode } = newcomer
      const version = life.site.chance.pick(PHONE_VERSIONS)
      const phone = createSimulatedPhone(life.prepared, nextName(life, 'phone'), { userId, version }, life.site.chance)
      const request = await phone.prepareActivation(activationCode)
      let isBound = false
      return {
        name: `${phone.name} exchanges keys`,
        request,
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
      return bankJob(
        life,
        `bank: commits ${phone.userId}`,
        ['POST', '/registration/commit', { userId: phone.userId }],
        () => (look) => {
          const state = look.after.activations.get(id)?.state
          return state === 'PENDING_COMMIT' ? `the commit of ${id} was answered, and it is ${state}` : undefined
        },
        id,
      )
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
    make: () => ({ name: 'keeps house', work: ({ context }) => runHousekeeping(context) }),
  },
  {
    weight: 6,
    isLight: false,
    make: () => ({ name: 'seals the audit log', work: ({ seal }) => seal() }),
  },
]

/** A phone whose requests never left it. */
const skip = (phone: SimulatedPhone, steps: number): Chore => ({
  name: `${phone.name} loses ${steps} codes`,
  work: async () => phone.skip(steps),
})
