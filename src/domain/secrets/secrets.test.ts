// Tests that private keys are sealed and opened only in their place.
import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { exportPrivateKey, generateKeyPair } from '../../crypto/key.ts'
import { createRecordKeys } from './record-keys.ts'
import { openPrivateKey, places, sealPrivateKey } from './secrets.ts'

test('a private key is opened as it was sealed, once in each process, beside what others build', () => {
  const masterKey = randomBytes(32)
  const [keys, ofAnotherProcess] = [
    createRecordKeys([masterKey], { randomBytes }),
    createRecordKeys([masterKey], { randomBytes }),
  ]
  const [pair, place] = [
    generateKeyPair('P-256'),
    places.serverPrivateKey({ activationId: 'an activation', applicationId: 'app', userId: 'user' }),
  ]
  const sealed = sealPrivateKey(keys, place, pair)
  expect(keys.openCached(place, sealed, (pkcs8) => ({ pkcs8 }))).toHaveProperty('pkcs8')
  const opened = openPrivateKey(keys, place, sealed)
  expect(exportPrivateKey(opened)).toEqual(exportPrivateKey(pair.privateKey))
  expect(openPrivateKey(keys, place, sealed)).toBe(opened)
  expect(exportPrivateKey(openPrivateKey(ofAnotherProcess, place, sealed))).toEqual(exportPrivateKey(pair.privateKey))
})
