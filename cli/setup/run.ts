// Carries out the steps of a set-up file one after the other, and prints the outcome of each.
import { setTimeout } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { systemPlatform } from '../../src/lib/platform.ts'
import type { Bank } from '../bank.ts'
import type { Terminal } from '../command.ts'
import { explainFault, Fault, usageFault } from '../fault.ts'
import { printable } from '../output.ts'
import { planSetup } from './plan.ts'
import type { ReadSetup } from './read.ts'
import { readState } from './state.ts'
import { type Difference, MADE_BY_ANOTHER, type Plan, type Secret, type Step } from './step.ts'

interface Options {
  /** The name of the file in faults. */
  readonly file: string
  readonly isDryRun: boolean
  /** Whether things that the file does not name are removed, if the file has a list of their kind. */
  readonly isPruned: boolean
  /** Whether the user agreed to removals. */
  readonly isConfirmed: boolean
  readonly isJson: boolean
  readonly terminal: Pick<Terminal, 'print' | 'note' | 'interruption'>
}

/**
 * Makes the server equal to the file, or with `isDryRun` prints the steps. Secrets are printed as soon as they are known. Throws a Fault that
 * says which steps were done and which not. A conflict between file and server is a Fault before any change.
 */
export async function applySetup(bank: Bank, read: ReadSetup, options: Options): Promise<void> {
  const draw = async (): Promise<Plan> => planSetup(read.setup, await readState(bank), systemPlatform.now(), options.isPruned)
  const plan = await makePlan(draw, read, options.file)
  if (!options.isDryRun && !options.isConfirmed) refuseRemoval(plan)
  const progress = new Map<Step, State>()
  const secrets: Secret[] = []
  const say = (text: string): Promise<boolean> => (options.isJson ? Promise.resolve(true) : options.terminal.print(text))
  const toJson = (): object => describe(plan, options.isDryRun, progress, secrets)
  for (const note of plan.notes) options.terminal.note(printable(note))
  // A signal does not stop a step that has begun, because the secret that the step makes is shown only once.
  const interruption = options.terminal.interruption()
  for (const step of plan.steps) {
    await say(renderStep(step))
    if (options.isDryRun) continue
    const tell = async (secret: Secret): Promise<void> => {
      secrets.push(secret)
      if (await say(`    ${secret.name}: ${secret.value} (shown only now)\n`)) return
      throw new Fault(
        'output',
        `nobody reads the output any more: the ${secret.name} of ${step.what} was not seen; ${step.lost ?? ''}`,
      )
    }
    try {
      interruption.throwIfAborted()
      progress.set(step, await carryOut(bank, draw, read, step, tell))
    } catch (error) {
      if (options.isJson) await options.terminal.print(toText(toJson()))
      const isHeard = secrets.some(({ what }) => what === step.what)
      throw explain(error, read, { file: options.file, plan, step, progress, isHeard })
    }
    if (progress.get(step) === 'made by another')
      await say(`    was ${step.sign === '-' ? 'removed' : 'made'} by somebody else at the same time\n`)
  }
  const end = options.isJson ? toText(toJson()) : renderEnd(plan, options.isDryRun)
  if (!(await options.terminal.print(end)) && options.isJson && secrets.length > 0)
    throw new Fault(
      'output',
      `nobody reads the output any more: the secrets of ${list(secrets.map(({ what }) => what))} were not seen`,
    )
}

const toText = (json: object): string => `${JSON.stringify(json, null, 2)}\n`

type State = 'done' | 'made by another'

/** Throws a Fault when the plan removes something. */
function refuseRemoval({ steps }: Plan): void {
  const names = steps.filter(({ sign }) => sign === '-').map(({ what }) => what)
  if (names.length > 0)
    throw usageFault(`--prune would remove ${printable(list(names))}, and nothing was changed: --yes does it, --dry-run shows it`)
}

async function makePlan(draw: () => Promise<Plan>, { placeOf }: ReadSetup, file: string): Promise<Plan> {
  const drawn = await draw()
  if (drawn.conflicts.some(({ mayPass }) => mayPass)) await setTimeout(PASSING_MS)
  const plan = drawn.conflicts.some(({ mayPass }) => mayPass) ? await draw() : drawn
  const [first] = plan.conflicts
  if (first === undefined) return plan
  const lines = plan.conflicts.map(({ path, problem }) => `${file}: ${placeOf(path)}: ${printable(problem)}`)
  throw new Fault(first.kind, lines.join('\n'))
}

