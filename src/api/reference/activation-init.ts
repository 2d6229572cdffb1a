// activation/init: creates a registration with an activation code (cloud §15.2).
import { type Static, Type } from '@sinclair/typebox'
import { createFurther, type RegistrationRules } from '../../domain/activation/registration.ts'
import { OneOf, OptionalOrNull } from '../../http/types.ts'
import { requestRefused } from '../../lib/errors.ts'
import type { CommitPhase } from '../../storage/database/schema.ts'
import { Identifier, readEnd, UserId } from '../cloud/fields.ts'
import type { CloudParts } from '../cloud/parts.ts'
import { Phase } from '../cloud/registration-members.ts'
import { Flags } from './activation-flags.ts'
import { type Dialect, foreignApplication, referenceEndpoint, requireOwn } from './endpoint.ts'
import { AdditionalData, Given, Optional, requireNoData, TimeGiven } from './members.ts'

const NewActivation = Type.Object({
  protocol: OptionalOrNull(Type.Literal('powerauth')),
  userId: UserId,
  applicationId: Given,
  timestampActivationExpire: TimeGiven,
  maxFailureCount: OptionalOrNull(Type.Integer({ minimum: 1, maximum: 64 })),
  activationOtpValidation: OptionalOrNull(OneOf<CommitPhase | 'NONE'>(['NONE', 'ON_COMMIT', 'ON_KEY_EXCHANGE'])),
  commitPhase: OptionalOrNull(Phase),
  activationOtp: OptionalOrNull(Identifier),
  flags: OptionalOrNull(Flags),
  additionalData: AdditionalData,
  parentActivationId: Optional,
  transferType: Optional,
})

export const initActivation = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: 'activation/init',
    operationId: 'referenceInitActivation',
    summary: 'Creates an activation with an activation code',
    description:
      'Where a user may have one live activation in an application: `ERR0040` while there is one. `additionalData` and transfers are not offered.',
    errors: ['REGISTRATION_EXISTS'],
    request: NewActivation,
    response: Type.Object({
      activationId: Type.String(),
      activationCode: Type.String(),
      activationSignature: Type.String(),
      userId: Type.String(),
      applicationId: Type.String(),
    }),
    async handle(call) {
      const { request, parts, applicationId, caller } = call
      const { userId, flags } = request
      requireOwn(call, request.applicationId)
      requireNoData(request.additionalData)
      for (const member of ['parentActivationId', 'transferType'] as const)
        if (typeof request[member] === 'string')
          throw requestRefused(member, 'is not offered: no activation is made from another one')
      const rules = await readRules(parts, applicationId, request)
      const more = { flags: flags ?? [], isOnlyOneIncomplete: false, verifiedBy: caller.username }
      const created = await createFurther(parts, { applicationId, userId }, { ...rules, ...more })
      if (created === undefined) throw foreignApplication()
      const { activationId, activationQrCodeData } = created
      const [activationCode = '', activationSignature = ''] = activationQrCodeData.split('#')
      return { activationId, activationCode, activationSignature, userId, applicationId }
    },
  })

/** The rules of a new registration. The older member `activationOtpValidation` also determines the phase of the commit (v3 §8.5). */
async function readRules(
  parts: CloudParts,
  applicationId: string,
  request: Static<typeof NewActivation>,
): Promise<RegistrationRules> {
  const { activationOtpValidation, commitPhase, activationOtp, maxFailureCount } = request
  const older = activationOtpValidation === 'NONE' ? undefined : (activationOtpValidation ?? undefined)
  if (older !== undefined && typeof activationOtp !== 'string')
    throw requestRefused('activationOtp', 'must be there with activationOtpValidation')
  // NONE says that there is no OTP, but an OTP that is given would be demanded.
  if (activationOtpValidation === 'NONE' && typeof activationOtp === 'string')
    throw requestRefused('activationOtp', 'must not be there with NONE of activationOtpValidation')
  if (older !== undefined && commitPhase && commitPhase !== older)
    throw requestRefused('commitPhase', 'must be the phase of activationOtpValidation')
  const expiresAt = readEnd(parts, request.timestampActivationExpire, 'timestampActivationExpire')
  return {
    commitPhase: older ?? commitPhase ?? 'ON_COMMIT',
    otpHash: typeof activationOtp === 'string' ? await parts.activationOtps.hash(applicationId, activationOtp) : null,
    maxFailedAttempts: maxFailureCount ?? undefined,
    expiresAt,
  }
}
