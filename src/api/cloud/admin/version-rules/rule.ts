// What the endpoints of version rules share: which versions of a mobile app are too old (utility §4).
import { Type } from '@sinclair/typebox'
import { named, OptionalOrNull } from '../../../../http/types.ts'
import type { MobilePlatform } from '../../../../storage/schema.ts'
import { listVersionRules, type VersionRuleRow } from '../../../../storage/version-rules.ts'
import type { Audited } from '../../audited-endpoint.ts'
import { Identifier } from '../../fields.ts'

const INT4_MAX = 2_147_483_647

/** Of the path of all rules. */
export const OfApp = Type.Object({ name: Identifier })

/** Of the path of one. */
export const OfRule = Type.Object({ name: Identifier, id: Type.Integer({ minimum: 1, maximum: INT4_MAX }) })

const Version = Type.String({
  pattern: '^\\d{1,9}\\.\\d{1,9}\\.\\d{1,9}([-+][0-9A-Za-z.+-]{1,200})?$',
  description: 'must be MAJOR.MINOR.PATCH',
  examples: ['1.4.0'],
})

/** What an administrator sets. */
export const ruleMembers = {
  platform: Type.Unsafe<MobilePlatform>(Type.String({ enum: ['ANDROID', 'IOS'] })),
  /** Without one the rule holds where no other does. */
  majorOsVersion: OptionalOrNull(Type.Integer({ minimum: 0, maximum: 999_999_999 })),
  /** Older apps are told to update. */
  suggestedVersion: OptionalOrNull(Version),
  /** Older apps must update. */
  requiredVersion: OptionalOrNull(Version),
  messageKey: OptionalOrNull(Identifier),
}

/** The answer. */
export const Rule = named('VersionRule', Type.Object({ id: Type.Integer(), ...ruleMembers }))

/** How changes of the rules of an app are recorded. */
export const auditedVersionRules: Audited<unknown, unknown, { readonly name: string }, unknown> = {
  target: ({ params: { name } }) => `version rules of ${name}`,
  view: async ({ params: { name }, tx }) => (await listVersionRules(tx, name)).map(toRule),
}

/** Members without a value are left out. */
export const toRule = (rule: VersionRuleRow) => ({
  id: rule.id,
  platform: rule.platform,
  ...(rule.majorOsVersion !== null && { majorOsVersion: rule.majorOsVersion }),
  ...(rule.suggestedVersion !== null && { suggestedVersion: rule.suggestedVersion }),
  ...(rule.requiredVersion !== null && { requiredVersion: rule.requiredVersion }),
  ...(rule.messageKey !== null && { messageKey: rule.messageKey }),
})
