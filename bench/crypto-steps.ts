// The dear steps of OpenSSL alone, as the server calls them: what a request for a temporary key, or one for a signature of a device key, cannot cost
// less than. Run by crypto.ts.
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { ecdh } from '../src/crypto/ecdh.ts'
import { ecdsaSign, ecdsaSignP384, ecdsaVerify } from '../src/crypto/ecdsa.ts'
import { encapsulate, importEncapsulationKey } from '../src/crypto/kem.ts'
import { generateKeyPair, publicKeyFromPoint } from '../src/crypto/key.ts'
import { generateMlDsaKeyPair, importMlDsaPublicKey, mlDsaSign, mlDsaVerify } from '../src/crypto/mldsa.ts'
import { measure } from './measure.ts'

const own = generateKeyPair('P-384')
const peer = publicKeyFromPoint('P-384', generateKeyPair('P-384').publicKey)
if (peer === undefined) throw new Error('a fresh key is not on its curve')
/** About as long as the answer of the hybrid algorithms that is signed. */
const message = randomBytes(3000)

await measure('P-384: key pair', () => generateKeyPair('P-384'), 20)
await measure('P-384: key agreement', () => ecdh(own.privateKey, peer), 20)
await measure('P-384: signature', () => ecdsaSignP384(own.privateKey, message), 20)
for (const parameterSet of ['ML-DSA-65', 'ML-DSA-87'] as const) {
  const { privateKey } = generateMlDsaKeyPair(parameterSet)
  await measure(`${parameterSet}: signature`, () => mlDsaSign(privateKey, message), 20)
}
for (const parameterSet of ['ML-KEM-768', 'ML-KEM-1024'] as const) {
  const type = parameterSet === 'ML-KEM-768' ? 'ml-kem-768' : 'ml-kem-1024'
  const { publicKey } = generateKeyPairSync(type, { publicKeyEncoding: { format: 'der', type: 'spki' } })
  await measure(`${parameterSet}: import of a key and encapsulation`, () => {
    const key = importEncapsulationKey(parameterSet, publicKey)
    if (key === undefined) throw new Error('the key is not valid')
    return encapsulate(key)
  })
}

for (const data of [randomBytes(1000), randomBytes(128 * 1024)]) {
  for (const [curve, sign, hash] of [
    ['P-256', ecdsaSign, 'sha256'],
    ['P-384', ecdsaSignP384, 'sha384'],
  ] as const) {
    const { privateKey, publicKey } = generateKeyPair(curve)
    const key = publicKeyFromPoint(curve, publicKey)
    const signature = sign(privateKey, data)
    await measure(`${curve}: verification of ${data.length} bytes`, () => key && ecdsaVerify(key, data, signature, { hash }), 20)
  }
  for (const parameterSet of ['ML-DSA-65', 'ML-DSA-87'] as const) {
    const { privateKey, publicKey } = generateMlDsaKeyPair(parameterSet)
    const key = importMlDsaPublicKey(parameterSet, publicKey)
    const signature = mlDsaSign(privateKey, data)
    await measure(`${parameterSet}: verification of ${data.length} bytes`, () => key && mlDsaVerify(key, data, signature), 20)
  }
}
