// POST /encryption/open: opens an envelope that a phone sent to the bank, and checks the code over its plaintext if there is one (cloud §13.1).
import { type Static, Type } from '@sinclair/typebox'
import { parseEnvelope } from '../../channel/stages/envelope.ts'
import { verifyAtDoor } from '../../channel/stages/code.ts'
import { type JudgedAtDoor, useOf } from '../../channel/stages/attempt.ts'
import { describeCovered } from '../../domain/activation/door-key.ts'
import { issueTicket, ticketIdOf } from '../../domain/secrets/seal-ticket.ts'
import { named, OneOf } from '../../http/types.ts'
import { toBase64 } from '../../lib/base64.ts'
import { PawlError, requestRefused } from '../../lib/errors.ts'
import type { KnownVerdict } from '../../storage/request/door-verdicts.ts'
import { type DoorEnvelope, recordOpening } from '../../storage/request/door-envelopes.ts'
import { type CodeAnswer, CodeVerification, composeAnswer } from './code.ts'
import { door, type DoorAnswer, type DoorCall } from './endpoint.ts'
import { findSealed, type OpenedRequest, openSealed, readSealed, type ScopeName, type SealedRequest } from './envelope.ts'
import {
  AuditText,
  Client,
  FACTORS_WITHOUT,
  HeaderOfPhone,
  Method,
  PROOF_TERMS,
  readSent,
  refuseLongText,
  requireRight,
  ResourceId,
} from './members.ts'
import { createRepeats, KEY_HEADER, RepeatedRequest, type Repeats } from './repeat.ts'

const CodeOfEnvelope = Type.Object(
  {
    method: Method,
    resourceId: ResourceId,
    ...PROOF_TERMS,
    auditText: Type.Optional(AuditText),
  },
  { description: 'Signed and encrypted: the code of `authorization` must be right for the plaintext.' },
)

const EnvelopeToOpen = named(
  'EnvelopeToOpen',
  Type.Object({
    scope: OneOf<ScopeName>(['APPLICATION', 'ACTIVATION'], {
      description: 'APPLICATION needs the right `envelopes:application`',
    }),
    encryption: Type.Optional(
      HeaderOfPhone(
        'value of X-PowerAuth-Encryption or X-Svc-Encryption',
        'PowerAuth version="4.0", application_key="...", activation_id="..."',
      ),
    ),
    authorization: Type.Optional(
      HeaderOfPhone(
        'value of X-PowerAuth-Authorization or X-Svc-Authorization, in its place',
        'PowerAuth pa_activation_id="...", pa_application_key="...", pa_nonce="...", ...',
      ),
    ),
    envelope: Type.Object({}, { additionalProperties: true, description: 'the JSON object as the bank received it' }),
    code: Type.Optional(CodeOfEnvelope),
    client: Client,
  }),
)

const EnvelopeOpening = named(
  'EnvelopeOpening',
  Type.Object({
    isOpened: Type.Boolean(),
    reason: Type.Optional(OneOf(['ENVELOPE'], { description: 'why `isOpened` is false; the log of pawl knows more' })),
    verdict: Type.Optional(CodeVerification),
    plaintext: Type.Optional(Type.String({ description: 'Base64; absent where `verdict.isValid` is false' })),
    sealTicket: Type.Optional(Type.String({ description: 'for `/encryption/seal`; there where `plaintext` is' })),
    protocolVersion: Type.Optional(Type.String({ examples: ['3.3'] })),
    activationId: Type.Optional(Type.String({ format: 'uuid' })),
    userId: Type.Optional(Type.String()),
    applicationVersion: Type.Optional(Type.String({ description: 'name of the version that the header names' })),
    isReplayProtected: Type.Optional(
      Type.Boolean({ description: 'false for 3.0 and 3.1: the same envelope opens again, for whoever sends it' }),
    ),
  }),
)

type Request = Static<typeof EnvelopeToOpen>
type Answer = Static<typeof EnvelopeOpening> & DoorAnswer
type Code = Static<typeof CodeOfEnvelope>

