// Implements the handset of protocol 3.0 to 3.3. It stores in the clear only the keys that requests need. The device key, from which the key of
// biometry is derived, is encrypted under the key of the vault (v3 §3.2, §12).
import { createCipheriv } from 'node:crypto'
import { deriveKeys, unb64 } from './crypto.ts'
import { createShared, type Generation, type HandsetIdentity } from '../handset.ts'
import { NO_BODY } from '../http.ts'
import type { PhoneState, Prepared } from './state.ts'
import { keysOf } from './state.ts'
import { createPhone } from './virtual-phone.ts'

/** The state of a phone of 3.x, with the encrypted device key. */
export interface StateOf3 extends PhoneState {
  /** The device key under the key of the vault; set at the activation. */
  lockedDeviceKey?: Uint8Array
}

/** Makes the parts of a handset that are of 3.x. Throws when its app has no master key of P-256. */
export function createGenerationOf3({ url, dialect, version, app }: HandsetIdentity, given?: StateOf3): Generation {
  if (version === '4.0') throw new Error('a phone of 4.0 is none of 3.x')
  if (app.masterPublicKey === undefined) throw new Error('an app of 3.x has the master public key of P-256')
  const { applicationKey, applicationSecret } = app
  const options = {
    url,
    dialect,
    version,
    app: { applicationKey, applicationSecret, masterPublicKey: unb64(app.masterPublicKey) },
  }
  const phone = createPhone(options, given)
  const state: StateOf3 = phone.state
  return {
    ...createShared(phone),
    state,
    takeKnowledge: () => {
      const { knowledge, vault } = keysOf(state)
      state.lockedDeviceKey = underVault(state.device.privateKey, vault)
      Object.assign(state.device, { privateKey: NO_BODY })
      state.keys = { ...keysOf(state), masterSecret: NO_BODY, knowledge: NO_BODY, biometry: NO_BODY, vault: NO_BODY }
      return knowledge
    },
    scan: phone.scanOperation,
    computeOtp: (qr, proof) => phone.computeOtp(qr, proof),
    isForThisPhone: phone.isForThisPhone,
    prepareEncrypted: ({ path, resourceId, plaintext }, proof) =>
      proof === undefined
        ? phone.prepareEncrypted(path, { plaintext })
        : phone.prepareSignedEncrypted({ path, resourceId, plaintext: Buffer.from(plaintext) }, proof),
    // 3.x has no call for a new key, so the key stays. An accepted code with it proves that the old password was right.
    prepareNewKnowledge: async (proof) => {
      const request = phone.prepareValidation(proof)
      return opening(request, () => proof.wrongKeys.knowledge ?? NO_BODY)
    },
    prepareBiometry: (isOn, proof) => {
      if (isOn) return unlockBiometry(phone.prepareVaultUnlock(proof), state)
      state.keys = { ...keysOf(state), biometry: NO_BODY }
      return undefined
    },
    validation: { path: '/pa/v3/signature/validate', resourceId: '/pa/signature/validate' },
    prepareConfirm: undefined,
  }
}

/** The same request; its accepted answer opens to the result of `read`. */
export const opening = <T>(request: Prepared<unknown>, read: () => T): Prepared<T> => ({
  ...request,
  open: (reply) => {
    request.open(reply)
    return read()
  },
})

/** Derives the key of biometry again from the device key, which the vault key of the answer decrypts. */
async function unlockBiometry(request: Promise<Prepared<Uint8Array>>, state: StateOf3): Promise<Prepared<void>> {
  const prepared = await request
  return {
    ...prepared,
    open: (reply) => {
      const deviceKey = underVault(state.lockedDeviceKey ?? NO_BODY, prepared.open(reply))
      state.keys = { ...keysOf(state), biometry: deriveKeys(deviceKey, state.serverPublicKey).biometry }
    },
  }
}

/** Encrypts and decrypts. A key encrypts one value only, so the counter block may begin at zero. */
function underVault(bytes: Uint8Array, vault: Uint8Array): Uint8Array {
  const cipher = createCipheriv('aes-128-ctr', vault, new Uint8Array(16))
  return Buffer.concat([cipher.update(bytes), cipher.final()])
}
