// Names what the mobile utility API needs from the process; context.ts satisfies it.
import type { Pinning } from '../../domain/pinning/pinning.ts'
import type { Events } from '../../log/events.ts'
import type { Platform } from '../../lib/platform.ts'

export interface UtilityParts {
  readonly platform: Platform
  readonly events: Events
  readonly pinning: Pinning
}
