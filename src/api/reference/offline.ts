// signature/offline/personalized/create, non-personalized/create and verify of 1.x, auth/offline/... of 2.x: make the text of a QR code for a phone
// without a connection, and check the code that its user typed in (cloud §15.3).
import { type Static, type TObject, Type } from '@sinclair/typebox'
import { signForActivation, verifyOfflineAtDoor } from '../../channel/authenticate-offline.ts'
import { describeCovered } from '../../domain/activation/door-key.ts'
import { signOfflineText } from '../../domain/activation/code.ts'
import { takeOtpAttempt } from '../../domain/operation/operation.ts'
import { computeTotpCandidates } from '../../domain/operation/proximity.ts'
import { OptionalOrNull } from '../../http/types.ts'
import { parseBase64, toBase64 } from '../../lib/base64.ts'
import { PawlError, requestRefused } from '../../lib/errors.ts'
import type { Platform } from '../../lib/platform.ts'
import { composeOfflineHead } from '../../protocol/wire/offline.ts'
import { findActivation } from '../../storage/activation/find.ts'
import { findRegistrationDetail } from '../../storage/activation/search.ts'
import { findApplication } from '../../storage/application/applications.ts'
import { refuseState } from '../cloud/application-of.ts'
import { DOOR_ROLES } from '../door/members.ts'
import { refuseOperationBody, refuseOperationText } from '../door/offline-terms.ts'
import { type Dialect, foreignApplication, type ReferenceCall, referenceEndpoint, requireOwn } from './endpoint.ts'
import { ActivationId, CHANGE_ERRORS, FactorNames, Given, Optional } from './members.ts'
import { DATA_LENGTH_MAX, readCovered, told, Verdict } from './phone-request.ts'

const NONCE_BYTES = 16

/** A little less than the largest QR code holds, because the code has other text, too. */
const OfflineData = Type.String({ pattern: '^[^\\u0000]{0,2500}$', description: 'must be at most 2500 characters' })

const OfflineText = Type.Object({
  offlineData: Type.String({ description: 'the content of the QR code' }),
  nonce: Type.String({ description: 'Base64 of 16 bytes, goes back with the code' }),
})

const ProximityCheck = Type.Object({
  seed: Type.String({ maxLength: 128, description: 'Base64 of 16 to 64 bytes' }),
  stepLength: Type.Integer({ minimum: 1, maximum: 3600, description: 'seconds' }),
})

/** Each step adds one more text against which a code is checked. */
const ProximitySteps = Type.Composite([ProximityCheck, Type.Object({ stepCount: Type.Integer({ minimum: 0, maximum: 4 }) })])

export const personalizedText = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: `${dialect.place}/offline/personalized/create`,
    operationId: 'referencePersonalizedText',
    summary: 'The text of a QR code for one phone, without connection',
    errors: CHANGE_ERRORS,
    request: Type.Object({
      activationId: ActivationId,
      data: OfflineData,
      nonce: Optional,
      proximityCheck: OptionalOrNull(ProximityCheck),
    }),
    response: OfflineText,
    async handle({ request, parts, applicationId }) {
      const { activationId, data, proximityCheck } = request
      const nonce = request.nonce ?? toBase64(parts.platform.randomBytes(NONCE_BYTES))
      if (parseBase64(nonce, NONCE_BYTES) === undefined) throw requestRefused('nonce', `must be Base64 of ${NONCE_BYTES} bytes`)
      await refuseOperationText(parts.db, applicationId, data)
      const activation = await findActivation(parts.db, activationId, new Date(parts.platform.now()))
      if (activation?.applicationId !== applicationId) throw new PawlError('REGISTRATION_NOT_FOUND')
      if (activation.state !== 'ACTIVE') refuseState(activation.state)
      const [totp] = (proximityCheck && listTotps(parts, { ...proximityCheck, stepCount: 0 })) ?? []
      const offlineData = signForActivation(parts, activation, { data, totp, nonceBase64: nonce })
      if (offlineData === undefined) refuseState(activation.state)
      return { offlineData, nonce }
    },
  })

export const generalText = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: `${dialect.place}/offline/non-personalized/create`,
    operationId: 'referenceGeneralText',
    summary: 'The text of a QR code for any phone of the application, without connection',
    request: Type.Object({ applicationId: Given, data: OfflineData }),
    response: OfflineText,
    async handle(call) {
      const { request, parts } = call
      requireOwn(call, request.applicationId)
      const application = await findApplication(parts.db, call.applicationId)
      if (application === undefined) throw foreignApplication()
      const nonce = toBase64(parts.platform.randomBytes(NONCE_BYTES))
      const head = composeOfflineHead({ data: request.data, nonceBase64: nonce }, '0')
      return { offlineData: await signOfflineText(parts, application, head), nonce }
    },
  })

