// /admin/apps/{name}/versions and /admin/texts: which versions of a mobile app are too old, and what its users are told. Spec:
// utility §4.
import { Type } from '@sinclair/typebox'
import { requireApplication } from '../../../domain/application/application.ts'
import { Absent, Ok } from '../../../http/types.ts'
import { notFound, PawlError } from '../../../lib/errors.ts'
import { isUniqueViolation } from '../../../storage/database.ts'
import type { MobilePlatform } from '../../../storage/schema.ts'
import {
  deleteVersionRule,
  deleteVersionText,
  findVersionRule,
  findVersionText,
  insertVersionRule,
  listVersionRules,
  listVersionTexts,
  storeVersionText,
  type VersionRuleRow,
} from '../../../storage/version-rules.ts'
import { type Audited, cloudEndpoint } from '../endpoint.ts'
import { Identifier } from '../fields.ts'

const INT4_MAX = 2_147_483_647

const OfApp = Type.Object({ name: Identifier })
const OfRule = Type.Object({ name: Identifier, id: Type.Integer({ minimum: 1, maximum: INT4_MAX }) })
const OfText = Type.Object({
  key: Identifier,
  language: Type.String({ pattern: '^[a-z]{2}$', description: 'must be two letters', examples: ['en'] }),
})
const Version = Type.String({
  pattern: '^\\d{1,9}\\.\\d{1,9}\\.\\d{1,9}([-+][0-9A-Za-z.+-]{1,200})?$',
  description: 'must be MAJOR.MINOR.PATCH',
  examples: ['1.4.0'],
})

const members = {
  platform: Type.Unsafe<MobilePlatform>(Type.String({ enum: ['ANDROID', 'IOS'] })),
  /** Without one the rule holds where no other does. */
  majorOsVersion: Absent(Type.Integer({ minimum: 0, maximum: 999_999_999 })),
  /** Older apps are told to update. */
  suggestedVersion: Absent(Version),
  /** Older apps must update. */
  requiredVersion: Absent(Version),
  messageKey: Absent(Identifier),
}
const Rule = Type.Object({ id: Type.Integer(), ...members })
const Text = Type.Object({ messageKey: Type.String(), language: Type.String(), text: Type.String() })

const auditedRules: Audited<unknown, unknown, { readonly name: string }, unknown> = {
  target: ({ params: { name } }) => `version rules of ${name}`,
  view: async ({ params: { name }, parts }) => (await listVersionRules(parts.db, name)).map(toRule),
}

export const rulesList = cloudEndpoint({
  method: 'GET',
  path: '/admin/apps/:name/versions',
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

export const ruleCreate = cloudEndpoint({
  method: 'POST',
  path: '/admin/apps/:name/versions',
  summary: 'Adds a version rule',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfApp,
  body: Type.Object(members),
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
  audited: auditedRules,
})

export const ruleDetail = cloudEndpoint({
  method: 'GET',
  path: '/admin/apps/:name/versions/:id',
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

export const ruleRemove = cloudEndpoint({
  method: 'DELETE',
  path: '/admin/apps/:name/versions/:id',
  summary: 'Removes a version rule',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfRule,
  response: Ok,
  async handle({ params: { name, id }, parts, afterCommit }) {
    if (!(await deleteVersionRule(parts.db, name, id))) throw notFound(`version rule ${id} of ${name}`)
    afterCommit(() => parts.pinning.forget(name))
    return { status: 'OK' as const }
  },
  audited: auditedRules,
})

export const textsList = cloudEndpoint({
  method: 'GET',
  path: '/admin/texts',
  summary: 'Lists texts of version rules',
  errors: [],
  roles: ['admin', 'read-only'],
  response: Type.Object({ texts: Type.Array(Text) }),
  async handle({ parts }) {
    return { texts: await listVersionTexts(parts.db) }
  },
})

export const textStore = cloudEndpoint({
  method: 'POST',
  path: '/admin/texts',
  summary: 'Stores a text of version rules',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  body: Type.Object({
    messageKey: Identifier,
    language: OfText.properties.language,
    text: Type.String({ pattern: '^(?=[^]*\\S)[^\\u0000]{1,4096}$', description: 'must be 1 to 4096 characters, not blank' }),
  }),
  response: Text,
  async handle({ body, parts, afterCommit }) {
    await storeVersionText(parts.db, body)
    afterCommit(() => parts.pinning.forget())
    return body
  },
  audited: {
    target: ({ body: { messageKey, language } }) => `text ${messageKey} in ${language}`,
    view: ({ body: { messageKey, language }, parts }) => findVersionText(parts.db, messageKey, language),
  },
})

export const textDetail = cloudEndpoint({
  method: 'GET',
  path: '/admin/texts/:key/:language',
  summary: 'Reads a text of version rules',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin', 'read-only'],
  params: OfText,
  response: Text,
  async handle({ params: { key, language }, parts }) {
    const text = await findVersionText(parts.db, key, language)
    if (text === undefined) throw notFound(`text ${key} in ${language}`)
    return text
  },
})

export const textRemove = cloudEndpoint({
  method: 'DELETE',
  path: '/admin/texts/:key/:language',
  summary: 'Removes a text of version rules',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfText,
  response: Ok,
  async handle({ params: { key, language }, parts, afterCommit }) {
    if (!(await deleteVersionText(parts.db, key, language))) throw notFound(`text ${key} in ${language}`)
    afterCommit(() => parts.pinning.forget())
    return { status: 'OK' as const }
  },
  audited: {
    target: ({ params: { key, language } }) => `text ${key} in ${language}`,
    view: ({ params: { key, language }, parts }) => findVersionText(parts.db, key, language),
  },
})

/** Members without a value are left out. */
const toRule = (rule: VersionRuleRow) => ({
  id: rule.id,
  platform: rule.platform,
  ...(rule.majorOsVersion !== null && { majorOsVersion: rule.majorOsVersion }),
  ...(rule.suggestedVersion !== null && { suggestedVersion: rule.suggestedVersion }),
  ...(rule.requiredVersion !== null && { requiredVersion: rule.requiredVersion }),
  ...(rule.messageKey !== null && { messageKey: rule.messageKey }),
})
