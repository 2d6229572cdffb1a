// Vectors of hashes, KMAC, key derivation, AEAD and digests (v4 §1, §7.2, §8.2, §11.4).
import { expect } from 'vitest'
import { sha3 } from '../../src/crypto/hash.ts'
import { createKmac, createKmacOnce } from '../../src/crypto/kmac.ts'
import { parseBase64, toBase64 } from '../../src/lib/base64.ts'
import { createActivationCode, parseActivationCode } from '../../src/domain/activation/code.ts'
import { deriveAeadKeys, openAead, sealAead } from '../../src/protocol/v4/aead.ts'
import { advanceCounter, importKdfKey, kdf } from '../../src/protocol/v4/key-schedule.ts'
import { kmac as phoneKmac } from '../../phone/v4/crypto.ts'
import { bytes, flag, has, integer, list, type Members, optional, text } from './vector.ts'

const aead = (vector: Members): Members => {
  const keys = deriveAeadKeys(importKdfKey(bytes(vector, 'key')), bytes(vector, 'keyContext'))
  const [nonce, associatedData] = [bytes(vector, 'nonce'), bytes(vector, 'associatedData')]
  const given = bytes(vector, 'ciphertext')
  for (let i = 0; i < given.length; i += 1) {
    const changed = Buffer.from(given)
    changed.writeUInt8(changed.readUInt8(i) ^ 1, i)
    expect(openAead(keys, associatedData, changed)).toBeUndefined()
  }
  const key = importKdfKey(bytes(vector, 'key'))
  return {
    keyEncryption: keys.keyEncryption,
    keyMac: kdf(key, 'aead/mac', bytes(vector, 'keyContext')),
    ciphertext: sealAead(keys, nonce, associatedData, bytes(vector, 'plaintext')),
    plaintext: openAead(keys, associatedData, given),
  }
}

const activationCode = (vector: Members): Members => {
  const code = text(vector, 'activationCode')
  const random = parseActivationCode(code)
  if (!flag(vector, 'valid')) return { valid: random !== undefined }
  return { valid: random !== undefined, random, activationCode: createActivationCode(bytes(vector, 'random')) }
}

function hashCounter(vector: Members): Members {
  const values = list(vector, 'values').map(String)
  const chain = [parseBase64(values[0] ?? '') ?? new Uint8Array(0)]
  while (chain.length < values.length) chain.push(advanceCounter(chain.at(-1) ?? new Uint8Array(0)))
  return { values: chain }
}

export const v4PrimitiveFamilies = {
  'sha3-256': (vector: Members) => ({
    digest: Buffer.from(sha3(Buffer.from(text(vector, 'msg'), 'hex'))).toString('hex'),
  }),
  kmac256: (vector: Members) => ({
    mac: createKmacOnce(text(vector, 'custom'), integer(vector, 'length'))(bytes(vector, 'key'), bytes(vector, 'data')),
  }),
  kdf: (vector: Members) => {
    const key = createKmac('PA4KDF', integer(vector, 'length'))(bytes(vector, 'key'))
    return { derived: kdf(key, text(vector, 'label'), optional(bytes, vector, 'diversifier')) }
  },
  // The phone's own affair; checked so that the phone of the tests derives as phones do.
  'password-kdf': (vector: Members) => ({
    derived: phoneKmac(Buffer.from(text(vector, 'password')), bytes(vector, 'salt'), 'PA4PBKDF', integer(vector, 'length')),
  }),
  aead,
  'hash-counter': hashCounter,
  'activation-code': activationCode,
  // The phone's own affair, too: a number that two people compare.
  'data-digest': (vector: Members) => {
    const items = list(vector, 'items').map(String).join('&')
    const mac = phoneKmac(bytes(vector, 'salt'), Buffer.from(items), 'PA4DIGEST-DATA', 32)
    const digits = has(vector, 'length') ? integer(vector, 'length') : 8
    const [value, modulus] = [BigInt.asIntN(256, BigInt(`0x${Buffer.from(mac).toString('hex')}`)), 10n ** BigInt(digits)]
    return { mac: toBase64(mac), digest: String(((value % modulus) + modulus) % modulus).padStart(digits, '0') }
  },
}
