// Runs one simulation from one seed: steps of one to three actions at once, with faults of network, database, clock and processes. It checks the
// promises after each step. At the end all faults are over: webhooks are delivered, the audit log is sealed, and phones go on.
import type { HttpReply } from '../../phone/http.ts'
import { deliverDue } from '../helpers/deliver.ts'
import { verifyAudit } from '../../src/domain/audit/verification.ts'
import { ACTIONS, HOUSEKEEPING } from './actions.ts'
import { type Breakage, type BreakageName, BREAKAGES } from './breakage.ts'
import { createFacts, findBrokenPromise, findDisturbed, findStepBack, findWrongChain, findWrongDelivery } from './facts.ts'
import {
  canCount,
  type Check,
  type Chore,
  codeJob,
  generationOf,
  type Job,
  type Life,
  type Look,
  LOOK_AHEAD,
  SKEW_MAX_MS,
  verdictIn,
} from './jobs.ts'
import { isKept } from './actions-door.ts'
import { createSimulatedPhone } from './phones.ts'
import type { Prepared } from './prepared.ts'
import { CALM, type Faults, type Lost, openSite, type ServerName, SERVERS, type Site } from './site.ts'
import { type DeliveryView, look, type View } from './view.ts'

export interface Told {
  readonly seed: number
  /** A line for each event. The last line says what is wrong, if anything is. */
  readonly trace: readonly string[]
  /** The first broken promise; undefined when there is none. */
  readonly violation: string | undefined
  readonly steps: number
}

export interface SimulationOptions {
  readonly seed: number
  readonly template: Blob
  readonly readPrepared: () => Prepared
  readonly breakage?: BreakageName
}

/** Runs the simulation of a seed. */
export async function simulate({ seed, template, readPrepared, breakage = 'none' }: SimulationOptions): Promise<Told> {
  const prepared = readPrepared()
  const wrong: Breakage = BREAKAGES[breakage]()
  const site = await openSite({ prepared, template, seed, breakage: wrong })
  const { chance } = site
  const phones = prepared.phones.map((one, i) => createSimulatedPhone(prepared, `phone ${i}`, one, chance))
  const known = { newcomers: [], operations: [], shown: [], challenges: [], tokens: [], asks: [], upgrades: [] }
  const life: Life = { site, prepared, facts: createFacts(), phones, ...known, named: 0 }
  const storm = chance.pick(STORMS)
  const length = STEPS_MIN + chance.below(STEPS_MAX - STEPS_MIN)
  const mailbox: Job[] = []
  let steps = 0
  let violation: string | undefined
  try {
    let before = await look(site.database.direct)
    for (; steps < length && violation === undefined; steps += 1) {
      ;({ after: before, violation } = await takeStep(life, { before, mailbox, storm, number: steps }))
    }
    violation ??= await endWell(life, before)
  } catch (error) {
    violation = `the simulation stopped: ${error instanceof Error ? error.stack : String(error)}`
  } finally {
    await site.close()
  }
  if (violation !== undefined) site.trace.push(`WRONG: ${violation}`)
  return { seed, trace: site.trace, violation, steps }
}

interface Step {
  readonly before: View
  /** Requests that were sent and have not arrived. */
  readonly mailbox: Job[]
  readonly storm: Faults
  readonly number: number
}

