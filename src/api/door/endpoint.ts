// Declares doors: endpoints of the cloud API that verify for a bank what a phone sent to the bank (cloud §12).
import { type Static, type TSchema, Type } from '@sinclair/typebox'
import type { Caller } from '../../domain/credential/credential.ts'
import { applicationOf } from '../cloud/application-of.ts'
import { type AnyCloudEndpoint, cloudEndpoint } from '../cloud/endpoint.ts'
import { DOOR_ROLES } from './members.ts'
import { type Asker, KEY_HEADER, RepeatedRequest } from './repeat.ts'
import type { CloudParts } from '../cloud/parts.ts'

/** A request to a door, whose structure was checked. */
export interface DoorCall<Request> {
  readonly request: Request
  /** The application of the credential. A door reveals nothing about other applications. */
  readonly applicationId: string
  readonly caller: Caller
  /** Address of the caller. */
  readonly source: string
  /** Set when the request has an `Idempotency-Key`. */
  readonly asker: Asker | undefined
  readonly parts: CloudParts
}

/** The members of an answer that show its outcome. An answer with neither `isValid` nor `isOpened` counts as a success. */
export interface DoorAnswer {
  readonly isValid?: boolean
  readonly isOpened?: boolean
  readonly reason?: string
  /** Whether the same request was answered before. It is not sent. */
  readonly isRepeated?: boolean
  /** The verdict about a code over what was opened. */
  readonly verdict?: DoorAnswer
}

interface DoorDeclaration<B extends TSchema, R extends TSchema> {
  /** The last element of the path. Also the name in metrics if `label` is absent. */
  readonly name: string
  readonly label?: string
  /** The first element of the path; `verification` if absent. */
  readonly place?: string
  readonly operationId: string
  readonly summary: string
  readonly description: string
  /** Whether a repeated call with the same `Idempotency-Key` gets the first answer again; true if absent. */
  readonly takesKey?: boolean
  readonly body: B
  readonly response: R
  readonly judge: (call: DoorCall<Static<B>>) => Promise<Static<R> & DoorAnswer>
}

/** Declares a door. A fault of the phone is a verdict, a fault of the bank is an error. */
export function door<B extends TSchema, R extends TSchema>({
  name,
  place = 'verification',
  label = name,
  takesKey = true,
  judge,
  ...declared
}: DoorDeclaration<B, R>): AnyCloudEndpoint {
  return cloudEndpoint({
    ...declared,
    route: `POST /${place}/${name}`,
    errors: ['REGISTRATION_NOT_FOUND'],
    roles: DOOR_ROLES,
    bodyBytesMax: BYTES_MAX,
    ...(takesKey && { headers: KeyHeader }),
    async handle({ caller, body: request, headers, source, parts }) {
      const applicationId = await applicationOf({ parts, caller })
      const idempotencyKey = takesKey ? headers['idempotency-key'] : undefined
      const asker = idempotencyKey === undefined ? undefined : { username: caller.username, applicationId, idempotencyKey }
      const answer = await judge({ request, applicationId, caller, source, asker, parts }).catch((error: unknown) => {
        if (!(error instanceof RepeatedRequest)) throw error
        return error.answer as Static<R> & DoorAnswer
      })
      parts.events.doorAnswered({ door: label, verdict: outcomeOf(answer) })
      return answer
    },
  })
}

/** The outcome in metrics. A refused code outweighs an envelope that opens. */
function outcomeOf(answer: DoorAnswer): string {
  const { isRepeated, isValid, isOpened, reason } = { ...answer, ...answer.verdict }
  if (isRepeated === true) return 'repeated'
  return (isValid ?? isOpened ?? true) ? 'valid' : String(reason).toLowerCase()
}

const KeyHeader = Type.Object({
  [KEY_HEADER.toLowerCase() as 'idempotency-key']: Type.Optional(
    Type.String({
      pattern: '^[\\x21-\\x7E]{16,255}$',
      description:
        'must be 16 to 255 printable characters of ASCII: random, made by the back end for each request that it receives, and sent again with it. The first ' +
        'answer is then given again, for `PAWL_DOOR_IDEMPOTENCY_SECONDS`',
      examples: ['5f0b3a58c2a14f0f9d8e7a11'],
    }),
  ),
})

/** Room for a body of 128 KiB in Base64, and all other members. */
const BYTES_MAX = 384 * 1024
