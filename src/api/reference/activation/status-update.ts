// activation/status/update: several activations become the same, all or none (cloud §15.2).
import { Type } from '@sinclair/typebox'
import { holdChanges } from '../../../log/held-events.ts'
import { inTransaction } from '../../../storage/database/database.ts'
import type { Dialect } from '../dialect.ts'
import { BANK_ROLES, referenceEndpoint } from '../endpoint.ts'
import { ActivationId } from '../members.ts'
import { changeTo, type Target } from './change.ts'

export const updateStatuses = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: 'activation/status/update',
    operationId: 'referenceUpdateStatuses',
    summary: 'Activates, blocks or removes several activations, all or none',
    errors: ['REGISTRATION_NOT_FOUND', 'REGISTRATION_CHANGE_REFUSED'],
    roles: BANK_ROLES,
    request: Type.Object({
      activationIds: Type.Array(ActivationId, { minItems: 1, maxItems: 100 }),
      activationStatus: Type.Unsafe<Target>(Type.String({ enum: ['ACTIVE', 'BLOCKED', 'REMOVED'] })),
    }),
    response: Type.Object({ updated: Type.Boolean() }),
    async handle(call) {
      const { activationIds, activationStatus: to } = call.request
      const { events, tell } = holdChanges(call.parts.events)
      const within = { ...call, parts: { ...call.parts, events } }
      await inTransaction(call.parts.db, async (tx) => {
        // In one order, so that two requests do not wait for each other.
        for (const activationId of [...new Set(activationIds)].toSorted()) await changeTo(within, activationId, { to }, tx)
      })
      tell()
      return { updated: true }
    },
  })