async function takeStep(
  life: Life,
  { before, mailbox, storm, number }: Step,
): Promise<{ after: View; violation: string | undefined }> {
  const { site } = life
  const { chance, trace } = site
  moveClocks(site)
  // Counted before makeAll, because late statements may also run while phones fetch keys there.
  const lateBefore = site.lateStatements()
  const made = await makeAll(life)
  const sendings: Sending[] = made.flatMap((one) => send(one, mailbox, chance.happens(FAULTY_REQUESTS), site))
  if (mailbox.length > 0 && chance.happens(ARRIVALS)) {
    const [late] = mailbox.splice(chance.below(mailbox.length), 1)
    if (late !== undefined) sendings.push({ job: late, to: chance.pick(SERVERS), fault: ', which arrives late' })
  }
  trace.push(`step ${number + 1}: ${sendings.map(describe).join(' | ') || 'nothing'}`)
  const checks: Check[] = []
  const outcomes = await site.settle(
    sendings.map((one) => run(one, life)),
    storm,
  )
  const after = await look(site.database.direct)
  const isCertain = site.lateStatements() === lateBefore
  for (const [i, { job, fault }] of sendings.entries()) {
    if (job === undefined) continue
    const reply = outcomes[i] as HttpReply | Lost
    trace.push(`  ${reply === 'lost' ? 'no answer' : reply.status}: ${job.name}${fault}${tellVerdict(job, reply)}`)
    if (reply === 'lost' || fault === ANSWER_LOST) continue
    if (reply.status >= 500 && reply.status !== 503) checks.push(() => `${job.name} was answered ${reply.status} ${reply.text}`)
    if (reply.status !== 200) continue
    const check = job.told(reply)
    if (check !== undefined) checks.push(check)
  }
  const changed = sendings.flatMap(({ job }) => job?.changes ?? [])
  const isHouseKept = sendings.some(({ chore }) => chore?.name === HOUSEKEEPING)
  const seen: Look = { before, after, isCertain, changed }
  const violation =
    checks.map((check) => check(seen)).find((found) => found !== undefined) ??
    findMiscounted(seen, sendings, outcomes, site.now()) ??
    (isCertain && !isHouseKept ? findDisturbed(before, after, meantBy(sendings)) : undefined) ??
    findStepBack(before, after) ??
    (await findWrong(life, before, after))
  return { after, violation }
}

async function findWrong({ site, facts }: Life, before: Pick<View, 'sealed'>, view: View): Promise<string | undefined> {
  const [first = 's1'] = SERVERS
  const { installationKeys } = site.server(first).context
  return (
    findBrokenPromise(facts, view) ??
    findWrongDelivery(view, site.received) ??
    // Only the sealer changes sealed rows, so they are verified only when their number has changed.
    (view.sealed === before.sealed
      ? undefined
      : findWrongChain(facts, await verifyAudit({ db: site.database.direct, installationKeys })))
  )
}

/** The ids of the activations, and of the users, that a step is about. */
const meantBy = (sendings: readonly Sending[]): ReadonlySet<string> =>
  new Set(
    sendings.flatMap(({ job }) =>
      [job?.about, job?.changes, job?.code?.phone.activationId(), job?.ask?.phone.activationId()].filter(
        (id) => id !== undefined,
      ),
    ),
  )

/** Finds a wrong count of failed attempts: each refused guess counts, unless a right code or a change reset the count, and nothing else does. */
function findMiscounted(
  { before, after, isCertain, changed }: Look,
  sendings: readonly Sending[],
  outcomes: readonly unknown[],
  now: number,
): string | undefined {
  if (!isCertain) return undefined
  // All calls under one key are one attempt.
  const sent = new Map<string, Set<unknown>>()
  const refused = new Map<string, Set<unknown>>()
  const add = (to: Map<string, Set<unknown>>, id: string, attempt: unknown) => to.set(id, (to.get(id) ?? new Set()).add(attempt))
  for (const [i, sending] of sendings.entries()) {
    const { job } = sending
    const { code, ask } = job ?? {}
    if (job === undefined || code === undefined || !code.isGuess) continue
    const attempt = ask?.key ?? sending
    const id = code.phone.activationId()
    if (ask === undefined || ask.first?.at === now || !isKept(ask, now)) add(sent, id, attempt)
    const reply = outcomes[i] as HttpReply | Lost
    if (reply !== 'lost' && isRefused(job, reply, now) && canCount(before, code)) add(refused, id, attempt)
  }
  for (const [id, { size: count }] of refused) {
    const [was, is] = [before.activations.get(id), after.activations.get(id)]
    if (was?.state !== 'ACTIVE' || is?.state !== 'ACTIVE' || changed.includes(id)) continue
    if (is.counter !== was.counter || is.generation !== was.generation) continue
    if (is.failedAttempts < was.failedAttempts + count)
      return `${count} wrong codes of ${id} were refused, and its failed attempts went from ${was.failedAttempts} to ${is.failedAttempts}`
  }
  for (const [id, { failedAttempts, state }] of after.activations) {
    const was = before.activations.get(id)
    // Before the commit, the same column counts wrong one-time passwords of the bank.
    if (was === undefined || was.state === 'PENDING_COMMIT' || state === 'PENDING_COMMIT') continue
    const guesses = sent.get(id)?.size ?? 0
    if (failedAttempts > was.failedAttempts + guesses)
      return `${guesses} guesses came for ${id}, and its failed attempts went from ${was.failedAttempts} to ${failedAttempts}`
  }
  return undefined
}

