// Lists the doors: endpoints that verify for a bank what a phone sent to the bank's own endpoint (cloud §12).
import type { AnyCloudEndpoint } from '../cloud/endpoint.ts'
import { certificateRequest } from './certificate-request.ts'
import { verificationCode } from './code.ts'
import { deviceKeys } from './device-keys.ts'
import { deviceSignature } from './device-signature.ts'
import { offlineChallenges } from './offline-challenges.ts'
import { offlineVerification } from './offline-verification.ts'
import { encryptionOpen } from './open.ts'
import { encryptionSeal } from './seal.ts'
import { verificationToken } from './token.ts'

/** All doors, in the order of the description. */
export const doors: readonly AnyCloudEndpoint[] = [
  verificationCode,
  verificationToken,
  encryptionOpen,
  encryptionSeal,
  deviceSignature,
  certificateRequest,
  deviceKeys,
  offlineChallenges,
  offlineVerification,
]
