// Sends questions to the bank's own servers, at addresses that the operator configures: JSON out, a JSON object back.
import { createFairQueue } from '../../lib/fair-queue.ts'
import { JsonFault, parseForeignObject } from '../../lib/json.ts'
import { describeStatus, OF_OPERATOR, OutboundError, sendOutbound } from '../../lib/outbound.ts'

interface HttpProviderSettings {
  /** The beginning of the setting's name for errors: PAWL_USER_INFO for PAWL_USER_INFO_URL. */
  readonly setting: string
  readonly url: string
  readonly timeoutMs: number
  /** Value of the header Authorization. */
  readonly authorization: string | undefined
}

/**
 * Sends a question and returns the JSON object of a 200 answer. Questions of all `askers` take turns. Throws OutboundError for everything else,
 * UNAVAILABLE when too many questions wait.
 */
export type HttpProvider = (asker: string, question: Readonly<Record<string, unknown>>) => Promise<Record<string, unknown>>

/** Makes the provider at one address. */
export function createHttpProvider(settings: HttpProviderSettings): HttpProvider {
  // A provider that hangs must not take every socket of the process, and a phone that asks too often must not have the others refused.
  const queue = createFairQueue({ atOnce: QUESTIONS_AT_ONCE, waitingMax: QUESTIONS_WAITING_MAX })
  return (asker, question) => queue.run(() => ask(settings, question), { key: asker })
}

async function ask(
  { setting, url, timeoutMs, authorization }: HttpProviderSettings,
  question: Readonly<Record<string, unknown>>,
): Promise<Record<string, unknown>> {
  const { origin } = new URL(url)
  const refuse = (problem: string, cause?: unknown): OutboundError =>
    new OutboundError(`${setting}_URL: ${problem}`, cause === undefined ? {} : { cause })
  const { status, body } = await sendOutbound({
    url,
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json',
      ...(authorization !== undefined && { authorization }),
    },
    body: JSON.stringify(question),
    timeoutMs,
    answerBytesMax: ANSWER_BYTES_MAX + 1,
    rules: OF_OPERATOR,
  }).catch((error: unknown) => {
    throw error instanceof OutboundError ? refuse(error.message, error) : error
  })
  if (status !== 200) throw refuse(`${origin} ${describeStatus(status, `${setting}_AUTHORIZATION`)}`)
  if (body.length > ANSWER_BYTES_MAX) throw refuse(`${origin} answered with more than ${ANSWER_BYTES_MAX} bytes`)
  try {
    return parseForeignObject(body)
  } catch (fault) {
    if (!(fault instanceof JsonFault)) throw fault
    throw refuse(`${origin} answered with ${fault.message}`)
  }
}

const ANSWER_BYTES_MAX = 64 * 1024
const QUESTIONS_AT_ONCE = 64
const QUESTIONS_WAITING_MAX = 256
