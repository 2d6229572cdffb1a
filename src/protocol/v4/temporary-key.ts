// Parses requests for a temporary key, a compact JWS, and composes the answers, a JWS with one or two signatures (v4 §4; RFC 7515).
import { hmacSha384 } from '../../crypto/hash.ts'
import { inThread } from '../../crypto/threads.ts'
import { parseBase64, toBase64Url } from '../../lib/base64.ts'
import { equalConstantTime, utf8 } from '../../lib/bytes.ts'
import type { SigningKeys, TemporaryKeyRequest } from '../protocol.ts'
import { composeTemporaryKeyClaims, parseTemporaryKeyJws, type TemporaryKeyTermsAnswer, toJwsPart } from '../wire/jws.ts'
import { type ActivationKeys, deriveKeyMacGetAppTempKey } from './key-schedule.ts'
import {
  ALGORITHMS,
  type AlgorithmV4,
  encapsulateSharedSecret,
  parseSharedSecretRequest,
  type SharedSecretResponse,
} from './shared-secret.ts'

/** The contents of the answer to a temporary key request (v4 §4.3). */
interface TemporaryKeyAnswer extends TemporaryKeyTermsAnswer {
  readonly sharedSecretResponse: SharedSecretResponse
}

/**
 * Parses a temporary key request. Undefined when the JWT does not parse, lacks a claim, has an `exp` that is not a number, or uses another algorithm
 * than HS384 (v4 §4.1).
 */
export function parseTemporaryKeyRequest(
  jwt: string,
): TemporaryKeyRequest<Pick<ActivationKeys, 'keyMacGetActTempKey'>> | undefined {
  const request = parseTemporaryKeyJws(jwt, 'HS384')
  const sharedSecretRequest = parseSharedSecretRequest(request?.claims['sharedSecretRequest'])
  if (!request || !sharedSecretRequest) return undefined
  const { algorithm } = sharedSecretRequest
  const { applicationKey, activationId, challenge } = request
  const expiresAt = request.claims['exp'] ?? undefined
  // RFC 7519 §4.1.4: `exp` is a NumericDate.
  if (expiresAt !== undefined && typeof expiresAt !== 'number') return undefined
  return {
    applicationKey,
    activationId,
    challenge,
    algorithm,
    expiresAt,
    verify: (applicationSecret, activationKeys) => {
      // The claim decides the scope: without this line, a key of the wrong scope would be tried.
      if ((activationId === undefined) !== (activationKeys === undefined)) return false
      const key = activationKeys ? activationKeys.keyMacGetActTempKey() : deriveRequestKey(applicationSecret)
      return key !== undefined && equalConstantTime(hmacSha384(key, request.covered), request.mac)
    },
    issue: async (terms, signingKeys) => {
      const shared = await encapsulateSharedSecret(sharedSecretRequest, terms.salt)
      if (!shared) return undefined
      const answer = { ...terms, applicationKey, activationId, challenge, sharedSecretResponse: shared.response }
      const jwt = await createTemporaryKeyAnswer(algorithm, answer, signingKeys)
      return { envelopeKey: shared.secret, jwt }
    },
  }
}

/** The HS384 key in application scope, 32 bytes, from the decoded application secret; undefined when the secret is not Base64 (v4 §4.1). */
export function deriveRequestKey(applicationSecret: string): Uint8Array | undefined {
  const secret = parseBase64(applicationSecret)
  return secret && deriveKeyMacGetAppTempKey(secret)
}

/** Composes the JSON text of a JWS in general serialization: ES384 first, then ML-DSA in the hybrid algorithms (v4 §4.3; RFC 7515 §7.2.1). */
export async function createTemporaryKeyAnswer(
  algorithm: AlgorithmV4,
  answer: TemporaryKeyAnswer,
  { ecdsa, mldsa }: SigningKeys,
): Promise<string> {
  const payload = toJwsPart(composeTemporaryKeyClaims(answer, { sharedSecretResponse: answer.sharedSecretResponse }))
  const sign = async (alg: string, compute: (covered: Uint8Array) => Promise<Uint8Array>) => {
    const header = toJwsPart({ alg })
    return { protected: header, signature: toBase64Url(await compute(utf8(`${header}.${payload}`))) }
  }
  const signatures = [sign('ES384', (covered) => inThread('ecdsaSignP384', ecdsa, covered, 'ieee-p1363'))]
  const postQuantum = ALGORITHMS.get(algorithm)?.signature
  if (postQuantum) {
    if (!mldsa) throw new TypeError(`${algorithm} needs a key of ${postQuantum}`)
    signatures.push(sign(postQuantum, (covered) => inThread('mlDsaSign', mldsa, covered)))
  }
  return JSON.stringify({ payload, signatures: await Promise.all(signatures) })
}
