// activation/list: the activations of a user (cloud §15.2).
import { Type } from '@sinclair/typebox'
import { OptionalOrNull } from '../../../http/types.ts'
import { listRegistrationDetails } from '../../../storage/activation/search.ts'
import type { Dialect } from '../dialect.ts'
import { BANK_ROLES, referenceEndpoint, requireOwn } from '../endpoint.ts'
import { ACTIVATION, Given, NamesGiven, Optional, PAGE, placeOf, StateName, toActivation } from '../members.ts'

export const listActivations = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: 'activation/list',
    operationId: 'referenceListActivations',
    summary: 'The activations of a user, newest first',
    errors: [],
    roles: BANK_ROLES,
    request: Type.Object({
      userId: Given,
      applicationId: Optional,
      protocols: OptionalOrNull(NamesGiven),
      ...PAGE,
      activationStatuses: OptionalOrNull(Type.Array(StateName, { maxItems: 100 })),
    }),
    response: Type.Object({ userId: Type.String(), activations: Type.Array(Type.Object(ACTIVATION)) }),
    async handle(call) {
      const { request, parts, applicationId } = call
      const { userId, activationStatuses, protocols } = request
      requireOwn(call, request.applicationId)
      const isAsked = protocols === null || protocols === undefined || protocols.length === 0 || protocols.includes('powerauth')
      const search = { userIds: [userId], states: activationStatuses ?? [], flags: [], usedBefore: null, usedAfter: null }
      const at = new Date(parts.platform.now())
      const rows = isAsked ? await listRegistrationDetails(parts.db, { applicationId, ...search, at, ...placeOf(request) }) : []
      return { userId, activations: rows.map((row) => toActivation(row, applicationId)) }
    },
  })