/** Whether this is the first refusal of a guess because its code is wrong. */
function isRefused({ request, ask }: Job, reply: HttpReply, now: number): boolean {
  if (ask !== undefined)
    return (ask.key === undefined || ask.sentAt === now) && reply.status === 200 && verdictIn(reply)?.reason === 'CODE_WRONG'
  // A limit, or the end of its operation, may refuse a one-time password before it is verified.
  return request.path !== '/operations/offline/otp' && reply.status < 500 && reply.status !== 200
}

/** The verdict of a door, for the trace. */
function tellVerdict({ ask }: Job, reply: HttpReply | Lost): string {
  if (ask === undefined || reply === 'lost' || reply.status !== 200) return ''
  const { isValid, reason = 'the envelope is refused' } = verdictIn(reply) ?? {}
  return isValid === true ? ' -> valid' : ` -> ${reason}`
}

/** A request to a server, or the server's own work. */
interface Sending {
  readonly job?: Job
  readonly chore?: Chore
  readonly to: ServerName
  readonly fault: string
}

/** Makes one to three actions. One that computes in the thread pool is alone in its step, because the seed does not decide its duration. */
async function makeAll(life: Life): Promise<readonly (Job | Chore)[]> {
  const { chance, settle, trace } = life.site
  const made: (Job | Chore)[] = []
  const count = chance.pick([1, 1, 1, 2, 2, 3])
  for (let i = 0; i < count; i += 1) {
    const action = chance.pick(WEIGHED)
    if (!action.isLight && made.length > 0) continue
    // The server may refuse, for instance, keys for a phone that is not active.
    const [one] = await settle([Promise.resolve(action.make(life)).catch(noteRefusal(trace))], CALM)
    if (one !== undefined) made.push(one)
    if (!action.isLight) break
  }
  return made
}

/** Notes that a server refused a phone's preparation of a request. Any other error is a mistake of the simulation. */
const noteRefusal =
  (trace: string[]) =>
  (error: unknown): undefined => {
    if (!(error instanceof Error) || !/^HTTP 4\d\d /.test(error.message)) throw error
    trace.push(`  refused beforehand: ${error.message}`)
  }

/** Sends a request: in most cases once, else never, twice, later, or with an answer that is lost. */
function send(one: Job | Chore, mailbox: Job[], isFaulty: boolean, { chance }: Site): readonly Sending[] {
  const to = chance.pick(SERVERS)
  if ('work' in one) return [{ chore: one, to, fault: '' }]
  if (!isFaulty) return [{ job: one, to, fault: '' }]
  const fault = chance.pick(['dropped', 'repeated', 'repeated', 'delayed', 'answer lost'] as const)
  const isAskPooled = one.ask?.isPooled === true
  // A call that computes in the thread pool must be alone in its step.
  if (fault === 'delayed' && isAskPooled) return [{ job: one, to, fault: '' }]
  if (fault === 'delayed') mailbox.push(one)
  if (fault === 'dropped' || fault === 'delayed') return []
  if (fault === 'answer lost') return [{ job: one, to, fault: ANSWER_LOST }]
  const isBodyPooled = isAskPooled || (one.code === undefined && one.request.path.startsWith('/pa/'))
  // Key agreements compute in the thread pool, and two of them at once could not be replayed.
  return isBodyPooled
    ? [{ job: one, to, fault: '' }]
    : [to, chance.pick(SERVERS)].map((server) => ({ job: one, to: server, fault: ', sent twice' }))
}

async function run({ job, chore, to }: Sending, { site }: Life): Promise<HttpReply | Lost | undefined> {
  if (job?.ask !== undefined) job.ask.sentAt ??= site.now()
  if (job !== undefined) return site.send(to, job.request)
  const done = await site.work(to, async (running) => chore?.work(running)).catch((error: unknown) => error)
  site.trace.push(`  ${to} ${chore?.name ?? ''}${done instanceof Error ? `: ${done.message}` : ''}`)
  return undefined
}

const describe = ({ job, chore, to }: Sending): string => `${job?.name ?? chore?.name ?? ''} on ${to}`

