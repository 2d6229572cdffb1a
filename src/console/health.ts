// Finds what is wrong with the server, in words, and what to do. Most thresholds are those of the alerts (deploy/prometheus/pawl.rules.yml), over the
// last hour or the last half minute of this process.
import type { Look } from '../metrics/metrics.ts'
import type { Tone } from './elements.ts'
import { sayCount } from './words.ts'

export interface Problem {
  readonly tone: Tone
  readonly name: string
  /** What is wrong. */
  readonly text: string
  /** What to do about it. */
  readonly todo: string
}

/** The worst first. `now`: milliseconds. `isReady`: the database takes writes. */
export function findProblems(seen: Look, isReady: boolean, now: number): readonly Problem[] {
  const problems = [...ofDatabase(seen, isReady, now), ...ofTraffic(seen), ...ofBackground(seen, now)]
  return problems.toSorted((a, b) => Number(b.tone === 'bad') - Number(a.tone === 'bad'))
}

function ofDatabase({ readAt, pool, statementTimeouts }: Look, isReady: boolean, now: number): readonly Problem[] {
  const problems: Problem[] = []
  if (!isReady) {
    problems.push({
      tone: 'bad',
      name: 'Database',
      text: 'The database does not take writes: phones and the bank are refused.',
      todo: 'Look at the database; `pawl doctor` names what is wrong with the connection.',
    })
  } else if (readAt !== undefined && now / 1000 - readAt > READING_OLD_SECONDS) {
    problems.push({
      tone: 'bad',
      name: 'Database',
      text: 'The figures below could not be read for over a minute.',
      todo: 'The database answers slowly: look for long statements and locks.',
    })
  }
  if (pool !== undefined && pool.waiting > 0)
    problems.push({
      tone: 'wait',
      name: 'Connections',
      text: `${sayCount(pool.waiting, 'request')} waiting for one of the ${pool.max} connections.`,
      todo: 'If it lasts, raise PAWL_DATABASE_POOL_SIZE, or find out why statements take long.',
    })
  if (statementTimeouts > 0)
    problems.push({
      tone: 'wait',
      name: 'Time-outs',
      text: `${sayCount(statementTimeouts, 'statement')} had no answer in time since the start.`,
      todo: 'Look at the load and the locks of the database.',
    })
  return problems
}

function ofTraffic({ history }: Look): readonly Problem[] {
  const problems: Problem[] = []
  const sum = (name: 'failures' | 'codesAccepted' | 'codesRefused'): number =>
    history.reduce((total, sample) => total + sample[name], 0)
  const [failures, accepted, refused] = [sum('failures'), sum('codesAccepted'), sum('codesRefused')]
  if (failures > 0)
    problems.push({
      tone: 'bad',
      name: 'Failures',
      text: `${sayCount(failures, 'request')} of the last hour failed by a fault of the server.`,
      todo: 'The log has each with its request id and reason.',
    })
  if (refused >= CODES_MIN && refused / (accepted + refused) > CODES_REFUSED_MAX)
    problems.push({
      tone: 'wait',
      name: 'Wrong codes',
      text: `${Math.round((refused / (accepted + refused)) * 100)} % of the codes of phones were wrong in the last hour.`,
      todo: 'Somebody may be guessing: the audit log has the phones, and METRICS.md the reasons.',
    })
  const late = history.slice(-LATE_SAMPLES)
  if (late.length === LATE_SAMPLES && late.every(({ loopDelaySeconds }) => loopDelaySeconds > LOOP_DELAY_MAX_SECONDS))
    problems.push({
      tone: 'bad',
      name: 'Too busy',
      text: 'The process answers late: its event loop waits for over a quarter of a second.',
      todo: 'Start another process beside it, or give it more processor time.',
    })
  return problems
}

function ofBackground({ sealLagSeconds, brokenChains, background }: Look, now: number): readonly Problem[] {
  const problems: Problem[] = []
  if (brokenChains > 0)
    problems.push({
      tone: 'bad',
      name: 'Audit',
      text: 'A chain of the audit log was found altered.',
      todo: 'Verify it on the page Audit, and keep a copy of the database before anything else.',
    })
  if (sealLagSeconds > LAG_MAX_SECONDS)
    problems.push({
      tone: 'wait',
      name: 'Audit',
      text: `Rows of the audit log have waited for their seal for ${Math.round(sealLagSeconds / 60)} minutes.`,
      todo: 'One process at least has to run with its background work; the log says what fails.',
    })
  for (const { work, lastSuccessAt } of background) {
    if (lastSuccessAt !== undefined && now / 1000 - lastSuccessAt > LAG_MAX_SECONDS)
      problems.push({
        tone: 'wait',
        name: 'Background',
        text: `No round of ${work.replaceAll('_', ' ')} went through for ${Math.round((now / 1000 - lastSuccessAt) / 60)} minutes.`,
        todo: 'The log says what fails.',
      })
  }
  return problems
}

const READING_OLD_SECONDS = 60
const LAG_MAX_SECONDS = 300
const LOOP_DELAY_MAX_SECONDS = 0.25
/** A sample is ten seconds long, and the last one up to ten. */
const LATE_SAMPLES = 3
const CODES_MIN = 20
const CODES_REFUSED_MAX = 0.2
