// POST /offline/challenges: makes the text of a QR code over data of the bank, for a phone without a connection (cloud §16.1).
import { type Static, Type } from '@sinclair/typebox'
import { signForActivation } from '../../channel/authenticate-offline.ts'
import { findPhone } from '../../channel/offline-approval.ts'
import { signOfflineText } from '../../domain/activation/code.ts'
import { noActiveRegistration } from '../../domain/activation/registration.ts'
import { QR_BYTES_MAX } from '../../domain/operation/form.ts'
import { listProximityOtpsOf } from '../../domain/operation/proximity.ts'
import { named, OneOf, withExample } from '../../http/types.ts'
import { parseBase64, toBase64 } from '../../lib/base64.ts'
import { utf8 } from '../../lib/bytes.ts'
import { requestRefused } from '../../lib/errors.ts'
import type { PersonalizedPayload } from '../../protocol/protocol.ts'
import { composeOfflineHead, OFFLINE_RESOURCE_ID } from '../../protocol/wire/offline.ts'
import { findActivation, type ReadActivationRow } from '../../storage/activation/find.ts'
import { findApplication } from '../../storage/application/applications.ts'
import { insertChallenge } from '../../storage/request/offline-challenges.ts'
import { MadeId, Time, UserId } from '../cloud/fields.ts'
import { door, type DoorCall } from './endpoint.ts'
import { FACTORS_WITHOUT, refuseReserved, ResourceId } from './members.ts'
import { refuseOperationBody, refuseOperationText, sealTerms } from './offline-terms.ts'

const ChallengeToShow = named(
  'OfflineChallengeToShow',
  Type.Object({
    activationId: Type.Optional(MadeId),
    userId: Type.Optional(UserId),
    data: withExample(
      Type.String({
        pattern: '^[^\\u0000]{1,2500}$',
        description: 'must be 1 to 2500 characters: what the phone reads, line feeds allowed',
      }),
      'cashier-7\nHand out 200 EUR?',
    ),
    resourceId: ResourceId,
    body: withExample(
      Type.String({ description: 'Base64 of at most 4096 bytes: what the code covers, as app and bank agreed on' }),
      'Y2FzaGllci03JjIwMCBFVVI=',
    ),
    factors: Type.Optional(
      Type.Array(OneOf(FACTORS_WITHOUT), {
        minItems: 1,
        maxItems: FACTORS_WITHOUT.length,
        description: 'factors that are enough; without it, both',
      }),
    ),
    validitySeconds: Type.Optional(
      Type.Integer({ minimum: 30, maximum: 3600, description: 'how long it may be answered; 300 without it' }),
    ),
    hasProximityCheck: Type.Optional(
      Type.Boolean({ description: 'the phone has to read a password that changes: of one activation alone' }),
    ),
  }),
)

const OfflineChallenge = named(
  'OfflineChallenge',
  Type.Object({
    challengeId: Type.String({ format: 'uuid' }),
    qrCodeData: Type.String({ description: 'the text of the QR code' }),
    nonce: Type.String({ description: 'Base64 of 16 bytes; it stands in the text' }),
    expiresAt: Time,
    proximityOtp: Type.Optional(Type.String({ description: 'with a proximity check: the one that stands in the text' })),
  }),
)

type Request = Static<typeof ChallengeToShow>

export const offlineChallenges = door({
  place: 'offline',
  name: 'challenges',
  label: 'offline_challenge',
  operationId: 'createOfflineChallenge',
  summary: 'Makes the text of a QR code for a phone without connection, over data of the bank',
  description:
    'For one activation, for the phone of a user, or with neither for any phone of the application. What the user then types goes to ' +
    '`POST /offline/verification`. A challenge takes one right code, and at most three in all. docs/OFFLINE.md says how to use it safely.',
  takesKey: false,
  body: ChallengeToShow,
  response: OfflineChallenge,
  judge: create,
})