export const encryptionOpen = door({
  place: 'encryption',
  name: 'open',
  operationId: 'openEnvelope',
  summary: 'Opens an envelope that a phone sent to the bank',
  description:
    'Of the generic labels only. What is wrong with the envelope is `isOpened: false`; 400 says what is wrong with the call of the bank. An envelope ' +
    'opens once from 3.2 on. With `code` it is spent together with the code, and a code that is refused leaves it good. docs/DOORS.md says how to ' +
    'use it safely.',
  body: EnvelopeToOpen,
  response: EnvelopeOpening,
  judge,
})

async function judge(call: DoorCall<Request>): Promise<Answer> {
  const { request, parts } = call
  const { scope, encryption, authorization, code, client } = request
  if (scope === 'APPLICATION') requireRight(call.caller, 'envelopes:application')
  if (scope === 'APPLICATION' && code !== undefined) throw requestRefused('code', 'is of envelopes in activation scope')
  if ((encryption === undefined) === (authorization === undefined))
    throw requestRefused('encryption', 'must be there, or `authorization` in its place, and not both')
  if (code !== undefined && authorization === undefined) throw requestRefused('authorization', 'must be there with `code`')
  refuseLongText(code?.auditText)
  const { method = 'POST', resourceId = '' } = code ?? {}
  const [header, value] =
    authorization === undefined ? (['encryption', encryption ?? ''] as const) : (['authorization', authorization] as const)
  const sent = readSent({ method, resourceId, client }, header, value, 0)
  try {
    return await openFor(
      call,
      readSealed(parts, scope, sent, (protocol, context) =>
        parseEnvelope(protocol, context, request.envelope, 'ENCRYPTION_FAILED'),
      ),
    )
  } catch (error) {
    if (!isEnvelopeRefusal(error)) throw error
    return { isOpened: false, reason: 'ENVELOPE' }
  }
}

/** One call with its parsed envelope. */
interface Opening {
  readonly call: DoorCall<Request>
  readonly sealed: SealedRequest
  readonly repeats: Repeats | undefined
}

/** Opens the envelope, and checks its code if there is one. Throws ENCRYPTION_FAILED for every fault of the envelope. */
async function openFor(call: DoorCall<Request>, sealed: SealedRequest): Promise<Answer> {
  const { request, asker, parts } = call
  if (asker !== undefined) refuseKeyOfEnvelope(asker.idempotencyKey, request)
  const opening = { call, sealed, repeats: asker && createRepeats(parts, asker, listMembers(request)) }
  const seen = await readSeen(opening)
  const { known, opened } = await openOnce(opening, seen)
  const facts = composeFacts(sealed, opened, seen)
  if (request.code === undefined) {
    const { at, isRepeated } = await useUp(opening, opened, known)
    return { isOpened: true, isRepeated, ...facts, ...handOut(opening, opened, at) }
  }
  const verdict = known ?? (await checkCode(opening, request.code, opened, seen))
  // A caller who reads only `plaintext` must not find one that nobody signed.
  const content = verdict.isValid ? handOut(opening, opened, await recordAgain(opening, opened)) : {}
  return { isOpened: true, verdict, ...facts, ...content }
}

/** Opens the envelope, or finds the earlier answer to the same Idempotency-Key. Throws ENCRYPTION_FAILED for every fault of the envelope. */
async function openOnce(
  opening: Opening,
  seen: DoorEnvelope,
): Promise<{ readonly known: CodeAnswer | undefined; readonly opened: OpenedRequest }> {
  const { call, sealed, repeats } = opening
  const openAs = (isRepeated: boolean) => openSealed(call.parts, sealed, seen, isRepeated)
  const known = await findKnown(opening, seen)
  try {
    return { known, opened: await openAs(known !== undefined) }
  } catch (error) {
    if (repeats === undefined || known !== undefined || !isEnvelopeRefusal(error)) throw error
    // The same call may have used up the envelope since its key was looked up.
    const meanwhile = await findKnown(opening, await readSeen(opening))
    if (meanwhile === undefined) throw error
    return { known: meanwhile, opened: await openAs(true) }
  }
}

