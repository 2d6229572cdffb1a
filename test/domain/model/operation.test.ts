// Random lives of operations against a model of the rules: approval, rejection, cancel, claim, failures and expiry (cloud §6;
// mobile-token §4).
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type HttpReply, member } from '../../../phone/http.ts'
import { random } from '../../../phone/v3/crypto.ts'
import { expectOk } from '../../helpers/world.ts'
import { MINUTE, readCounters, STATE } from '../../helpers/expectations.ts'
import { assertModel, MODEL_TIMEOUT_MS, type Command, command } from '../../helpers/model.ts'
import { type Holder, type OperationWorld, startOperationWorld, type TestOperation } from '../../helpers/operation-world.ts'

const FAILURES_MAX = 3
const ATTEMPTS_MAX = 5
const LOOK_AHEAD = 20
const LIFE = 5 * MINUTE

let world: OperationWorld
let template: string
beforeAll(async () => {
  world = await startOperationWorld({ worksInBackground: false, hasStoppedClock: true })
  template = await world.template({ maxFailureCount: FAILURES_MAX, expirationSeconds: LIFE / 1000 })
})
afterAll(() => world.close())

type Factors = 'possession' | 'possession_knowledge' | 'possession_biometry'

interface OperationModel {
  status: 'PENDING' | 'APPROVED' | 'REJECTED' | 'CANCELED' | 'EXPIRED' | 'FAILED'
  isClaimed: boolean
  failures: number
  readonly expiresAt: number
}

interface Model {
  now: number
  isBlocked: boolean
  /** Of the phone; at most of them it is blocked. */
  failedAttempts: number
  /** Codes that the phone has made since the server took one. */
  ahead: number
  readonly operations: OperationModel[]
}

interface Real {
  readonly holder: Holder
  readonly operations: TestOperation[]
}

const isOwnPending = ({ status, isClaimed }: OperationModel): boolean => status === 'PENDING' && isClaimed

function countFailure(operation: OperationModel): void {
  if (!isOwnPending(operation)) return
  operation.failures += 1
  if (operation.failures === FAILURES_MAX) operation.status = 'FAILED'
}

/** RIGHT: made with all keys; GUESS: with that of possession and a wrong other one; STRANGE: with no key of the phone. */
type Quality = 'RIGHT' | 'GUESS' | 'STRANGE'

/** What a code does to the phone. `hasTwoFactors`: of possession alone none resets the failures, and no wrong one is a guess. */
function takeCode(model: Model, quality: Quality, hasTwoFactors: boolean): 'ACCEPTED' | 'COUNTED' | 'REFUSED' {
  const isTried = !model.isBlocked && model.ahead < LOOK_AHEAD
  const isAccepted = quality === 'RIGHT' && isTried
  const isCounted = quality === 'GUESS' && isTried && hasTwoFactors
  model.ahead = isAccepted ? 0 : model.ahead + 1
  if (isAccepted && hasTwoFactors) model.failedAttempts = 0
  if (isCounted) model.failedAttempts += 1
  model.isBlocked ||= model.failedAttempts === ATTEMPTS_MAX
  if (isAccepted) return 'ACCEPTED'
  return isCounted ? 'COUNTED' : 'REFUSED'
}

/** A command after which bank and phone see what the model says. */
const step = (name: string, act: (model: Model, real: Real) => Promise<void>): Command<Model, Real> =>
  command(name, async (model, real) => {
    await act(model, real)
    const state = model.isBlocked ? STATE.BLOCKED : STATE.ACTIVE
    expect(await readCounters(real.holder.phone)).toMatchObject({ state, failedAttempts: model.failedAttempts })
    for (const [place, { status, failures, isClaimed }] of model.operations.entries()) {
      const id = real.operations[place]?.id ?? ''
      expect(member(expectOk(await world.bank.readOperation(id)).json, 'status')).toBe(status)
      const stored = await world.stored(id)
      expect([stored.failureCount, stored.userId]).toEqual([failures, isClaimed ? real.holder.userId : null])
    }
  })

/** The same for one of the operations there are. */
const operationStep = (
  name: string,
  place: number,
  act: (model: Model, operation: OperationModel, real: Holder, made: TestOperation) => Promise<void>,
) =>
  step(`${name}, operation ${place} of as many as there are`, async (model, { holder, operations }) => {
    const chosen = place % operations.length
    const [operation, made] = [model.operations[chosen], operations[chosen]]
    if (operation && made) await act(model, operation, holder, made)
  })

function expectDone(reply: HttpReply, isDone: boolean): void {
  expect(reply.status === 200, reply.text).toBe(isDone)
  expect(reply.status).toBeLessThan(500)
}

const create = (isClaimed: boolean) =>
  step(isClaimed ? 'create' : 'create for anybody', async (model, { holder, operations }) => {
    if (model.isBlocked || operations.length === OPERATIONS_MAX) return
    const made = await world.operation(holder.userId, { template })
    if (!isClaimed) await world.unclaim(made.id)
    operations.push(made)
    model.operations.push({ status: 'PENDING', isClaimed, failures: 0, expiresAt: model.now + LIFE })
  })

