// Reads the texts of QR codes over free data of the bank, as an app does: the SDK checks the proof, the app splits the text from its end (v3
// §15.1, v4 §11.2).
import { bytesOf, join, unb64 } from './v3/crypto.ts'

/** The contents of a text, whose proof is not checked yet. */
export interface OfflineText {
  readonly data: string
  /** The eight digits of a proximity check, if app and bank agreed on one. */
  readonly totp: string | undefined
  /** Base64 of 16 bytes. */
  readonly nonce: string
  /** `0` for all phones of an application, `1` for one of 3.x, `2` for one of 4.0. */
  readonly kind: string
  /** The part that the proof covers: everything up to the kind. */
  readonly head: string
  readonly proof: Uint8Array
}

/** The values that an offline code covers. */
export interface OfflineCovered {
  readonly resourceId: string
  readonly body: string | Uint8Array
  /** Base64 of 16 bytes. */
  readonly nonce: string
  readonly totp?: string | undefined
}

/** Splits the text of a QR code. Throws for a text of another form. `hasTotp`: whether app and bank agreed on a proximity check. */
export function splitOfflineText(text: string, hasTotp: boolean): OfflineText {
  const lines = text.split('\n')
  const last = lines.pop() ?? ''
  const nonce = lines.pop() ?? ''
  const totp = hasTotp ? lines.pop() : undefined
  if (lines.length === 0 || unb64(nonce).length !== 16) throw new Error('the QR code is not one of a bank')
  if (hasTotp && !/^\d{8}$/.test(totp ?? '')) throw new Error('the QR code has no proximity check')
  const head = text.slice(0, text.length - last.length + 1)
  return { data: lines.join('\n'), totp, nonce, kind: last.slice(0, 1), head, proof: unb64(last.slice(1)) }
}

/** The bytes that a code covers beside method and resource id. */
export const bodyOfOffline = ({ body, totp }: OfflineCovered): Uint8Array =>
  join(bytesOf(body), bytesOf(totp === undefined ? '' : `&${totp}`))
