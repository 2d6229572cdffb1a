// activation/lookup: the activations of several users (cloud §15.2).
import { Type } from '@sinclair/typebox'
import { OptionalOrNull } from '../../../http/types.ts'
import { listRegistrationDetails } from '../../../storage/activation/search.ts'
import { refuse } from '../../door/members.ts'
import type { Dialect } from '../dialect.ts'
import { BANK_ROLES, foreignApplication, referenceEndpoint } from '../endpoint.ts'
import { ACTIVATION, NamesGiven, toTime, StateName, TimeGiven, toActivation } from '../members.ts'

export const lookupActivations = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: 'activation/lookup',
    operationId: 'referenceLookupActivations',
    summary: 'The activations of several users, newest first',
    description: `\`ERR0024\` where there are more than ${ROWS_MAX}.`,
    errors: [],
    roles: BANK_ROLES,
    request: Type.Object({
      userIds: Type.Array(NamesGiven.items, { minItems: 1, maxItems: 1000 }),
      applicationIds: OptionalOrNull(NamesGiven),
      timestampLastUsedBefore: TimeGiven,
      timestampLastUsedAfter: TimeGiven,
      activationStatus: OptionalOrNull(StateName),
      activationFlags: OptionalOrNull(NamesGiven),
    }),
    response: Type.Object({ activations: Type.Array(Type.Object(ACTIVATION)) }),
    async handle({ request, parts, applicationId }) {
      const { userIds, activationStatus, activationFlags } = request
      const applicationIds = request.applicationIds ?? []
      if (applicationIds.length > 0 && !applicationIds.includes(applicationId)) throw foreignApplication()
      const rows = await listRegistrationDetails(parts.db, {
        applicationId,
        userIds,
        states: activationStatus ? [activationStatus] : [],
        flags: activationFlags ?? [],
        usedBefore: toTime(request.timestampLastUsedBefore),
        usedAfter: toTime(request.timestampLastUsedAfter),
        at: new Date(parts.platform.now()),
        limit: ROWS_MAX + 1,
        offset: 0,
      })
      // A list that is cut without a word would be taken for the whole.
      if (rows.length > ROWS_MAX) throw refuse('userIds', `must be of users with at most ${ROWS_MAX} activations`)
      return { activations: rows.map((row) => toActivation(row, applicationId)) }
    },
  })

const ROWS_MAX = 1000