const createWhileBlocked = step('create while blocked', async (model, { holder: { userId } }) => {
  if (!model.isBlocked) return
  expectDone(await world.bank.createOperation({ userId, template, parameters: {} }), false)
})

const approve = (place: number, factors: Factors, quality: Quality, isOtherData = false) =>
  operationStep(
    `approve ${quality} with ${factors}${isOtherData ? ', other data' : ''}`,
    place,
    async (model, operation, real, made) => {
      const { phone } = real
      const { id, data } = made
      const wrong = { knowledge: random(16), biometry: random(16), ...(quality === 'STRANGE' && { possession: random(16) }) }
      const named = { id, data: isOtherData ? `${data}0` : data }
      const hasTwoFactors = factors !== 'possession'
      // The keys of a guess are right where possession alone is asked for.
      const taken = takeCode(model, quality === 'GUESS' && !hasTwoFactors ? 'RIGHT' : quality, hasTwoFactors)
      const isDone = taken === 'ACCEPTED' && isOwnPending(operation) && hasTwoFactors && !isOtherData
      // A code that is neither right nor a guess is no attempt at the operation.
      if (!isDone && taken !== 'REFUSED') countFailure(operation)
      const wrongKeys = quality === 'RIGHT' ? {} : { wrongKeys: wrong }
      expectDone(await phone.send(phone.prepareAuthorize(named, { factors, ...wrongKeys })), isDone)
      if (isDone) operation.status = 'APPROVED'
    },
  )

/** A rejection takes possession alone: a code of other factors is not looked at. */
const reject = (place: number, factors: Factors, isRight: boolean) =>
  operationStep(`reject with ${factors}, ${isRight ? 'right' : 'wrong'}`, place, async (model, operation, { phone }, { id }) => {
    const wrongKeys = isRight ? {} : { wrongKeys: { possession: random(16) } }
    const quality = isRight && factors === 'possession' ? 'RIGHT' : 'STRANGE'
    const isDone = takeCode(model, quality, false) === 'ACCEPTED' && isOwnPending(operation)
    expectDone(await phone.send(phone.prepareReject(id, { factors, ...wrongKeys })), isDone)
    if (isDone) operation.status = 'REJECTED'
  })

const claim = (place: number) =>
  operationStep('claim', place, async (model, operation, { phone, token }, { id }) => {
    const isDone = !model.isBlocked && operation.status === 'PENDING'
    expectDone(await phone.send(await phone.prepareTokenCall('claim', token, { id })), isDone)
    if (isDone) operation.isClaimed = true
  })

const cancel = (place: number) =>
  operationStep('cancel', place, async (_model, operation, _holder, { id }) => {
    const isDone = operation.status === 'PENDING'
    expectDone(await world.bank.cancelOperation(id), isDone)
    if (isDone) operation.status = 'CANCELED'
  })

const unblock = step('unblock', async (model, { holder: { userId } }) => {
  expectDone(await world.bank.change(userId, 'UNBLOCK'), model.isBlocked)
  if (model.isBlocked) Object.assign(model, { isBlocked: false, failedAttempts: 0 })
})

const timePasses = (milliseconds: number) =>
  step(`${milliseconds / MINUTE} minutes pass`, async (model) => {
    await world.advance(milliseconds)
    model.now += milliseconds
    for (const operation of model.operations)
      if (operation.status === 'PENDING' && operation.expiresAt <= model.now) operation.status = 'EXPIRED'
  })

const housekeeping = step('housekeeping', () => world.housekeeping())

const OPERATIONS_MAX = 3
const place = fc.nat({ max: OPERATIONS_MAX - 1 })
const factors = fc.constantFrom<Factors>('possession', 'possession_knowledge', 'possession_biometry')
const quality = fc.constantFrom<Quality>('RIGHT', 'GUESS', 'STRANGE')
const COMMANDS = [
  fc.boolean().map(create),
  fc.tuple(place, factors, quality, fc.boolean()).map((of) => approve(...of)),
  place.map((of) => approve(of, 'possession_knowledge', 'RIGHT')),
  place.map((of) => approve(of, 'possession_knowledge', 'GUESS')),
  fc.tuple(place, factors, fc.boolean()).map((of) => reject(...of)),
  place.map(claim),
  place.map(cancel),
  fc.constantFrom(unblock, createWhileBlocked),
  fc.constantFrom(unblock, housekeeping),
  fc.constantFrom(1, 2, 4).map((minutes) => timePasses(minutes * MINUTE)),
]

test(
  'an operation does what the model says, whatever comes in whatever order',
  async () => {
    const begin = async () => {
      const model: Model = { now: 0, isBlocked: false, failedAttempts: 0, ahead: 0, operations: [] }
      const real: Real = { holder: await world.holder('3.3'), operations: [] }
      await create(true).run(model, real)
      return { model, real }
    }
    await assertModel(fc.constant(undefined), COMMANDS, begin, 40)
  },
  MODEL_TIMEOUT_MS,
)
