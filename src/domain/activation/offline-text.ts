// A text that names no activation, signed for all phones of an application (v3 §15.1, v4 §11.2).
import { findSigningMasterKeys, qrSignatureCurveOf } from '../application/master-keys.ts'
import type { KeyParts } from '../secrets/secrets.ts'
import { signActivationCode, signActivationCodeP384 } from './code.ts'

/** The text with its signature behind it, by the key that signs activation codes. `head` ends with the line of the key indicator. */
export async function signOfflineText(
  parts: KeyParts,
  { applicationId, isProtocol3Admitted }: { readonly applicationId: string; readonly isProtocol3Admitted: boolean },
  head: string,
): Promise<string> {
  const isP256 = qrSignatureCurveOf({ isProtocol3Admitted }) === 'P-256'
  const { ecdsa } = await findSigningMasterKeys(parts, applicationId, isP256 ? 'EC_P256' : 'EC_P384')
  return `${head}${await (isP256 ? signActivationCode : signActivationCodeP384)(head, ecdsa)}`
}