const isEnvelopeRefusal = (error: unknown): boolean => error instanceof PawlError && error.code === 'ENCRYPTION_FAILED'

/** The plaintext, and the ticket for its answer. `at` is the time of the opening by the clock of the database. */
function handOut({ call, sealed }: Opening, opened: OpenedRequest, at: Date): Pick<Answer, 'plaintext' | 'sealTicket'> {
  const { parts, caller, applicationId } = call
  const { context, envelope, received } = sealed
  const generation = received.protocol.path
  const openedAt = at.getTime()
  const sealTicket = issueTicket(
    parts.installationKeys.doorSeal,
    parts.platform,
    { username: caller.username, applicationId },
    {
      ticketId: ticketIdOf(generation, context.sharedInfo1, envelope.identity),
      generation,
      scope: context.scope,
      answerKeys: opened.exportAnswerKeys(),
      openedAt,
      expiresAt: openedAt + parts.settings.sealTicketSeconds * 1000,
    },
  )
  return { plaintext: toBase64(opened.plaintext), sealTicket }
}

const composeFacts = (
  { context, envelope }: SealedRequest,
  { activation }: OpenedRequest,
  { parties: { version } }: DoorEnvelope,
) => ({
  protocolVersion: context.version,
  ...(activation && { activationId: activation.activationId, userId: activation.userId }),
  ...(version && { applicationVersion: version.name }),
  isReplayProtected: envelope.uniqueValue !== undefined,
})

/**
 * Writes the audit row of the opening. For the first opening, the same statement uses up the envelope and stores the answer under its
 * Idempotency-Key. Undefined when the envelope was used meanwhile, or the key has an answer by now.
 */
function record({ call, sealed, repeats }: Opening, opened: OpenedRequest, isFirst: boolean): Promise<Date | undefined> {
  const { parts, caller, applicationId } = call
  const { context } = sealed
  return recordOpening(parts.db, {
    uses: isFirst ? opened.uniqueValues : [],
    kept: isFirst ? repeats?.keep(opened.activation ?? NOBODY, {}) : undefined,
    audit: {
      applicationId,
      userId: opened.activation?.userId ?? null,
      activationId: opened.activation?.activationId ?? '',
      eventType: 'envelope_opened',
      eventData: `${context.sharedInfo1}\n${opened.plaintext.length}`,
      occurredAt: new Date(parts.platform.now()),
      verifiedBy: caller.username,
    },
  })
}

/** Writes the audit row of an envelope that this request, or an earlier one with its Idempotency-Key, has used up. */
async function recordAgain(opening: Opening, opened: OpenedRequest): Promise<Date> {
  const at = await record(opening, opened, false)
  if (at === undefined) throw new TypeError('nothing was to be used up')
  return at
}

/** Uses up the envelope, unless a request with the same Idempotency-Key did (`isRepeated`). Throws ENCRYPTION_FAILED when another request used it meanwhile. */
async function useUp(
  opening: Opening,
  opened: OpenedRequest,
  known: object | undefined,
): Promise<{ readonly at: Date; readonly isRepeated: boolean }> {
  const at = known === undefined ? await record(opening, opened, true) : undefined
  if (at !== undefined) return { at, isRepeated: false }
  if (known ?? (await findKnown(opening, await readSeen(opening))))
    return { at: await recordAgain(opening, opened), isRepeated: true }
  throw new PawlError('ENCRYPTION_FAILED', { detail: 'used meanwhile by another request' })
}

