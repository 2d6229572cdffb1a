// POST /admin/apps/{name}/versions: from which version on an app is recent enough (utility §4).
import { Type } from '@sinclair/typebox'
import { requireApplication } from '../../../../domain/application/application.ts'
import { PawlError } from '../../../../lib/errors.ts'
import { isUniqueViolation } from '../../../../storage/database.ts'
import { insertVersionRule } from '../../../../storage/version-rules.ts'
import { auditedEndpoint } from '../../audited-endpoint.ts'
import { auditedVersionRules, ruleMembers, OfApp, Rule, toRule } from './rule.ts'

export const ruleCreate = auditedEndpoint({
  method: 'POST',
  path: '/admin/apps/:name/versions',
  operationId: 'createVersionRule',
  summary: 'Adds a version rule',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfApp,
  body: Type.Object(ruleMembers),
  response: Rule,
  async handle({ params: { name }, body, tx, parts, afterCommit }) {
    await requireApplication(tx, name)
    const row = {
      application_id: name,
      platform: body.platform,
      major_os_version: body.majorOsVersion ?? null,
      suggested_version: body.suggestedVersion ?? null,
      required_version: body.requiredVersion ?? null,
      message_key: body.messageKey ?? null,
      created_at: new Date(parts.platform.now()),
    }
    const rule = await insertVersionRule(tx, row).catch((cause: unknown) => {
      if (!isUniqueViolation(cause)) throw cause
      const violations = [{ fieldName: 'majorOsVersion', hint: 'has a rule already' }]
      throw new PawlError('ADMINISTRATION_REFUSED', { detail: 'the rule exists', violations, cause })
    })
    afterCommit(() => parts.pinning.forget(name))
    return toRule(rule)
  },
  audited: auditedVersionRules,
})
