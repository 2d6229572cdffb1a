// Private keys by their place: sealed by one function, opened by its twin.
import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { exportPrivateKey } from '../../crypto/key.ts'
import { createRecordKeys } from './record-keys.ts'
import { createKeyPair, openPrivateKey, places, sealPrivateKey } from './secrets.ts'

test('a private key is opened as it was sealed: by this process as the same object, by another from its bytes, beside what others build', () => {
  const masterKey = randomBytes(32)
  const [keys, ofAnotherProcess] = [
    createRecordKeys([masterKey], { randomBytes }),
    createRecordKeys([masterKey], { randomBytes }),
  ]
  const [pair, place] = [
    createKeyPair(),
    places.serverPrivateKey({ activationId: 'an activation', applicationId: 'app', userId: 'user' }),
  ]
  const sealed = sealPrivateKey(keys, place, pair)
  expect(keys.openCached(place, sealed, (pkcs8) => ({ pkcs8 }))).toHaveProperty('pkcs8')
  expect(openPrivateKey(keys, place, sealed)).toBe(pair.privateKey)
  expect(exportPrivateKey(openPrivateKey(ofAnotherProcess, place, sealed))).toEqual(exportPrivateKey(pair.privateKey))
})