/** Judges the code over the plaintext. A right code uses up the envelope in the statement that moves the counter. */
async function checkCode(opening: Opening, code: Code, opened: OpenedRequest, seen: DoorEnvelope): Promise<CodeAnswer> {
  const { call, sealed, repeats } = opening
  const { parts, caller, applicationId } = call
  const header = sealed.authorization
  if (header === undefined) throw new TypeError('a code without its header')
  const { signedBodyBytesMax } = parts.settings
  if (opened.plaintext.length > signedBodyBytesMax)
    throw requestRefused('envelope', `must hold at most ${signedBodyBytesMax} bytes where a code covers them`)
  const { resourceId, factors = FACTORS_WITHOUT, auditText } = code
  if (!factors.includes(header.factors)) return { isValid: false, reason: 'FACTORS_NOT_ALLOWED', covered: 'BODY' }
  const compose = (judged: JudgedAtDoor): CodeAnswer => composeAnswer(code, header, 'BODY', judged)
  const find = async () => {
    const { parties, known } = await readSeen(opening)
    await repeats?.refuseKnown(known)
    return parties
  }
  try {
    const attempt = {
      header,
      resourceId,
      bodies: [opened.plaintext],
      audited: { text: describeCovered(opened.plaintext, auditText) },
      use: useOf(opened, 'ENCRYPTION_FAILED'),
      atDoor: {
        applicationId,
        find,
        keep: (given: JudgedAtDoor) => given.verdict.activation && repeats?.keep(given.verdict.activation, compose(given)),
        verifiedBy: caller.username,
      },
    }
    return compose(await verifyAtDoor(parts, sealed.received, attempt, seen.parties))
  } catch (error) {
    if (error instanceof RepeatedRequest) return error.answer as CodeAnswer
    // This error is thrown only when the budget of wrong codes is used up.
    if (!(error instanceof PawlError) || error.code !== 'AUTHENTICATION_CODE_INVALID') throw error
    return { isValid: false, reason: 'TOO_MANY_FAILURES', covered: 'BODY' }
  }
}

/** Reads the rows that the envelope names, and the earlier answer to the same Idempotency-Key. */
const readSeen = ({ call: { parts, applicationId }, sealed, repeats }: Opening): Promise<DoorEnvelope> =>
  findSealed(parts, applicationId, sealed, repeats?.keyHash ?? null)

/**
 * The earlier answer to the same request: its verdict, or an object without members if it had no code. Throws REQUEST_INVALID when the key belongs to
 * another request.
 */
async function findKnown(
  { call, repeats }: Opening,
  { known }: { readonly known: KnownVerdict | undefined },
): Promise<CodeAnswer | undefined> {
  try {
    // An envelope in application scope has no user whose erasure would end the answer.
    await repeats?.refuseKnown(known && call.request.scope === 'APPLICATION' ? { ...known, ...NOBODY } : known)
    return undefined
  } catch (error) {
    if (error instanceof RepeatedRequest) return error.answer as CodeAnswer
    throw error
  }
}

/** All values on which the answer depends. */
const listMembers = ({ scope, encryption, authorization, envelope, code }: Request): readonly (string | null)[] => [
  'open',
  scope,
  encryption ?? null,
  authorization ?? null,
  JSON.stringify(envelope),
  code === undefined
    ? null
    : JSON.stringify([code.method.toUpperCase(), code.resourceId, code.factors, code.refusedFlags, code.requiredFlags]),
]

/**
 * Throws REQUEST_INVALID for a key that contains text of the envelope or its header. With such a key, whoever repeats the envelope would have it
 * opened again.
 */
function refuseKeyOfEnvelope(key: string, { envelope, authorization }: Request): void {
  const texts = [...Object.values(envelope), ...(authorization?.match(/"[^"]*"/g) ?? []).map((quoted) => quoted.slice(1, -1))]
  const isTaken = (text: unknown): boolean =>
    typeof text === 'string' && text.length >= TOLD_LENGTH && key.includes(text.replace(/=+$/, ''))
  if (texts.some(isTaken)) throw requestRefused(KEY_HEADER, 'must be made by the back end, not taken from the phone')
}

/** Stands for the owner of an envelope in application scope. */
const NOBODY = { activationId: '', userId: '' }

/** The length of the shortest nonce that a phone sends: 16 bytes as Base64, without padding. */
const TOLD_LENGTH = 22
