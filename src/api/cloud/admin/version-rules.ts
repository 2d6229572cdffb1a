// /admin/apps/{name}/versions: manages rules that say which versions of a mobile app are too old (utility §4).
import { Type } from '@sinclair/typebox'
import { requireApplication } from '../../../domain/application/application.ts'
import { named, OneOf, OptionalOrNull } from '../../../http/types.ts'
import { notFound, PawlError } from '../../../lib/errors.ts'
import { isUniqueViolation } from '../../../storage/database/database.ts'
import type { MobilePlatform } from '../../../storage/database/schema.ts'
import {
  deleteVersionRule,
  findVersionRule,
  insertVersionRule,
  listVersionRules,
  type VersionRuleRow,
} from '../../../storage/pinning/version-rules.ts'
import { type Audited, auditedEndpoint } from '../audited-endpoint.ts'
import { adminRead } from '../endpoint.ts'
import { Identifier, OfName } from '../fields.ts'

const INT4_MAX = 2_147_483_647

const OfRule = Type.Object({ name: Identifier, id: Type.Integer({ minimum: 1, maximum: INT4_MAX, description: 'of the rule' }) })

const Version = Type.String({
  pattern: '^\\d{1,9}\\.\\d{1,9}\\.\\d{1,9}([-+][0-9A-Za-z.+-]{1,200})?$',
  description: 'must be MAJOR.MINOR.PATCH',
  examples: ['1.4.0'],
})

const ruleMembers = {
  platform: OneOf<MobilePlatform>(['ANDROID', 'IOS']),
  majorOsVersion: OptionalOrNull(
    Type.Integer({
      minimum: 0,
      maximum: 999_999_999,
      description: 'of the system of the phone; a rule without it holds where no other does',
    }),
  ),
  /** Users of older apps are asked to update. */
  suggestedVersion: OptionalOrNull(Version),
  /** Users of older apps must update. */
  requiredVersion: OptionalOrNull(Version),
  messageKey: OptionalOrNull(Identifier),
}

const Rule = named('VersionRule', Type.Object({ id: Type.Integer({ description: 'counts up' }), ...ruleMembers }))

const auditedVersionRules: Audited<{ readonly name: string }> = {
  target: ({ params: { name } }) => `version rules of ${name}`,
  view: async ({ params: { name }, parts }) => (await listVersionRules(parts.db, name)).map(toRule),
}

const toRule = (rule: VersionRuleRow) => ({
  id: rule.id,
  platform: rule.platform,
  ...(rule.majorOsVersion !== null && { majorOsVersion: rule.majorOsVersion }),
  ...(rule.suggestedVersion !== null && { suggestedVersion: rule.suggestedVersion }),
  ...(rule.requiredVersion !== null && { requiredVersion: rule.requiredVersion }),
  ...(rule.messageKey !== null && { messageKey: rule.messageKey }),
})

const rulesList = adminRead({
  route: 'GET /admin/apps/:name/versions',
  operationId: 'listVersionRules',
  summary: 'Lists version rules of an app',
  errors: ['ADMINISTRATION_REFUSED'],
  params: OfName,
  response: Type.Object({ applicationVersions: Type.Array(Rule) }),
  async handle({ params: { name }, parts }) {
    await requireApplication(parts.db, name)
    return { applicationVersions: (await listVersionRules(parts.db, name)).map(toRule) }
  },
})

const ruleCreate = auditedEndpoint({
  route: 'POST /admin/apps/:name/versions',
  operationId: 'createVersionRule',
  summary: 'Adds a version rule',
  description: 'Users of apps older than `suggestedVersion` are told to update; those of apps older than `requiredVersion` must.',
  params: OfName,
  body: Type.Object(ruleMembers),
  response: Rule,
  async handle({ params: { name }, body, parts, afterCommit }) {
    await requireApplication(parts.db, name)
    const row = {
      application_id: name,
      platform: body.platform,
      major_os_version: body.majorOsVersion ?? null,
      suggested_version: body.suggestedVersion ?? null,
      required_version: body.requiredVersion ?? null,
      message_key: body.messageKey ?? null,
      created_at: new Date(parts.platform.now()),
    }
    const rule = await insertVersionRule(parts.db, row).catch((cause: unknown) => {
      if (!isUniqueViolation(cause)) throw cause
      const violations = [{ fieldName: 'majorOsVersion', hint: 'has a rule already' }]
      throw new PawlError('ADMINISTRATION_REFUSED', { detail: 'the rule exists', violations, cause })
    })
    afterCommit(() => parts.pinning.forget(name))
    return toRule(rule)
  },
  audited: auditedVersionRules,
})

const ruleDetail = adminRead({
  route: 'GET /admin/apps/:name/versions/:id',
  operationId: 'readVersionRule',
  summary: 'Reads a version rule',
  errors: ['ADMINISTRATION_REFUSED'],
  params: OfRule,
  response: Rule,
  async handle({ params: { name, id }, parts }) {
    const rule = await findVersionRule(parts.db, name, id)
    if (rule === undefined) throw notFound('version rule', `${id} of ${name}`)
    return toRule(rule)
  },
})

const ruleRemove = auditedEndpoint({
  route: 'DELETE /admin/apps/:name/versions/:id',
  operationId: 'removeVersionRule',
  summary: 'Removes a version rule',
  params: OfRule,
  async handle({ params: { name, id }, parts, afterCommit }) {
    if (!(await deleteVersionRule(parts.db, name, id))) throw notFound('version rule', `${id} of ${name}`)
    afterCommit(() => parts.pinning.forget(name))
  },
  audited: auditedVersionRules,
})

export const versionRuleEndpoints = [rulesList, ruleCreate, ruleDetail, ruleRemove]
