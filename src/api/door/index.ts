// The doors: endpoints by which a bank has something checked that a phone sent to the bank's own endpoint (cloud §12). One file a door.
import type { AnyCloudEndpoint } from '../cloud/endpoint.ts'
import { certificateRequest } from './certificate-request.ts'
import { verificationCode } from './code.ts'
import { deviceKeys } from './device-keys.ts'
import { deviceSignature } from './device-signature.ts'
import type { Door } from './endpoint.ts'
import { encryptionOpen } from './open.ts'
import type { DoorParts } from './parts.ts'
import { encryptionSeal } from './seal.ts'
import { verificationToken } from './token.ts'

/** Doors that need more of the process than the cloud API. */
export const doors: readonly Door[] = [verificationCode, verificationToken, encryptionOpen, encryptionSeal]

/** Doors for signatures of device keys, which need no more. */
export const signatureDoors: readonly AnyCloudEndpoint[] = [deviceSignature, certificateRequest, deviceKeys]

/** All doors as endpoints of the cloud API, in the order of the description. */
export const bindDoors = (parts: DoorParts): readonly AnyCloudEndpoint[] => [
  ...doors.map((each) => each.bind(parts)),
  ...signatureDoors,
]
