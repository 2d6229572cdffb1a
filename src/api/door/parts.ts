// What the doors need of the process; context.ts satisfies it.
import type { KeyObject } from 'node:crypto'
import type { ChannelParts, ChannelSettings } from '../../channel/parts.ts'
import type { Protocol } from '../../protocol/protocol.ts'
import type { CloudParts } from '../cloud/parts.ts'

export interface DoorParts extends ChannelParts, CloudParts {
  readonly protocols: { readonly v3: Protocol; readonly v4: Protocol }
  readonly installationKeys: CloudParts['installationKeys'] & { readonly codeLookup: KeyObject; readonly doorSeal: KeyObject }
  readonly settings: ChannelSettings &
    CloudParts['settings'] & {
      readonly doorIdempotencySeconds: number
      readonly sealTicketSeconds: number
    }
}
