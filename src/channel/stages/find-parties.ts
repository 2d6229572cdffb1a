// Who sent a request: the version and the activation that its headers name, as they are stored.
import { inStage } from '../../lib/trace.ts'
import type { ReadParties } from '../../storage/request/parties.ts'
import { findUpgradedParties } from '../../storage/request/upgrade.ts'
import type { ChannelParts } from '../parts.ts'

/** Names of a header or of an envelope. */
interface NamedParties {
  readonly applicationKey: string
  /** Undefined where only an application is named. */
  readonly activationId?: string | undefined
}

/** One read, whatever there is: version and activation, either may be missing. `isUpgradeSeen`: as a pending upgrade makes them (v4 §10.3). */
export async function findParties(
  { db, authenticationStore, platform }: Pick<ChannelParts, 'db' | 'authenticationStore' | 'platform'>,
  { applicationKey, activationId = '' }: NamedParties,
  { isUpgradeSeen }: { readonly isUpgradeSeen: boolean } = { isUpgradeSeen: false },
): Promise<ReadParties> {
  const names = { applicationKey, activationId, at: new Date(platform.now()) }
  return await inStage('find parties', () => (isUpgradeSeen ? findUpgradedParties(db, names) : authenticationStore.find(names)))
}
