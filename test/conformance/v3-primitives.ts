// Vectors of primitives, key derivation and curve points (v3 §2, §3.2), and of the mobile utility's signature (v3 §17).
import { expect } from 'vitest'
import { ecdh, publicKeyFromPoint, publicKeyOf, readPoint } from '../../src/crypto/key.ts'
import { ecdsaVerify } from '../../src/crypto/ecdsa.ts'
import { deriveX963 } from '../../src/crypto/kdf.ts'
import { signPinningAnswer } from '../../src/domain/pinning/pinning.ts'
import { parseBase64 } from '../../src/lib/base64.ts'
import { concatWithSizes, utf8 } from '../../src/lib/bytes.ts'
import {
  advanceCounter,
  agreeMasterSecret,
  deriveActivationKeys,
  encryptVaultKey,
  kdf,
  kdfInternal,
  reduce,
} from '../../src/protocol/v3/key-schedule.ts'
import { bytes, type Handler, has, integer, list, type Members, optional, text } from './vector.ts'
import { privateKeyFromScalar } from '../helpers/crypto.ts'

export const primitiveFamilies: Readonly<Record<string, Handler>> = {
  'kdf-index': ({ input }) => ({ key: kdf(bytes(input, 'key'), BigInt(text(input, 'index'))) }),
  'kdf-internal': ({ input }) => ({ key: kdfInternal(bytes(input, 'key'), bytes(input, 'data')) }),
  'kdf-x963': ({ input }) => {
    const info = optional(bytes, input, 'info') ?? new Uint8Array(0)
    return { key: deriveX963(bytes(input, 'secret'), info, integer(input, 'length')) }
  },
  'reduce-32-to-16': ({ input }) => ({ data: reduce(bytes(input, 'data')) }),
  'concat-with-sizes': ({ input }) => ({ data: concatWithSizes(...list(input, 'parts').map(readPart)) }),
  ecdh: ({ input }) => {
    const privateKey = privateKeyFromScalar('P-256', bytes(input, 'privateKey'))
    const publicKey = publicKeyFromPoint('P-256', bytes(input, 'publicKey'))
    return {
      sharedSecret32: publicKey && ecdh(privateKey, publicKey),
      sharedSecret16: agreeMasterSecret(privateKey, bytes(input, 'publicKey')),
    }
  },
  'point-decode': ({ input }) => {
    const uncompressed = readPoint('P-256', bytes(input, 'publicKey'))?.bytes
    const publicKey = publicKeyFromPoint('P-256', bytes(input, 'publicKey'))
    expect(publicKey === undefined, 'both decoders agree').toBe(uncompressed === undefined)
    return { valid: uncompressed !== undefined, uncompressed }
  },
  'hash-counter': ({ input }) => {
    const chain: Uint8Array[] = []
    let ctrData = bytes(input, 'ctrData')
    for (let i = 0; i < integer(input, 'steps'); i += 1) {
      ctrData = advanceCounter(ctrData)
      chain.push(ctrData)
    }
    return { chain }
  },
  'public-master-secret': ({ input }) => {
    const masterSecret = agreeMasterSecret(privateKey(input, 'serverPrivateKey'), bytes(input, 'devicePublicKey'))
    expect(agreeMasterSecret(privateKey(input, 'devicePrivateKey'), bytes(input, 'serverPublicKey'))).toEqual(masterSecret)
    return { masterSecret }
  },
  'public-derived-keys': ({ input }) => deriveAll(bytes(input, 'masterSecret')),
  'activation-keys': ({ input }) => {
    const serverPrivateKey = privateKey(input, 'serverPrivateKey')
    if (has(input, 'serverPublicKey')) expect(publicKeyOf(serverPrivateKey)).toEqual(bytes(input, 'serverPublicKey'))
    const masterSecret = agreeMasterSecret(serverPrivateKey, bytes(input, 'devicePublicKey'))
    if (!masterSecret) throw new Error('the device key is not valid')
    return { masterSecret, ...deriveAll(masterSecret) }
  },
  'mobile-utility-signature': ({ input }) => {
    const publicKey = publicKeyFromPoint('P-256', bytes(input, 'publicKey'))
    if (!publicKey) throw new Error('publicKey is not valid')
    const [challenge, body] = [text(input, 'challenge'), text(input, 'body')]
    const message = utf8(`${challenge}&${body}`)
    if (has(input, 'privateKey')) {
      const signature = Buffer.from(signPinningAnswer(privateKey(input, 'privateKey'), challenge, utf8(body)), 'base64')
      expect(ecdsaVerify(publicKey, message, signature)).toBe(true)
    }
    return { valid: ecdsaVerify(publicKey, message, bytes(input, 'signature')) }
  },
}

function deriveAll(masterSecret: Uint8Array): Members {
  const keys = deriveActivationKeys(masterSecret)
  return {
    possessionKey: keys.possession,
    knowledgeKey: keys.knowledge,
    biometryKey: keys.biometry,
    transportKey: keys.keyTransport,
    vaultEncryptionKey: keys.keyEncryptionVault,
    transportIvKey: keys.keyTransportIv,
    transportCtrKey: keys.keyTransportCtr,
    encryptedVaultEncryptionKey: encryptVaultKey(keys),
  }
}

const privateKey = (input: Members, key: string) => privateKeyFromScalar('P-256', bytes(input, key))

function readPart(part: unknown): Uint8Array | undefined {
  return typeof part === 'string' ? parseBase64(part) : undefined
}
