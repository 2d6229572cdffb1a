// The handset of protocol 3.0 to 3.3. It stores nothing in the clear but the keys that requests need: the device key is under the key of the
// vault, from which the key of biometry is derived (v3 §3.2, §12).
import { createCipheriv } from 'node:crypto'
import { deriveKeys, unb64 } from './crypto.ts'
import { createShared, type Generation, type HandsetIdentity } from '../handset.ts'
import { NO_BODY } from '../http.ts'
import type { PhoneState, Prepared } from './state.ts'
import { keysOf } from './state.ts'
import { createPhone } from './virtual-phone.ts'

/** The state of the protocol, with what the handset stores beside it. */
export interface StateOf3 extends PhoneState {
  /** Under the key of the vault, from the activation on. */
  lockedDeviceKey?: Uint8Array
}

/** The side of 3.x of a phone. Throws when its app has no key of P-256. */
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
    // The server knows no other key: a code with the old one says that the old password was right.
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

/** The same request whose answer means something else. */
export const opening = <T>(request: Prepared<unknown>, read: () => T): Prepared<T> => ({
  ...request,
  open: (reply) => {
    request.open(reply)
    return read()
  },
})

/** The key of biometry is made again from that of the device, which the vault opens. */
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

/** Encrypts and decrypts; one key has one use, so that the counter may begin at nothing. */
function underVault(bytes: Uint8Array, vault: Uint8Array): Uint8Array {
  const cipher = createCipheriv('aes-128-ctr', vault, new Uint8Array(16))
  return Buffer.concat([cipher.update(bytes), cipher.final()])
}
