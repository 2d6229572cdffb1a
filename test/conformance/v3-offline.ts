// Vectors of offline signatures and TOTP (v3 §15).
import { expect } from 'vitest'
import { ecdsaVerify } from '../../src/crypto/ecdsa.ts'
import { publicKeyFromPoint } from '../../src/crypto/key.ts'
import { parseBase64 } from '../../src/lib/base64.ts'
import { utf8 } from '../../src/lib/bytes.ts'
import { computeTotpCandidates, totp, totpStep } from '../../src/domain/operation/proximity.ts'
import { createPersonalizedPayload, verifyOfflineOtp } from '../../src/protocol/v3/offline.ts'
import { composeOfflineHead, composeOfflineSignedData, parseOfflineOtp } from '../../src/protocol/wire/offline.ts'
import { readActivationKeys } from './v3-authentication.ts'
import { bytes, flag, type Handler, has, integer, type Members, optional, text, toText } from './vector.ts'
import { privateKeyFromScalar } from '../helpers/crypto.ts'

const totpOfTime: Handler = ({ input }) => ({
  otp: totp(bytes(input, 'seed'), totpStep(integer(input, 'time'), integer(input, 'stepLength')), integer(input, 'digits')),
})

const offlinePayload: Handler = ({ input }) => {
  const publicKey = publicKeyFromPoint('P-256', bytes(input, 'verificationKey'))
  if (!publicKey) throw new Error('verificationKey is not valid')
  const password = has(input, 'totpSeed') ? computeTotpCandidates(readProximity(input), integer(input, 'time'), 0)[0] : undefined
  const payload = {
    data: text(input, 'data'),
    totp: password,
    nonceBase64: text(input, 'nonce'),
  }
  const isPersonalized = flag(input, 'personalized')
  const signedText = composeOfflineHead(payload, isPersonalized ? '1' : '0')
  const verify = (candidate: string): boolean => {
    const signature = candidate.startsWith(signedText) ? parseBase64(candidate.slice(signedText.length)) : undefined
    return signature !== undefined && ecdsaVerify(publicKey, utf8(signedText), signature)
  }
  if (has(input, 'signingKey')) {
    const ecdsa = privateKeyFromScalar('P-256', bytes(input, 'signingKey'))
    if (isPersonalized) expect(verify(createPersonalizedPayload(payload, { openServerKeys: () => ({ ecdsa }) }) ?? '')).toBe(true)
  }
  return { valid: verify(text(input, 'offlineDataToVerify')), signedText, totp: password }
}

const offlineVerify: Handler = ({ input }) => {
  const componentLength = integer(input, 'componentLength')
  const given = text(input, 'signature')
  const otp = componentLength === 8 ? parseOfflineOtp(given) : given
  const totps = has(input, 'totpSeed')
    ? computeTotpCandidates(readProximity(input), integer(input, 'now'), optional(integer, input, 'stepCount') ?? 1)
    : undefined
  const request = {
    otp: otp ?? '',
    resourceId: '/operation/authorize/offline',
    body: Buffer.from(`${text(input, 'operationId')}&${text(input, 'operationData')}`),
    nonceBase64: text(input, 'nonce'),
    componentLength,
    isBiometryAllowed: flag(input, 'allowBiometry'),
    totps,
  }
  const verify = (candidates: readonly string[] | undefined) =>
    verifyOfflineOtp(readActivationKeys(input), bytes(input, 'ctrData'), { ...request, totps: candidates }, 20).move
  const match = verify(totps)
  const used = totps?.find((candidate) => verify([candidate]) !== undefined)
  return {
    valid: match !== undefined,
    signedData: match && toText(composeOfflineSignedData(request, used)),
    usedSignatureType: match?.factors.toLowerCase(),
    ctrAfter: integer(input, 'ctr') + (match?.steps ?? 0),
    ctrDataAfter: match?.ctrData ?? bytes(input, 'ctrData'),
  }
}

const readProximity = (input: Members) => ({
  seed: bytes(input, 'totpSeed'),
  stepSeconds: optional(integer, input, 'stepLength') ?? 30,
  digits: optional(integer, input, 'digits') ?? 8,
})

export const offlineFamilies: Readonly<Record<string, Handler>> = {
  totp: totpOfTime,
  'public-totp': totpOfTime,
  'offline-payload': offlinePayload,
  'offline-verify': offlineVerify,
}
