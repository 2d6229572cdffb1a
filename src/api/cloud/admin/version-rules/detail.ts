// GET /admin/apps/{name}/versions/{id}: one version rule (utility §4).
import { notFound } from '../../../../lib/errors.ts'
import { findVersionRule } from '../../../../storage/version-rules.ts'
import { cloudEndpoint } from '../../endpoint.ts'
import { OfRule, Rule, toRule } from './rule.ts'

export const ruleDetail = cloudEndpoint({
  method: 'GET',
  path: '/admin/apps/:name/versions/:id',
  operationId: 'readVersionRule',
  summary: 'Reads a version rule',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin', 'read-only'],
  params: OfRule,
  response: Rule,
  async handle({ params: { name, id }, parts }) {
    const rule = await findVersionRule(parts.db, name, id)
    if (rule === undefined) throw notFound(`version rule ${id} of ${name}`)
    return toRule(rule)
  },
})
