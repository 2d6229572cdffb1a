// Parses requests for a temporary key, and composes the answers. Both are compact JWS (v3 §7; RFC 7515).
import type { KeyObject } from 'node:crypto'
import { ecdsaSign } from '../../crypto/ecdsa.ts'
import { hmac } from '../../crypto/hash.ts'
import { exportPrivateKey, generateKeyPair } from '../../crypto/key.ts'
import { parseBase64, toBase64, toBase64Url } from '../../lib/base64.ts'
import { equalConstantTime, utf8 } from '../../lib/bytes.ts'
import type { TemporaryKeyRequest } from '../protocol.ts'
import { composeTemporaryKeyClaims, parseTemporaryKeyJws, type TemporaryKeyTermsAnswer, toJwsPart } from '../wire/jws.ts'
import { type ActivationKeys, type KeyTransport, kdfInternal } from './key-schedule.ts'

/** The contents of the answer to a temporary key request (v3 §7.2). */
interface TemporaryKeyAnswer extends TemporaryKeyTermsAnswer {
  /** Uncompressed point, 65 bytes. */
  readonly publicKey: Uint8Array
}

/** Parses a temporary key request. Undefined when the JWT does not parse, lacks a claim, or has another algorithm than HS256 (v3 §7.1). */
export function parseTemporaryKeyRequest(jwt: string): TemporaryKeyRequest<Pick<ActivationKeys, 'keyTransport'>> | undefined {
  const request = parseTemporaryKeyJws(jwt, 'HS256')
  if (!request) return undefined
  const { applicationKey, activationId, challenge } = request
  return {
    applicationKey,
    activationId,
    challenge,
    algorithm: 'EC_P256',
    verify: (applicationSecret, activationKeys) => {
      // The claim decides the scope: without this line, a key of the wrong scope would be tried.
      if ((activationId === undefined) !== (activationKeys === undefined)) return false
      const key = deriveRequestKey(applicationSecret, activationKeys?.keyTransport)
      return key !== undefined && equalConstantTime(hmac(key, request.covered), request.mac)
    },
    issue: async (terms, { ecdsa }) => {
      const pair = generateKeyPair('P-256')
      const answer = { ...terms, applicationKey, activationId, challenge, publicKey: pair.publicKey }
      const jwt = createTemporaryKeyAnswer(answer, ecdsa)
      return { envelopeKey: exportPrivateKey(pair.privateKey), jwt }
    },
  }
}

/** The HS256 key of a request, 16 bytes, from the decoded application secret; in activation scope derived with KEY_TRANSPORT (v3 §7.1). */
export function deriveRequestKey(applicationSecret: string, keyTransport: KeyTransport | undefined): Uint8Array | undefined {
  const secret = parseBase64(applicationSecret)
  return secret && keyTransport ? kdfInternal(keyTransport, secret) : secret
}

/** A compact JWS with ES256, signed with the master key or KEY_SERVER_PRIVATE (v3 §7.2). */
export function createTemporaryKeyAnswer(answer: TemporaryKeyAnswer, signingKey: KeyObject): string {
  const claims = composeTemporaryKeyClaims(answer, { publicKey: toBase64(answer.publicKey) })
  const covered = `${HEADER}.${toJwsPart(claims)}`
  return `${covered}.${toBase64Url(ecdsaSign(signingKey, utf8(covered), 'ieee-p1363'))}`
}

const HEADER = toJwsPart({ alg: 'ES256', typ: 'JWT' })
