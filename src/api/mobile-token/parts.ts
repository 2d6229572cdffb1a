// Names the parts that the mobile token API needs from the process.
import type { ChannelParts } from '../../channel/parts.ts'
import type { ActivationParts } from '../../domain/activation/created.ts'
import type { Window } from '../../domain/limits/window.ts'
import type { OidcLogins } from '../../domain/oidc/logins.ts'
import type { ReadTemplateTexts } from '../../domain/template/reader.ts'
import type { TokenReads } from '../../storage/token/reads.ts'

export interface MobileTokenParts extends ChannelParts, ActivationParts {
  readonly db: ChannelParts['db']
  readonly settings: ChannelParts['settings'] & ActivationParts['settings']
  readonly templateTexts: ReadTemplateTexts
  readonly tokenReads: TokenReads
  readonly oidcLogins: OidcLogins
  /** Counts the reads of one activation, and the codes that it asks for. */
  readonly mobileReads: Window
}
