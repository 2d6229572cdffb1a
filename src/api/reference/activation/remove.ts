// activation/remove: removes an activation (cloud §15.2).
import { Type } from '@sinclair/typebox'
import type { Dialect } from '../dialect.ts'
import { BANK_ROLES, referenceEndpoint } from '../endpoint.ts'
import { ActivationId, Optional } from '../members.ts'
import { changeTo } from './change.ts'

export const removeActivation = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: 'activation/remove',
    operationId: 'referenceRemoveActivation',
    summary: 'Removes an activation',
    errors: ['REGISTRATION_NOT_FOUND', 'REGISTRATION_CHANGE_REFUSED'],
    roles: BANK_ROLES,
    request: Type.Object({ activationId: ActivationId, externalUserId: Optional }),
    response: Type.Object({ activationId: Type.String(), removed: Type.Boolean() }),
    async handle(call) {
      const { activationId, externalUserId } = call.request
      const { state } = await changeTo(call, activationId, { to: 'REMOVED', externalUserId })
      return { activationId, removed: state === 'REMOVED' }
    },
  })
