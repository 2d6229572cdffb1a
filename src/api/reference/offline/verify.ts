// signature/offline/verify, auth/offline/verify: a code that a user typed in, for what a QR code of the bank has shown (cloud §15.3).
import { type Static, type TObject, Type } from '@sinclair/typebox'
import { verifyOfflineAtDoor } from '../../../channel/authenticate-offline.ts'
import { describeCovered } from '../../../domain/activation/door-key.ts'
import { OptionalOrNull } from '../../../http/types.ts'
import { findRegistrationDetail } from '../../../storage/activation/search.ts'
import { findApplication } from '../../../storage/application/applications.ts'
import { DOOR_ROLES } from '../../door/fields.ts'
import { refuseOperationBody } from '../../door/offline-terms.ts'
import { DATA_LENGTH_MAX, readCovered } from '../base-string.ts'
import type { Dialect } from '../dialect.ts'
import { type ReferenceCall, referenceEndpoint } from '../endpoint.ts'
import { told } from '../header.ts'
import { ActivationId, FactorNames, Given, Names, StateName } from '../members.ts'
import { listTotps, ProximitySteps } from './members.ts'

export const verifyOffline = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: `${dialect.place}/offline/verify`,
    operationId: 'referenceVerifyOffline',
    summary: 'Verifies a code that a user typed in, for what a QR code of the bank has shown',
    description:
      'A right code is good once, whatever it is for. A wrong one counts only where its first group is right. Ten a minute of an activation are looked at. ' +
      'An operation of pawl is approved by `POST /operations/offline/otp` alone.',
    errors: [],
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
    response: Type.Object({
      [dialect.isValid]: Type.Boolean(),
      activationId: Type.String(),
      activationStatus: Type.Optional(StateName),
      blockedReason: Type.Optional(Type.String()),
      userId: Type.Optional(Type.String()),
      applicationId: Type.Optional(Type.String()),
      [dialect.factors]: Type.Optional(FactorNames),
      remainingAttempts: Type.Optional(Type.Integer()),
      applicationRoles: Names,
      activationFlags: Names,
    }) as TObject,
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
  // What does not have the form of a code is not a guess.
  if (covered?.method !== 'POST' || !new RegExp(`^\\d{${componentLength}}-\\d{${componentLength}}$`).test(otp))
    return { [dialect.isValid]: false, activationId, applicationRoles: [], activationFlags: [] }
  await refuseOperationBody(parts.db, applicationId, covered, 'data')
  // Who asks about an activation of another application must not hold up those whose it is.
  parts.otpAttempts.take(`${applicationId} ${activationId}`, parts.platform.monotonic())
  const { resourceId, nonce, body } = covered
  const eventData = `POST\n${resourceId}\n${describeCovered(body, undefined)}`
  const asked = { activationId, applicationId, verifiedBy: caller.username, source, eventData }
  const attempt = { resourceId, body, nonce, otp, componentLength, isBiometryAllowed: allowBiometry === true, totps }
  const { verdict, factors } = await verifyOfflineAtDoor(parts, asked, attempt)
  return {
    [dialect.isValid]: verdict.isRight,
    activationId,
    ...(await describe(call, activationId)),
    ...(factors !== undefined && { [dialect.factors]: factors }),
  }
}

/** The activation as the code left it. */
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