export const verifyOffline = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: `${dialect.place}/offline/verify`,
    operationId: 'referenceVerifyOffline',
    summary: 'Verifies a code that a user typed in, for what a QR code of the bank has shown',
    description:
      'A right code is good once, whatever it is for. A wrong one counts only where its first group is right. Ten a minute of an activation are looked at. ' +
      'An operation of pawl is approved by `POST /operations/offline/otp` alone.',
    roles: DOOR_ROLES,
    request: Type.Object({
      activationId: ActivationId,
      data: Type.String({
        maxLength: DATA_LENGTH_MAX,
        description: 'POST & resource id & nonce & body, all but the first in Base64',
      }),
      [dialect.code]: Given,
      componentLength: OptionalOrNull(Type.Integer({ minimum: 6, maximum: 8, description: 'digits of a group, 8 by default' })),
      allowBiometry: OptionalOrNull(Type.Boolean()),
      proximityCheck: OptionalOrNull(ProximitySteps),
    }) as TObject,
    response: Verdict(dialect.isValid, Type.String(), {
      [dialect.factors]: Type.Optional(FactorNames),
      remainingAttempts: Type.Optional(Type.Integer()),
    }),
    handle: (call) => verify(dialect, call),
  })

interface Request {
  readonly activationId: string
  readonly data: string
  readonly componentLength?: number | null
  readonly allowBiometry?: boolean | null
  readonly proximityCheck?: Static<typeof ProximitySteps> | null
}

async function verify(dialect: Dialect, call: ReferenceCall): Promise<Static<TObject>> {
  const { parts, caller, applicationId, source } = call
  const request = call.request as Request
  const { activationId, allowBiometry, proximityCheck } = request
  const componentLength = request.componentLength ?? 8
  const otp = (request as unknown as Readonly<Record<string, string>>)[dialect.code] ?? ''
  const totps = proximityCheck ? listTotps(parts, proximityCheck) : undefined
  const covered = readCovered(request.data)
  // A malformed code is not a guess, so nothing is counted.
  if (covered?.method !== 'POST' || !new RegExp(`^\\d{${componentLength}}-\\d{${componentLength}}$`).test(otp))
    return { [dialect.isValid]: false, activationId, applicationRoles: [], activationFlags: [] }
  await refuseOperationBody(parts.db, applicationId, covered, 'data')
  takeOtpAttempt(parts, applicationId, activationId)
  const { resourceId, nonce, body } = covered
  const eventData = `POST\n${resourceId}\n${describeCovered(body, undefined)}`
  const asked = { activationId, applicationId, verifiedBy: caller.username, source, eventData }
  const isBiometryAllowed = allowBiometry === true
  const attempt = { resourceId, body, nonceBase64: nonce, otp, componentLength, isBiometryAllowed, totps }
  const { verdict, factors } = await verifyOfflineAtDoor(parts, asked, attempt)
  return {
    [dialect.isValid]: verdict.isRight,
    activationId,
    ...(await describe(call, activationId)),
    ...(factors !== undefined && { [dialect.factors]: factors }),
  }
}

/** The members about an activation, as it is after the code. */
async function describe({ parts, applicationId }: ReferenceCall, activationId: string) {
  const row = await findRegistrationDetail(parts.db, applicationId, activationId, new Date(parts.platform.now()))
  if (row === undefined) return told({ reason: 'UNKNOWN' }, applicationId)
  const { state, blockedReason, userId, flags, maxFailedAttempts, failedAttempts } = row
  const roles = (await findApplication(parts.db, applicationId))?.roles ?? []
  const own = {
    state,
    userId,
    flags: [...flags],
    applicationRoles: [...roles],
    ...(blockedReason !== null && { blockReason: blockedReason }),
  }
  return { ...told(own, applicationId), remainingAttempts: Math.max(0, maxFailedAttempts - failedAttempts) }
}

/** The one-time passwords that a proximity check accepts now, newest first. Throws REQUEST_INVALID for a bad seed. */
function listTotps(
  { platform }: { readonly platform: Platform },
  { seed: text, stepLength, stepCount }: Static<typeof ProximitySteps>,
): readonly string[] {
  const seed = parseBase64(text)
  if (seed === undefined || seed.length < 16 || seed.length > 64)
    throw requestRefused('proximityCheck.seed', 'must be Base64 of 16 to 64 bytes')
  return computeTotpCandidates({ seed, stepSeconds: stepLength, digits: 8 }, platform.now() / 1000, stepCount)
}
