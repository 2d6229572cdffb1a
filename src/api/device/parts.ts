// Names the parts that the device API needs from the process.
import type { ActivationParts } from '../../domain/activation/created.ts'
import type { Window } from '../../domain/limits/window.ts'
import type { OidcLogins } from '../../domain/oidc/logins.ts'
import type { CustomObjectMemory } from '../../domain/application/custom-object.ts'
import type { HttpProvider } from '../../domain/user-info/http-provider.ts'
import type { ChannelParts, ChannelSettings } from '../../channel/parts.ts'
import type { Decoy } from '../../channel/secrets.ts'
import type { StatusReader } from '../../storage/activation/find.ts'
import type { ActivationKeys as ActivationKeysV3, ProtocolV3 } from '../../protocol/v3/index.ts'
import type { ActivationKeys as ActivationKeysV4, ProtocolV4 } from '../../protocol/v4/index.ts'
import type { FairQueue } from '../../lib/fair-queue.ts'
import type { Pool } from '../../storage/database/database.ts'

export interface DeviceParts extends ChannelParts, ActivationParts {
  readonly db: Pool
  /** Undefined if no activation provider is configured. */
  readonly activationProvider: HttpProvider | undefined
  readonly oidcLogins: OidcLogins
  /** Counts the codes of one OpenID provider that one source redeems. */
  readonly oidcRedemptions: Window
  /** Undefined if no server for claims is configured. */
  readonly userInfoProvider: HttpProvider | undefined
  readonly readStatus: StatusReader
  readonly customObjects: CustomObjectMemory
  readonly settings: ChannelSettings &
    ActivationParts['settings'] & {
      readonly activationRemoveAllow1fa: boolean
      readonly temporaryKeyValiditySeconds: number
      readonly statusName: string
      readonly statusVersion: string
    }
  /** Counts the temporary keys of one source without an activation, and those of one activation at a source. */
  readonly temporaryKeys: Window
  /** Makes temporary keys. Sources, and activations at a source, take turns. */
  readonly temporaryKeyTurns: FairQueue
  readonly protocols: { readonly v3: ProtocolV3; readonly v4: ProtocolV4 }
  readonly decoys: { readonly v3: Decoy<ActivationKeysV3>; readonly v4: Decoy<ActivationKeysV4> }
}
