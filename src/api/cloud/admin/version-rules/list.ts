// GET /admin/apps/{name}/versions: the version rules of an app (utility §4).
import { Type } from '@sinclair/typebox'
import { requireApplication } from '../../../../domain/application/application.ts'
import { listVersionRules } from '../../../../storage/version-rules.ts'
import { cloudEndpoint } from '../../endpoint.ts'
import { OfApp, Rule, toRule } from './rule.ts'

export const rulesList = cloudEndpoint({
  method: 'GET',
  path: '/admin/apps/:name/versions',
  operationId: 'listVersionRules',
  summary: 'Lists version rules of an app',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin', 'read-only'],
  params: OfApp,
  response: Type.Object({ applicationVersions: Type.Array(Rule) }),
  async handle({ params: { name }, parts }) {
    await requireApplication(parts.db, name)
    return { applicationVersions: (await listVersionRules(parts.db, name)).map(toRule) }
  },
})
