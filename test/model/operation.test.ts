// Random lives of operations against a model of the rules: approval, rejection, cancel, claim, failures and expiry (cloud §6;
// mobile-token §4).
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type HttpReply, member } from '../../phone/http.ts'
import { random } from '../../phone/crypto.ts'
import { expectOk } from '../helpers/world.ts'
import { MINUTE, readCounters, STATE } from '../helpers/expectations.ts'
import { assertModel, type Command, command } from '../helpers/model.ts'
import { type Holder, type OperationWorld, startOperationWorld, type TestOperation } from '../helpers/operation-world.ts'

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

/** What a code does to the phone; whether it is accepted. */
function takeCode(model: Model, isRight: boolean, isCounted: boolean): boolean {
  const isAccepted = isRight && !model.isBlocked && model.ahead < LOOK_AHEAD
  model.ahead = isAccepted ? 0 : model.ahead + 1
  if (isCounted && !model.isBlocked) model.failedAttempts = isAccepted ? 0 : model.failedAttempts + 1
  model.isBlocked ||= model.failedAttempts === ATTEMPTS_MAX
  return isAccepted
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

const approve = (place: number, factors: Factors, fault: 'none' | 'code' | 'data') =>
  operationStep(`approve with ${factors}, fault: ${fault}`, place, async (model, operation, { phone }, { id, data }) => {
    const wrongKeys = fault === 'code' ? { wrongKeys: { possession: random(16), knowledge: random(16) } } : {}
    const named = { id, data: fault === 'data' ? `${data}0` : data }
    const isGuess = factors !== 'possession'
    const { isBlocked } = model
    const isAccepted = takeCode(model, fault !== 'code', isGuess)
    const isDone = isAccepted && isOwnPending(operation) && isGuess && fault === 'none'
    // A code that cannot be right, of a phone that is blocked, is no attempt at the operation. Nor is a wrong one of possession alone.
    if (!isDone && !isBlocked && (isAccepted || isGuess)) countFailure(operation)
    expectDone(await phone.send(phone.prepareAuthorize(named, { factors, ...wrongKeys })), isDone)
    if (isDone) operation.status = 'APPROVED'
  })

/** A rejection takes possession alone: a code of other factors is not looked at. */
const reject = (place: number, factors: Factors, isRight: boolean) =>
  operationStep(`reject with ${factors}, ${isRight ? 'right' : 'wrong'}`, place, async (model, operation, { phone }, { id }) => {
    const wrongKeys = isRight ? {} : { wrongKeys: { possession: random(16) } }
    const isDone = takeCode(model, isRight && factors === 'possession', false) && isOwnPending(operation)
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
const fault = fc.constantFrom('none', 'code', 'data' as const)
const COMMANDS = [
  fc.boolean().map(create),
  fc.tuple(place, factors, fault).map((of) => approve(...of)),
  place.map((of) => approve(of, 'possession_knowledge', 'none')),
  place.map((of) => approve(of, 'possession_knowledge', 'code')),
  fc.tuple(place, factors, fc.boolean()).map((of) => reject(...of)),
  place.map(claim),
  place.map(cancel),
  fc.constantFrom(unblock, createWhileBlocked),
  fc.constantFrom(unblock, housekeeping),
  fc.constantFrom(1, 2, 4).map((minutes) => timePasses(minutes * MINUTE)),
]

test('an operation does what the model says, whatever comes in whatever order', async () => {
  const begin = async () => {
    const model: Model = { now: 0, isBlocked: false, failedAttempts: 0, ahead: 0, operations: [] }
    const real: Real = { holder: await world.holder('3.3'), operations: [] }
    await create(true).run(model, real)
    return { model, real }
  }
  await assertModel(fc.constant(undefined), COMMANDS, begin, 40)
})
