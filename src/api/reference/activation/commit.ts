// activation/commit: the bank confirms a device (cloud §15.2).
import { Type } from '@sinclair/typebox'
import { commitRegistration } from '../../../domain/activation/registration.ts'
import type { Dialect } from '../dialect.ts'
import { BANK_ROLES, referenceEndpoint } from '../endpoint.ts'
import { ActivationId, Optional } from '../members.ts'
import { findOwn, refuseState } from '../../cloud/own-registration.ts'

export const commitActivation = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: 'activation/commit',
    operationId: 'referenceCommitActivation',
    summary: 'Confirms the device of an activation',
    errors: ['REGISTRATION_NOT_FOUND', 'REGISTRATION_CHANGE_REFUSED', 'OTP_INVALID'],
    roles: BANK_ROLES,
    request: Type.Object({ activationId: ActivationId, externalUserId: Optional, activationOtp: Optional }),
    response: Type.Object({ activationId: Type.String(), activated: Type.Boolean() }),
    async handle(call) {
      const { request, parts, applicationId, caller } = call
      const { activationId, externalUserId = null, activationOtp: otp = null } = request
      const { userId, state } = await findOwn(call, activationId)
      if (state !== 'PENDING_COMMIT') refuseState(state)
      await commitRegistration(
        parts,
        { applicationId, userId, activationId },
        { otp, externalUserId, verifiedBy: caller.username },
      )
      return { activationId, activated: true }
    },
  })
