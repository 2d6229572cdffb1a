// activation/history: what became of an activation, and when (cloud §15.2).
import { Type } from '@sinclair/typebox'
import { listActivationHistory } from '../../../storage/activation/history.ts'
import type { Dialect } from '../dialect.ts'
import { BANK_ROLES, referenceEndpoint } from '../endpoint.ts'
import { ActivationId, Iso, toTime, TimeGiven } from '../members.ts'
import { findOwn } from '../../cloud/own-registration.ts'

export const activationHistory = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: 'activation/history',
    operationId: 'referenceActivationHistory',
    summary: 'What became of an activation, and when',
    description: `The newest ${ROWS_MAX} entries of the time that is asked for, oldest first.`,
    errors: ['REGISTRATION_NOT_FOUND'],
    roles: BANK_ROLES,
    request: Type.Object({ activationId: ActivationId, timestampFrom: TimeGiven, timestampTo: TimeGiven }),
    response: Type.Object({
      items: Type.Array(
        Type.Object({
          id: Type.Integer(),
          activationId: Type.String(),
          activationStatus: Type.String(),
          eventReason: Type.Optional(Type.String()),
          externalUserId: Type.Optional(Type.String()),
          timestampCreated: Iso,
        }),
      ),
    }),
    async handle(call) {
      const { activationId, timestampFrom, timestampTo } = call.request
      await findOwn(call, activationId)
      const range = { from: toTime(timestampFrom), to: toTime(timestampTo) }
      const rows = await listActivationHistory(call.parts.db, activationId, { limit: ROWS_MAX, ...range })
      return {
        items: rows.toReversed().map(({ sequence, toState, reason, externalUserId, occurredAt }) => ({
          id: Number(sequence),
          activationId,
          activationStatus: toState,
          ...(reason !== null && { eventReason: reason }),
          ...(externalUserId !== null && { externalUserId }),
          timestampCreated: occurredAt.toISOString(),
        })),
      }
    },
  })

const ROWS_MAX = 1000
