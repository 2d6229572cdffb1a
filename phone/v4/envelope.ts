// Implements the phone's half of an envelope of protocol 4.0: seals a request and opens the answer to it (v4 §5).
import { b64, bigEndian, bytesOf, join, random, sized, unb64 } from '../v3/crypto.ts'
import { kmac, openAead, sealAead, sha3 } from './crypto.ts'

/** A key to encrypt with, as keystore/create returns it (v4 §4). */
export interface V4TemporaryKey {
  readonly id: string
  /** 32 bytes. */
  readonly secret: Uint8Array
  /** Milliseconds. */
  readonly expiresAt: number
}

export interface V4EnvelopeContext {
  readonly label: string
  readonly applicationKey: string
  /** Base64. */
  readonly applicationSecret: string
  /** Both present in activation scope, both absent in application scope. */
  readonly activationId?: string | undefined
  readonly keySharedInfo2?: Uint8Array | undefined
  readonly temporaryKey: Pick<V4TemporaryKey, 'id' | 'secret'>
}

export interface V4Sealed {
  readonly envelope: Record<string, string | number>
  /** Opens the answer; throws when its members or tag are wrong. */
  readonly open: (answer: unknown) => Uint8Array
}

/** Seals `plaintext` for the server. `timestamp` in milliseconds; `nonce` 24 bytes. */
export function sealV4Envelope(
  context: V4EnvelopeContext,
  plaintext: Uint8Array,
  timestamp: number,
  nonce: Uint8Array = random(24),
): V4Sealed {
  const { temporaryKey, label } = context
  const keyContext = join(bytesOf('4.0'), bytesOf(label), nonce)
  const sealed = sealAead(temporaryKey.secret, keyContext, nonce.subarray(0, 12), bindTo(context, timestamp, nonce), plaintext)
  return {
    envelope: { temporaryKeyId: temporaryKey.id, encryptedData: b64(sealed), nonce: b64(nonce), timestamp },
    open: (answer) => {
      const { encryptedData, timestamp: answeredAt, ...rest } = answer as Record<string, unknown>
      if (typeof encryptedData !== 'string' || typeof answeredAt !== 'number' || Object.keys(rest).length > 0) {
        throw new Error('the answer is not an envelope')
      }
      const data = unb64(encryptedData)
      if (Buffer.compare(data.subarray(0, 12), nonce.subarray(12)) !== 0) throw new Error('the answer has another nonce')
      return openAead(temporaryKey.secret, keyContext, bindTo(context, answeredAt, nonce), data)
    },
  }
}

/** The associated data of a request or of an answer (v4 §5.4, §5.5). */
function bindTo(context: V4EnvelopeContext, timestamp: number, nonce: Uint8Array): Uint8Array {
  const { applicationKey, activationId, keySharedInfo2, temporaryKey } = context
  const secret = unb64(context.applicationSecret)
  const sharedInfo2 = keySharedInfo2 ? kmac(keySharedInfo2, secret, 'PA4SH2') : sha3(secret)
  const texts = ['4.0', applicationKey, activationId, temporaryKey.id].filter((text) => text !== undefined)
  return join(sized(...texts.map(bytesOf)), sized(bigEndian(timestamp, 8), nonce, sharedInfo2))
}
