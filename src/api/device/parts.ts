// What the device API needs from the process, and how its endpoints are declared.
import type { ActivationParts } from '../../domain/activation.ts'
import { declareEndpoint } from '../../channel/endpoint.ts'
import type { ChannelParts, ChannelSettings } from '../../channel/parts.ts'
import type { Protocol } from '../../protocol/protocol.ts'

export interface DeviceSettings extends ChannelSettings {
  readonly activationRemoveAllow1fa: boolean
  readonly temporaryKeyValiditySeconds: number
  readonly statusName: string
  readonly statusVersion: string
}

export interface DeviceParts extends ChannelParts, ActivationParts {
  readonly settings: DeviceSettings
  readonly protocol: Protocol
}

/** Declares an endpoint of the device API. */
export const deviceEndpoint = declareEndpoint<DeviceParts>()
