// Reads private keys that sign JWTs, in the form that a bank configures: PKCS#8 in PEM.
import { createPrivateKey, type KeyObject } from 'node:crypto'

/** The algorithm of a key, as Web Crypto names it. */
type Algorithm = Parameters<KeyObject['toCryptoKey']>[0]

/**
 * Reads a private key in PEM. Undefined for a text that is no key, and for kinds other than RSA of 2048 bits or more, P-256, P-384 and Ed25519.
 */
export function readSigningKey(pem: string): CryptoKey | undefined {
  try {
    const key = createPrivateKey({ key: pem, format: 'pem', type: 'pkcs8' })
    const algorithm = algorithmOf(key)
    return algorithm === undefined ? undefined : key.toCryptoKey(algorithm, false, ['sign'])
  } catch {
    return undefined
  }
}

function algorithmOf({ asymmetricKeyType, asymmetricKeyDetails = {} }: KeyObject): Algorithm | undefined {
  if (asymmetricKeyType === 'rsa' && (asymmetricKeyDetails.modulusLength ?? 0) >= RSA_BITS_MIN)
    return { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }
  if (asymmetricKeyType === 'ed25519') return { name: 'Ed25519' }
  const namedCurve = asymmetricKeyType === 'ec' ? CURVES[asymmetricKeyDetails.namedCurve ?? ''] : undefined
  return namedCurve === undefined ? undefined : { name: 'ECDSA', namedCurve }
}

const RSA_BITS_MIN = 2048
const CURVES: Readonly<Record<string, string>> = { prime256v1: 'P-256', secp384r1: 'P-384' }
