// The doors: endpoints by which a bank has something checked that a phone sent to the bank's own endpoint (cloud §12). One file a door.
import type { AnyCloudEndpoint } from '../cloud/endpoint.ts'
import { verificationCode } from './code.ts'
import type { Door } from './endpoint.ts'
import { encryptionOpen } from './open.ts'
import type { DoorParts } from './parts.ts'
import { encryptionSeal } from './seal.ts'
import { verificationToken } from './token.ts'

export const doors: readonly Door[] = [verificationCode, verificationToken, encryptionOpen, encryptionSeal]

/** The doors as endpoints of the cloud API. */
export const bindDoors = (parts: DoorParts): readonly AnyCloudEndpoint[] => doors.map((each) => each.bind(parts))
