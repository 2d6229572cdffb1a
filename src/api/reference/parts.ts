// What the back-end API of the reference needs of the process; context.ts satisfies it.
import type { DoorParts } from '../door/parts.ts'

export interface ReferenceParts extends DoorParts {
  readonly settings: DoorParts['settings'] & { readonly statusName: string; readonly statusVersion: string }
}
