// Random lives of an activation against a model of the rules: its bank and its phone see the same (v3 §8, §9, §10.5; cloud §3).
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { HttpReply } from '../../../phone/http.ts'
import { random } from '../../../phone/v3/crypto.ts'
import { PHONE_VERSIONS } from '../../helpers/phone-versions.ts'
import type { Prepared } from '../../../phone/v3/state.ts'
import { startTestServer, type TestServer } from '../../helpers/app.ts'
import { readQrCode } from '../../helpers/bank.ts'
import { MINUTE, STATE } from '../../helpers/expectations.ts'
import { assertModel, MODEL_TIMEOUT_MS, type Command, command } from '../../helpers/model.ts'
import { openWorldOn, registrationOf, type World } from '../../helpers/world.ts'
import { openPhonesV4, type PhonesV4 } from '../../helpers/world-v4.ts'

const ATTEMPTS_MAX = 5
const LOOK_AHEAD = 20
const VALIDITY = 5 * MINUTE
const FIRST_BLOCK = 2 * MINUTE

let server: TestServer
let world: World
let phonesV4: PhonesV4
beforeAll(async () => {
  server = await startTestServer({ env: { PAWL_TEMPORARY_BLOCK_SECONDS: '120' }, worksInBackground: false })
  world = await openWorldOn(server)
  phonesV4 = await openPhonesV4(world)
  // Time passes by a command alone.
  server.clock.stop()
})
afterAll(() => world.close())

const VERSIONS = [...PHONE_VERSIONS, '4.0'] as const
type Version = (typeof VERSIONS)[number]
type Factors = 'possession' | 'possession_knowledge' | 'possession_biometry'

/** A phone of either generation, as far as their lives are the same. */
interface Phone {
  readonly state: { readonly counter: number }
  readonly validate: (factors: Factors, quality: Code['quality']) => Prepared<unknown>
  readonly remove: () => Prepared<unknown>
  readonly skip: (steps: number) => void
  readonly send: (request: Prepared<unknown>) => Promise<HttpReply>
  readonly status: () => Promise<{ state: number; failedAttempts: number; ctrByte: number }>
}

interface Code {
  readonly request: Prepared<unknown>
  /** Of the phone when it made the code. */
  readonly counter: number
  /** STRANGE: made with no key of the phone; GUESS: with that of possession and wrong other ones. */
  readonly quality: 'RIGHT' | 'GUESS' | 'STRANGE'
  /** Of possession alone none resets the failures, and no wrong one is a guess. */
  readonly hasTwoFactors: boolean
}

interface Real {
  readonly userId: string
  activationCode: string
  /** Undefined before its keys are exchanged. */
  phone: Phone | undefined
  /** Made by this phone, sent or not. */
  codes: Code[]
}

interface Model {
  now: number
  state: 'NONE' | 'CREATED' | 'PENDING_COMMIT' | 'ACTIVE' | 'BLOCKED'
  /** The end of what waits for its phone or its commit. */
  expiresAt: number
  /** Of the server: the next code it takes is of this counter value or one of the 19 after it. */
  counter: number
  failedAttempts: number
  blocksInRow: number
  /** Undefined for a block by the bank, which lasts. */
  blockEndsAt: number | undefined
}

const NOTHING: Model = {
  now: 0,
  state: 'NONE',
  expiresAt: 0,
  counter: 0,
  failedAttempts: 0,
  blocksInRow: 0,
  blockEndsAt: undefined,
}
const NO_ATTEMPTS = { failedAttempts: 0, blocksInRow: 0 }

/** What a code does to the model; whether it is accepted. */
function takeCode(model: Model, { counter, quality, hasTwoFactors }: Omit<Code, 'request'>): boolean {
  const ahead = counter - model.counter
  if (model.state !== 'ACTIVE' || ahead < 0 || ahead >= LOOK_AHEAD) return false
  if (quality === 'RIGHT') {
    Object.assign(model, { counter: counter + 1 }, hasTwoFactors && NO_ATTEMPTS)
    return true
  }
  if (quality === 'STRANGE' || !hasTwoFactors) return false
  model.failedAttempts += 1
  if (model.failedAttempts < ATTEMPTS_MAX) return false
  model.blocksInRow += 1
  model.state = 'BLOCKED'
  model.blockEndsAt = model.now + FIRST_BLOCK * 2 ** (model.blocksInRow - 1)
  return false
}

