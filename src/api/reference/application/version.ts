// application/detail/version: whose an application key is (cloud §15.2).
import { Type } from '@sinclair/typebox'
import { findVersionOwners } from '../../../storage/application/applications.ts'
import type { Dialect } from '../dialect.ts'
import { BANK_ROLES, foreignApplication, referenceEndpoint } from '../endpoint.ts'
import { Given } from '../members.ts'

export const applicationOfKey = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: 'application/detail/version',
    operationId: 'referenceApplicationOfKey',
    summary: 'The application of an application key',
    errors: [],
    roles: BANK_ROLES,
    request: Type.Object({ applicationKey: Given }),
    response: Type.Object({ applicationId: Type.String() }),
    async handle({ request: { applicationKey }, parts, applicationId }) {
      const owner = (await findVersionOwners(parts.db, [applicationKey])).get(applicationKey)
      if (owner !== applicationId) throw foreignApplication()
      return { applicationId }
    },
  })
