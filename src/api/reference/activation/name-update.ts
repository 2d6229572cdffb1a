// activation/name/update: renames an activation (cloud §15.2).
import { Type } from '@sinclair/typebox'
import { NotBlank } from '../../../http/types.ts'
import { renameActivation } from '../../../storage/activation/change.ts'
import type { Dialect } from '../dialect.ts'
import { BANK_ROLES, referenceEndpoint } from '../endpoint.ts'
import { ActivationId, Optional, StateName } from '../members.ts'
import { findOwn, refuseState } from '../../cloud/own-registration.ts'

export const updateName = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: 'activation/name/update',
    operationId: 'referenceUpdateName',
    summary: 'Renames an activation',
    errors: ['REGISTRATION_NOT_FOUND', 'REGISTRATION_CHANGE_REFUSED'],
    roles: BANK_ROLES,
    request: Type.Object({ activationId: ActivationId, activationName: NotBlank(255), externalUserId: Optional }),
    response: Type.Object({ activationId: Type.String(), activationName: Type.String(), activationStatus: StateName }),
    async handle(call) {
      const { parts, request, caller } = call
      const { activationId, activationName, externalUserId = null } = request
      const { state } = await findOwn(call, activationId)
      const by = { username: caller.username, externalUserId }
      const isRenamed = await renameActivation(parts.db, activationId, activationName, new Date(parts.platform.now()), by)
      if (!isRenamed) refuseState(state)
      return { activationId, activationName, activationStatus: state }
    },
  })