function passTime(model: Model, milliseconds: number): void {
  model.now += milliseconds
  const isWaiting = model.state === 'CREATED' || model.state === 'PENDING_COMMIT'
  if (isWaiting && model.expiresAt <= model.now) model.state = 'NONE'
  if (model.state !== 'BLOCKED' || model.blockEndsAt === undefined || model.blockEndsAt > model.now) return
  const failedAttempts = Math.min(model.failedAttempts, ATTEMPTS_MAX - 1)
  Object.assign(model, { state: 'ACTIVE', failedAttempts, blockEndsAt: undefined })
}

/** A command after which bank and phone see what the model says. */
const step = (name: string, act: (model: Model, real: Real) => Promise<void>): Command<Model, Real> =>
  command(name, async (model, real) => {
    await act(model, real)
    expect(await registrationOf(world, real.userId)).toBe(model.state)
    if (real.phone === undefined) return
    const { state, failedAttempts, ctrByte } = await real.phone.status()
    if (model.state === 'NONE') expect(state).toBe(STATE.REMOVED)
    else
      expect({ state, failedAttempts, ctrByte }).toEqual({
        state: STATE[model.state],
        failedAttempts: model.failedAttempts,
        ctrByte: model.counter % 256,
      })
  })

const expectStatus = (reply: HttpReply, isDone: boolean, refusal: number): void =>
  expect(reply.status, reply.text).toBe(isDone ? 200 : refusal)

const register = step('register', async (model, real) => {
  const reply = await world.bank.register(real.userId)
  expectStatus(reply, model.state === 'NONE', 400)
  if (model.state !== 'NONE') return
  Object.assign(model, { ...NOTHING, now: model.now, state: 'CREATED', expiresAt: model.now + VALIDITY })
  Object.assign(real, { activationCode: readQrCode(reply).code, phone: undefined, codes: [] })
})

const exchangeKeys = (version: Version) =>
  step(`exchange keys in ${version}`, async (model, real) => {
    const { reply, phone } = await (version === '4.0' ? activateV4 : activateV3)(real.activationCode, version)
    expectStatus(reply, model.state === 'CREATED', 400)
    if (phone === undefined) return
    Object.assign(model, { state: 'PENDING_COMMIT', counter: phone.state.counter })
    real.phone = phone
  })

/** A change by the bank: from these states of the model. */
const bankStep = (
  name: string,
  call: (userId: string) => Promise<HttpReply>,
  isAllowed: (model: Model) => boolean,
  change: Partial<Model>,
) =>
  step(name, async (model, real) => {
    const isDone = isAllowed(model)
    expectStatus(await call(real.userId), isDone, 400)
    if (isDone) Object.assign(model, change, { blockEndsAt: undefined })
  })

const commit = bankStep(
  'commit',
  (userId) => world.bank.commit(userId),
  ({ state }) => state === 'PENDING_COMMIT',
  { state: 'ACTIVE', ...NO_ATTEMPTS },
)
const block = bankStep(
  'block',
  (userId) => world.bank.change(userId, 'BLOCK'),
  ({ state, blockEndsAt }) => state === 'ACTIVE' || blockEndsAt !== undefined,
  { state: 'BLOCKED' },
)
const unblock = bankStep(
  'unblock',
  (userId) => world.bank.change(userId, 'UNBLOCK'),
  ({ state }) => state === 'BLOCKED',
  { state: 'ACTIVE', ...NO_ATTEMPTS },
)
const remove = bankStep(
  'remove',
  (userId) => world.bank.remove(userId),
  ({ state }) => state !== 'NONE',
  { state: 'NONE' },
)

const sign = (factors: Factors, made: Code['quality'], isSent: boolean) =>
  step(`${isSent ? 'sign' : 'sign and lose'} ${made} with ${factors}`, async (model, real) => {
    if (real.phone === undefined) return
    const { counter } = real.phone.state
    const hasTwoFactors = factors !== 'possession'
    // The keys of a guess are right where possession alone is asked for.
    const quality = made === 'GUESS' && !hasTwoFactors ? 'RIGHT' : made
    const code = { request: real.phone.validate(factors, made), counter, quality, hasTwoFactors } as const
    real.codes.push(code)
    if (isSent) expectStatus(await real.phone.send(code.request), takeCode(model, code), 401)
  })

