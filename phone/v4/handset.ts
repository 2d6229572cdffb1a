// Implements the handset of protocol 4.0, in any of the three algorithms.
import { b64 } from '../v3/crypto.ts'
import { opening } from '../v3/handset.ts'
import { createShared, type Generation, type HandsetIdentity } from '../handset.ts'
import { NO_BODY } from '../http.ts'
import type { OperationQr } from '../operations.ts'
import type { Prepared } from '../v3/state.ts'
import { readSdkConfiguration, type V4PhoneState, v4KeysOf } from './state.ts'
import { createPhoneV4, type VirtualPhoneV4 } from './virtual-phone.ts'

/** Makes the protocol's phone for an identity. Throws when its app has no configuration text for SDKs, or the identity has no algorithm. */
export function createPhoneOf4({ url, dialect, algorithm, app }: HandsetIdentity, given?: V4PhoneState): VirtualPhoneV4 {
  if (algorithm === undefined) throw new Error('a phone of 4.0 has an algorithm')
  if (app.mobileSdkConfig === undefined) throw new Error('an app of 4.0 has the text that SDKs are given')
  return createPhoneV4({ url, dialect, algorithm, app: readSdkConfiguration(app.mobileSdkConfig) }, given)
}

/** Makes the parts of a handset that are of 4.0. */
export function createGenerationOf4(identity: HandsetIdentity, given?: V4PhoneState): Generation {
  const phone = createPhoneOf4(identity, given)
  const { state } = phone
  const shared = createShared(phone)
  return {
    ...shared,
    state,
    takeKnowledge: () => {
      const { knowledge } = v4KeysOf(state)
      state.keys = { ...v4KeysOf(state), secret: NO_BODY, knowledge: NO_BODY, biometry: NO_BODY }
      return knowledge
    },
    scan: (text) => scan(phone, text),
    computeOtp: ({ operationId, data, nonce, totp }, proof) =>
      phone.typeOtp({ operationId, operationData: data, nonce, ...(totp !== undefined && { totp }), ...proof }),
    isForThisPhone: ({ head, proof }) => phone.isPersonalized(`${head}${b64(proof)}`),
    prepareEncrypted: ({ path, resourceId, plaintext }, proof) =>
      proof === undefined
        ? phone.prepareEncrypted(path, 'activation', { plaintext })
        : phone.prepareSignedEncrypted({ path, resourceId, plaintext: Buffer.from(plaintext) }, proof),
    prepareNewKnowledge: (proof) => phone.preparePasswordChange(proof),
    prepareBiometry: async (isOn, proof) => {
      if (!isOn) return opening(phone.prepareBiometryRemove(), () => phone.adopt({ biometry: NO_BODY }))
      return adopting(await phone.prepareBiometryAdd(proof), (biometry) => phone.adopt({ biometry }))
    },
    // In the dialect Svc, the status is a word and no blob (v4 §9.4).
    readStatus: async () => (identity.dialect === 'Svc' ? { state: await readStateOfSvc(phone) } : shared.readStatus()),
    validation: { path: '/pa/v4/auth/validate', resourceId: '/pa/auth/validate' },
    prepareConfirm: (proof) => phone.prepareConfirm(false, proof),
  }
}

const adopting = (request: Prepared<Uint8Array>, adopt: (key: Uint8Array) => void): Prepared<void> => ({
  ...request,
  open: (reply) => adopt(request.open(reply)),
})

async function readStateOfSvc(phone: VirtualPhoneV4): Promise<string> {
  const answer = await phone.exchange(await phone.prepareEncrypted('/pa/v4/activation/status', 'activation'))
  return String(answer['activationStatus'])
}

/** Reads the QR code of an operation. Throws unless its MAC is of this activation (v4 §11.2). */
function scan(phone: VirtualPhoneV4, text: string): OperationQr {
  if (!phone.isPersonalized(text)) throw new Error('the QR code was not made for this phone')
  const lines = text.split('\n')
  const [operationId = '', title = '', message = '', data = '', flags = '', totp] = lines
  return { operationId, title, message, data, flags, totp: lines.length > 7 ? totp : undefined, nonce: lines.at(-2) ?? '' }
}
