// DELETE /admin/apps/{name}/versions/{id}: takes a version rule away (utility §4).
import { Ok } from '../../../../http/types.ts'
import { notFound } from '../../../../lib/errors.ts'
import { deleteVersionRule } from '../../../../storage/version-rules.ts'
import { auditedEndpoint } from '../../audited-endpoint.ts'
import { auditedVersionRules, OfRule } from './rule.ts'

export const ruleRemove = auditedEndpoint({
  method: 'DELETE',
  path: '/admin/apps/:name/versions/:id',
  operationId: 'removeVersionRule',
  summary: 'Removes a version rule',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfRule,
  response: Ok,
  async handle({ params: { name, id }, tx, parts, afterCommit }) {
    if (!(await deleteVersionRule(tx, name, id))) throw notFound(`version rule ${id} of ${name}`)
    afterCommit(() => parts.pinning.forget(name))
    return { status: 'OK' as const }
  },
  audited: auditedVersionRules,
})
