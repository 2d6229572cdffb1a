// What an authentication code covers, online and offline (v3 §10.1, §15.2; v4 §7.1, §11.1).
import { toBase64 } from '../../lib/base64.ts'
import { utf8 } from '../../lib/bytes.ts'
import type { OfflineOtp, SignedRequest } from '../protocol.ts'

/** The bytes a code covers: request data, `&`, application secret as text (v3 §10.1, v4 §7.1). */
export const composeSignedData = ({ applicationSecret, ...request }: SignedRequest): Uint8Array =>
  utf8(`${composeRequestData({ ...request, nonceBase64: toBase64(request.nonce) })}&${applicationSecret}`)

/** METHOD & b64(resource id) & b64(nonce) & b64(body); empty parts stay (v3 §10.1, v4 §7.1). */
export const composeRequestData = (request: {
  method: string
  resourceId: string
  nonceBase64: string
  body: Uint8Array
}): string =>
  [request.method.toUpperCase(), toBase64(utf8(request.resourceId)), request.nonceBase64, toBase64(request.body)].join('&')

/**
 * What an offline one-time password covers, with one candidate of the proximity check; the literal `offline` takes the place of
 * the application secret (v3 §15.2, v4 §11.1).
 */
export function composeOfflineSignedData(
  { operationId, operationData, nonceBase64 }: Pick<OfflineOtp, 'operationId' | 'operationData' | 'nonceBase64'>,
  totp: string | undefined,
): Uint8Array {
  const body = utf8([operationId, operationData, ...(totp === undefined ? [] : [totp])].join('&'))
  const requestData = composeRequestData({ method: 'POST', resourceId: OFFLINE_RESOURCE_ID, nonceBase64, body })
  return utf8(`${requestData}&offline`)
}

const OFFLINE_RESOURCE_ID = '/operation/authorize/offline'