function moveClocks({ chance, advance, skew, trace }: Site): void {
  advance(1 + chance.below(3_000))
  if (chance.happens(0.08)) {
    const ms = chance.pick([10_000, 60_000, 200_000, 400_000])
    advance(ms)
    trace.push(`${ms / 1000} s pass`)
  }
  if (chance.happens(0.05)) {
    const [name, ms] = [chance.pick(SERVERS), chance.below(2 * SKEW_MAX_MS) - SKEW_MAX_MS]
    skew(name, ms)
    trace.push(`the clock of ${name} is ${ms} ms off`)
  }
}

/** Ends all faults: webhooks must be delivered, the log sealed, and a code of each active phone within the look-ahead accepted. */
async function endWell(life: Life, last: View): Promise<string | undefined> {
  const { site } = life
  site.trace.push('everything is well again')
  await site.settle([], CALM)
  let before = last
  for (let round = 0; round < DELIVERY_ROUNDS && (round === 0 || before.deliveries.some(isWaiting)); round += 1) {
    // Longer than the longest wait for another attempt.
    site.advance(DAY_MS)
    for (const name of SERVERS) await site.settle([site.work(name, ({ context }) => deliverDue(context))], CALM)
    before = await look(site.database.direct)
  }
  for (let round = 0; round < 3; round += 1)
    for (const name of SERVERS) await site.settle([site.work(name, ({ seal }) => seal())], CALM)
  before = await look(site.database.direct)
  const waiting = before.deliveries.find(isWaiting)
  if (waiting !== undefined) return `message ${waiting.id} is never delivered`
  const stepped = findStepBack(last, before) ?? (await findWrong(life, NOTHING_SEALED, before)) ?? findUntold(before)
  if (stepped !== undefined) return stepped
  for (const phone of life.phones) {
    const was = before.activations.get(phone.activationId())
    const ahead = phone.counter() - (was?.counter ?? 0)
    const job = codeJob(life, phone.validate('possession', 'RIGHT'))
    const [reply] = await site.settle([site.send(site.chance.pick(SERVERS), job.request)], CALM)
    if (reply === undefined || reply === 'lost') throw new Error('there is no answer, and nothing is wrong')
    const after = await look(site.database.direct)
    const check = reply.status === 200 ? job.told(reply) : undefined
    const wrong = check?.({ before, after, isCertain: true, changed: [] }) ?? findStepBack(before, after)
    if (wrong !== undefined) return wrong
    if (reply.status >= 500) return `${phone.name} was answered ${reply.status} when nothing was wrong`
    // A phone that does not know that its upgrade was confirmed is left out: it would learn that by its status.
    const isSame = was?.generation === generationOf(phone)
    if (was?.state === 'ACTIVE' && isSame && ahead < LOOK_AHEAD && reply.status !== 200)
      return `${phone.name} is active and ${ahead} codes ahead, and was refused with ${reply.status} ${reply.text}`
    before = after
  }
  return findWrong(life, NOTHING_SEALED, before)
}

const isWaiting = ({ status }: DeliveryView): boolean => status === 'WAITING'

/** Finds an operation whose last message has another status than the operation. */
function findUntold({ operations, deliveries }: View): string | undefined {
  const told = new Map(deliveries.map(({ objectId, payload }) => [objectId, payload]))
  for (const { id, status } of operations.values()) {
    const payload = told.get(id)
    if (payload === undefined) return `no message tells of operation ${id}`
    if (!payload.includes(`"${status}"`)) return `operation ${id} is ${status}, and the last message of it says ${payload}`
  }
  return undefined
}

const NOTHING_SEALED = { sealed: -1 }
const WEIGHED = ACTIONS.flatMap((action) => Array.from({ length: action.weight }, () => action))
const STORMS: readonly Faults[] = [
  { statement: 0.02, message: 0.1, kill: 0.005 },
  { statement: 0.08, message: 0.3, kill: 0.02 },
  { statement: 0.2, message: 0.1, kill: 0.01 },
  CALM,
]
const FAULTY_REQUESTS = 0.3
const ARRIVALS = 0.25
const ANSWER_LOST = ', whose answer is lost'
const STEPS_MIN = 30
const STEPS_MAX = 60
const DELIVERY_ROUNDS = 9
const DAY_MS = 86_400_000
