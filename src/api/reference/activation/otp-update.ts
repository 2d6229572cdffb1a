// activation/otp/update: another OTP for the commit of an activation (cloud §15.2).
import { Type } from '@sinclair/typebox'
import { setCommitOtp } from '../../../storage/activation/commit.ts'
import { Identifier } from '../../cloud/fields.ts'
import type { Dialect } from '../dialect.ts'
import { BANK_ROLES, referenceEndpoint } from '../endpoint.ts'
import { ActivationId, Optional } from '../members.ts'
import { findOwn, refuseState } from '../../cloud/own-registration.ts'

export const updateOtp = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: 'activation/otp/update',
    operationId: 'referenceUpdateOtp',
    summary: 'Sets the one-time password that the commit of an activation demands',
    errors: ['REGISTRATION_NOT_FOUND', 'REGISTRATION_CHANGE_REFUSED'],
    roles: BANK_ROLES,
    request: Type.Object({ activationId: ActivationId, externalUserId: Optional, activationOtp: Identifier }),
    response: Type.Object({ activationId: Type.String(), updated: Type.Boolean() }),
    async handle(call) {
      const { parts, request, caller } = call
      const { activationId, activationOtp, externalUserId = null } = request
      const { state } = await findOwn(call, activationId)
      const otpHash = await parts.activationOtps.hash(activationOtp)
      const by = { username: caller.username, externalUserId }
      const isUpdated = await setCommitOtp(
        parts.db,
        { activationId, from: ['CREATED', 'PENDING_COMMIT'] },
        otpHash,
        new Date(parts.platform.now()),
        by,
      )
      if (!isUpdated) refuseState(state)
      return { activationId, updated: true }
    },
  })