const sendAgain = (place: number) =>
  step(`send again what was made ${place} codes ago`, async (model, real) => {
    const code = real.codes.at(-1 - place)
    if (real.phone && code) expectStatus(await real.phone.send(code.request), takeCode(model, code), 401)
  })

const skip = (steps: number) => step(`skip ${steps}`, async (_model, { phone }) => phone?.skip(steps))

const removeByPhone = step('remove by phone', async (model, { phone }) => {
  if (phone === undefined) return
  const { counter } = phone.state
  const isDone = takeCode(model, { counter, quality: 'RIGHT', hasTwoFactors: true })
  expectStatus(await phone.send(phone.remove()), isDone, 401)
  if (isDone) model.state = 'NONE'
})

const timePasses = (milliseconds: number) =>
  step(`${milliseconds / MINUTE} minutes pass`, async (model) => {
    await world.advance(milliseconds)
    passTime(model, milliseconds)
  })

const factors = fc.constantFrom<Factors>('possession', 'possession_knowledge', 'possession_biometry')
const quality = fc.constantFrom<Code['quality']>('RIGHT', 'RIGHT', 'GUESS', 'STRANGE')
const signing = fc.tuple(factors, quality, fc.boolean()).map((request) => sign(...request))
const wrong = fc.constantFrom<Factors>('possession_knowledge', 'possession_biometry').map((of) => sign(of, 'GUESS', true))
const COMMANDS = [
  fc.constant(register),
  fc.constantFrom(...VERSIONS).map(exchangeKeys),
  fc.constant(commit),
  fc.constant(block),
  fc.constant(unblock),
  fc.constant(unblock),
  fc.constantFrom(remove, removeByPhone),
  signing,
  signing,
  wrong,
  wrong,
  wrong,
  fc.nat({ max: 4 }).map(sendAgain),
  fc.integer({ min: 1, max: LOOK_AHEAD }).map(skip),
  fc.constantFrom(1, 2, 4, 5).map((minutes) => timePasses(minutes * MINUTE)),
]

/** Half of the lives begin with a phone that is bound. */
async function begin([version, isBound]: readonly [Version, boolean]): Promise<{ model: Model; real: Real }> {
  const model = { ...NOTHING }
  const real: Real = { userId: world.newUser(), activationCode: 'AAAAA-AAAAA-AAAAA-AAAAA', phone: undefined, codes: [] }
  if (isBound) for (const one of [register, exchangeKeys(version), commit]) await one.run(model, real)
  return { model, real }
}

test(
  'an activation does what the model says, whatever comes in whatever order',
  async () => {
    await assertModel(fc.tuple(fc.constantFrom(...VERSIONS), fc.boolean()), COMMANDS, begin, 40)
  },
  MODEL_TIMEOUT_MS,
)

function wrongKeys(quality: Code['quality'], bytes: number) {
  if (quality === 'RIGHT') return {}
  const others = { knowledge: random(bytes), biometry: random(bytes) }
  return { wrongKeys: quality === 'GUESS' ? others : { ...others, possession: random(bytes) } }
}

interface Activated {
  readonly reply: HttpReply
  /** Undefined when it was refused. */
  readonly phone: Phone | undefined
}

async function activateV3(activationCode: string, version: Version): Promise<Activated> {
  const phone = world.newPhone(version as (typeof PHONE_VERSIONS)[number])
  const request = await phone.prepareActivation(activationCode)
  const reply = await phone.send(request)
  if (reply.status !== 200) return { reply, phone: undefined }
  request.open(reply)
  return {
    reply,
    phone: {
      ...phone,
      validate: (of, quality) => phone.prepareValidation({ factors: of, ...wrongKeys(quality, 16) }),
      remove: () => phone.prepareRemove(),
      status: () => phone.readStatus({ withChallenge: true }),
    },
  }
}

/** The phone confirms at once, with its first code. */
async function activateV4(activationCode: string): Promise<Activated> {
  const phone = phonesV4.newPhone('EC_P384')
  const request = await phone.prepareActivation(activationCode)
  const reply = await phone.send(request)
  if (reply.status !== 200) return { reply, phone: undefined }
  request.open(reply)
  await phone.exchange(phone.prepareConfirm(true))
  return {
    reply,
    phone: {
      ...phone,
      validate: (of, quality) => phone.prepareValidation({ factors: of, ...wrongKeys(quality, 32) }),
      remove: () => phone.prepareRemove(),
      status: () => phone.readStatus(),
    },
  }
}