async function create({ request, parts, applicationId }: DoorCall<Request>): Promise<Static<typeof OfflineChallenge>> {
  const { data, resourceId, validitySeconds = 300, hasProximityCheck = false } = request
  const body = readBody(request.body)
  if (resourceId !== OFFLINE_RESOURCE_ID) refuseReserved(resourceId)
  await refuseOperationBody(parts.db, applicationId, { resourceId, body }, 'body')
  await refuseOperationText(parts.db, applicationId, data)
  const activation = await findNamed(parts, applicationId, request)
  if (hasProximityCheck && activation === undefined)
    throw requestRefused('hasProximityCheck', 'must be of one activation: name `activationId` or `userId`')
  const { platform, recordKeys } = parts
  const nonce = toBase64(platform.randomBytes(KEY_BYTES))
  const seed = hasProximityCheck ? platform.randomBytes(KEY_BYTES) : undefined
  const proximityOtp = seed && listProximityOtpsOf(seed, platform.now())[0]
  const qrCodeData = await signText(parts, applicationId, activation, { data, totp: proximityOtp, nonceBase64: nonce })
  const { length } = utf8(qrCodeData)
  if (length > QR_BYTES_MAX)
    throw requestRefused('data', `must fit into a QR code: its text has ${length} bytes, and at most ${QR_BYTES_MAX} fit`)
  const challengeId = platform.uuid()
  const expiresAt = platform.now() + validitySeconds * 1000
  const activationId = activation?.activationId ?? null
  const terms = sealTerms(recordKeys, challengeId, {
    applicationId,
    activationId,
    resourceId,
    body: toBase64(body),
    nonce,
    factors: request.factors ?? FACTORS_WITHOUT,
    seed: seed === undefined ? null : toBase64(seed),
    expiresAt,
  })
  const challenge = { challengeId, applicationId, activationId, terms, expiresAt: new Date(expiresAt) }
  if (!(await insertChallenge(parts.db, challenge))) throw noActiveRegistration()
  return { challengeId, qrCodeData, nonce, expiresAt, ...(proximityOtp !== undefined && { proximityOtp }) }
}

function readBody(text: string): Uint8Array {
  const bytes = parseBase64(text)
  if (bytes === undefined || bytes.length > BODY_BYTES_MAX)
    throw requestRefused('body', `must be Base64 of at most ${BODY_BYTES_MAX} bytes`)
  return bytes
}

/** The ACTIVE activation that a request names; undefined if it names none. */
async function findNamed(
  parts: DoorCall<Request>['parts'],
  applicationId: string,
  { activationId, userId }: Pick<Request, 'activationId' | 'userId'>,
): Promise<ReadActivationRow | undefined> {
  if (activationId !== undefined && userId !== undefined) throw requestRefused('userId', 'must not stand beside activationId')
  if (userId !== undefined) return await findPhone(parts, { applicationId, userId }, undefined, 'activationId')
  if (activationId === undefined) return undefined
  const activation = await findActivation(parts.db, activationId, new Date(parts.platform.now()))
  if (activation?.applicationId !== applicationId || activation.state !== 'ACTIVE') throw noActiveRegistration()
  return activation
}

async function signText(
  parts: DoorCall<Request>['parts'],
  applicationId: string,
  activation: ReadActivationRow | undefined,
  payload: PersonalizedPayload,
): Promise<string> {
  if (activation !== undefined) {
    const text = signForActivation(parts, activation, payload)
    if (text === undefined) throw noActiveRegistration()
    return text
  }
  const application = await findApplication(parts.db, applicationId)
  if (application === undefined) throw noActiveRegistration()
  return await signOfflineText(parts, application, composeOfflineHead({ ...payload, totp: undefined }, '0'))
}

/** The length of the nonce, and of the seed of a proximity check. */
const KEY_BYTES = 16
/** The longest body, more than a QR code holds. Codes are computed over the body for each counter value that is tried. */
const BODY_BYTES_MAX = 4096
