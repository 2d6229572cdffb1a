// activation/unblock: unblocks an activation (cloud §15.2).
import { Type } from '@sinclair/typebox'
import type { Dialect } from '../dialect.ts'
import { BANK_ROLES, referenceEndpoint } from '../endpoint.ts'
import { ActivationId, Optional, StateName } from '../members.ts'
import { changeTo } from './change.ts'

export const unblockActivation = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: 'activation/unblock',
    operationId: 'referenceUnblockActivation',
    summary: 'Unblocks an activation',
    errors: ['REGISTRATION_NOT_FOUND', 'REGISTRATION_CHANGE_REFUSED'],
    roles: BANK_ROLES,
    request: Type.Object({ activationId: ActivationId, externalUserId: Optional }),
    response: Type.Object({
      activationId: Type.String(),
      activationStatus: StateName,
      blockedReason: Type.Optional(Type.String()),
    }),
    async handle(call) {
      const { activationId, externalUserId } = call.request
      const { state, blockedReason } = await changeTo(call, activationId, { to: 'ACTIVE', externalUserId })
      return { activationId, activationStatus: state, ...(blockedReason !== null && { blockedReason }) }
    },
  })
