// Tests that the compiler refuses a key in place of another of the same shape, and that such a key would give another result.
import { expect, test } from 'vitest'
import { deriveStatusBlobIv } from './v3/status-blob.ts'
import { deriveActivationKeys as deriveActivationKeysV3 } from './v3/key-schedule.ts'
import { addBiometryKey, replaceKnowledgeKey } from './v4/factor-keys.ts'
import {
  createInitialActivationSecret,
  deriveActivationKeys,
  deriveKdkAuthenticationCode,
  deriveKdkVault,
  deriveKnowledgeKey,
  derivePossessionKey,
  importKdfKey,
} from './v4/key-schedule.ts'

const root = importKdfKey(new Uint8Array(32).fill(1))

test('a key that others are derived from has its place in the tree', () => {
  const right = derivePossessionKey(deriveKdkAuthenticationCode(root))
  // @ts-expect-error KDK_VAULT is not KDK_AUTHENTICATION_CODE
  expect(derivePossessionKey(deriveKdkVault(root))).not.toEqual(right)
})

test('a factor is replaced by a key of its own', () => {
  const stored = createInitialActivationSecret(new Uint8Array(32).fill(2))
  const knowledge = deriveKnowledgeKey(deriveKdkAuthenticationCode(root))
  const right = replaceKnowledgeKey(stored, knowledge)
  // @ts-expect-error a key of knowledge is not one of biometry
  expect(addBiometryKey(stored, knowledge)).not.toEqual(right)
})

test('the keys of an activation keep their names', () => {
  const keys = deriveActivationKeys(createInitialActivationSecret(new Uint8Array(32).fill(3)))
  const statusOf = ({ keyMacStatus }: Pick<typeof keys, 'keyMacStatus'>) => keyMacStatus().compute(new Uint8Array(1))
  // @ts-expect-error KEY_MAC_CTR_DATA is not KEY_MAC_STATUS
  expect(statusOf({ keyMacStatus: keys.keyMacCtrData })).not.toEqual(statusOf(keys))
})

test('so do those of protocol 3', () => {
  const keys = deriveActivationKeysV3(new Uint8Array(16).fill(4))
  const given = { challenge: new Uint8Array(16), nonce: new Uint8Array(16) }
  // @ts-expect-error KEY_TRANSPORT_CTR is not KEY_TRANSPORT_IV
  expect(deriveStatusBlobIv(keys.keyTransportCtr, given)).not.toEqual(deriveStatusBlobIv(keys.keyTransportIv, given))
})
