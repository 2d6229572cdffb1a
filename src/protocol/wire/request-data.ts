// Composes the data that an authentication code covers (v3 §10.1, v4 §7.1).
import { toBase64 } from '../../lib/base64.ts'
import { utf8 } from '../../lib/bytes.ts'
import type { SignedRequest } from '../protocol.ts'

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