/** The wait for somebody else, who may be about to remove a thing that was made twice. */
const PASSING_MS = 1_000

/** Carries out a step. When the server refuses it because somebody else was faster, carries out the rest of it. */
async function carryOut(
  bank: Bank,
  draw: () => Promise<Plan>,
  read: ReadSetup,
  step: Step,
  tell: (secret: Secret) => Promise<void>,
): Promise<State> {
  try {
    return (await step.run(bank, tell)) === MADE_BY_ANOTHER ? 'made by another' : 'done'
  } catch (error) {
    if (!(error instanceof Fault) || (error.kind !== 'refused' && error.kind !== 'missing')) throw error
    const { steps, conflicts } = await draw()
    const own = conflicts.find(({ path, mayPass }) => !mayPass && step.path.every((part, index) => path[index] === part))
    if (own !== undefined) throw new Fault(own.kind, `${read.placeOf(own.path)}: ${own.problem}`)
    const left = steps.find(({ what }) => what === step.what)
    if (left === undefined) return 'made by another'
    // The step is still the same, so the server refuses the step itself.
    if (left.sign === step.sign && isDeepStrictEqual(left.differences, step.differences)) throw error
    await left.run(bank, tell)
    return 'done'
  }
}

interface Ended {
  readonly file: string
  readonly plan: Plan
  readonly step: Step
  readonly progress: ReadonlyMap<Step, State>
  /** Whether the secret of the step was printed. */
  readonly isHeard: boolean
}

function explain(error: unknown, { placeOf }: ReadSetup, { file, plan: { steps }, step, progress, isHeard }: Ended): unknown {
  if (!(error instanceof Fault)) return error
  const left = steps.filter((one) => !progress.has(one)).map(({ what }) => what)
  const lost = error.kind === 'unreachable' && !isHeard && step.lost !== undefined ? `; ${step.lost}` : ''
  const done = `done: ${progress.size} of ${steps.length}, not done: ${list(left)}; the next pawl apply goes on`
  return new Fault(error.kind, `${file}: ${placeOf(step.path)}: ${step.what}: ${explainFault(error)}${lost}; ${printable(done)}`)
}

/** The first ten names, and the number of the others. */
const list = (names: readonly string[]): string =>
  names.length <= 10 ? names.join(', ') : `${names.slice(0, 10).join(', ')} and ${names.length - 10} more`

function renderStep({ sign, what, differences }: Step): string {
  const lines = differences.flatMap((one) => renderDifference(one, sign)).map((line) => `    ${line}\n`)
  return `${sign} ${printable(what)}\n${lines.join('')}`
}

function renderDifference({ name, before, after }: Difference, sign: Step['sign']): string[] {
  const side = (mark: string, value: unknown): string => `${mark} ${name}: ${shorten(printable(JSON.stringify(value)))}`
  return [...(before === undefined || sign === '+' ? [] : [side('-', before)]), side('+', after)]
}

/** Shortens a long value, like a template, which would hide the other lines; `--json` shows it whole. */
const shorten = (text: string): string => (text.length <= 200 ? text : `${text.slice(0, 200)}… (--json shows it whole)`)

function renderEnd({ steps, notInFile }: Plan, isDryRun: boolean): string {
  const rest =
    notInFile.length === 0 ? '' : `not in the file, and left alone: ${printable(notInFile.map(({ what }) => what).join(', '))}\n`
  const count = steps.length === 1 ? '1 change' : `${steps.length} changes`
  if (steps.length === 0) return `${rest}nothing to change\n`
  return `${rest}${count}${isDryRun ? ' would be made: nothing was changed' : ''}\n`
}

const describe = (plan: Plan, isDryRun: boolean, progress: ReadonlyMap<Step, State>, secrets: readonly Secret[]): object => ({
  isDryRun,
  changes: plan.steps.map((step) => ({
    change: CHANGES[step.sign],
    what: step.what,
    state: progress.get(step) ?? 'not done',
    members: step.differences.map(({ name, before, after }) => ({ name, ...(before !== undefined && { before }), after })),
  })),
  secrets,
  notInFile: plan.notInFile.map(({ what }) => what),
  notes: plan.notes,
})

const CHANGES: Readonly<Record<Step['sign'], string>> = { '+': 'create', '~': 'change', '-': 'remove' }
