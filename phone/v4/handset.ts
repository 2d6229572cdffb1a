// The phone of its user in protocol 4.0, in any of the three algorithms, and the way there from 3.3 (v4 §10).
import { b64 } from '../v3/crypto.ts'
import { DEVICE, opening, STATES } from '../v3/handset.ts'
import { type Generation, type HandsetIdentity, layer1Of } from '../handset.ts'
import { NO_BODY } from '../http.ts'
import type { OperationQr } from '../operations.ts'
import type { Prepared } from '../v3/state.ts'
import { readSdkConfiguration, type V4PhoneState, v4KeysOf } from './state.ts'
import { createPhoneV4, type VirtualPhoneV4 } from './virtual-phone.ts'

/** The phone of the protocol for an identity. Throws when its app has no text for SDKs, or the identity no algorithm. */
export function createPhoneOf4({ url, dialect, algorithm, app }: HandsetIdentity, given?: V4PhoneState): VirtualPhoneV4 {
  if (algorithm === undefined) throw new Error('a phone of 4.0 has an algorithm')
  if (app.mobileSdkConfig === undefined) throw new Error('an app of 4.0 has the text that SDKs are given')
  return createPhoneV4({ url, dialect, algorithm, app: readSdkConfiguration(app.mobileSdkConfig) }, given)
}

/** The side of 4.0 of a phone. */
export function createGenerationOf4(identity: HandsetIdentity, given?: V4PhoneState): Generation {
  const phone = createPhoneOf4(identity, given)
  const { state } = phone
  return {
    state,
    prepareBind: async (by, name, activationOtp) =>
      phone.prepareActivation(typeof by === 'string' ? by : '', {
        ...layer1Of(by),
        layer2: { activationName: name, ...DEVICE, activationOtp },
      }),
    prepareOidcConfig: (providerId) => phone.prepareOidcConfig(providerId),
    takeKnowledge: () => {
      const { knowledge } = v4KeysOf(state)
      state.keys = { ...v4KeysOf(state), secret: NO_BODY, knowledge: NO_BODY, biometry: NO_BODY }
      return knowledge
    },
    scan: (text) => scan(phone, text),
    computeOtp: ({ operationId, data, nonce, totp }, proof) =>
      phone.typeOtp({ operationId, operationData: data, nonce, ...(totp !== undefined && { totp }), ...proof }),
    isForThisPhone: ({ head, proof }) => phone.isPersonalized(`${head}${b64(proof)}`),
    answerOffline: phone.answerOffline,
    prepareCode: (request, proof) => phone.prepareSigned({ ...request, ...proof }),
    prepareEncrypted: ({ path, resourceId, plaintext }, proof) =>
      proof === undefined
        ? phone.prepareEncrypted(path, 'activation', { plaintext })
        : phone.prepareSignedEncrypted({ path, resourceId, plaintext: Buffer.from(plaintext) }, proof),
    prepareToken: (proof) => phone.prepareTokenCreate(proof),
    prepareRemove: (proof) => phone.prepareRemove(proof),
    prepareRename: (name, proof) => phone.prepareRename(name, proof),
    prepareTokenRemove: (id) => phone.prepareTokenRemove(id, { factors: 'possession' }),
    tokenHeader: async () => {
      const [token] = state.tokens
      if (token === undefined) throw new Error('the phone has no token')
      return phone.tokenHeader(token, await phone.serverTime())
    },
    prepareNewKnowledge: (proof) => phone.preparePasswordChange(proof),
    prepareBiometry: async (isOn, proof) => {
      if (!isOn) return opening(phone.prepareBiometryRemove(), () => phone.adopt({ biometry: NO_BODY }))
      return adopting(await phone.prepareBiometryAdd(proof), (biometry) => phone.adopt({ biometry }))
    },
    readStatus: async () => {
      // In this dialect the status is a word (v4 §9.4).
      if (identity.dialect === 'Svc') return { state: await readStateOfSvc(phone) }
      const status = await phone.readStatus()
      const { failedAttempts, maxFailedAttempts, currentVersion, upgradeVersion } = status
      return {
        state: STATES[status.state - 1] ?? `${status.state}`,
        failedAttempts,
        maxFailedAttempts,
        currentVersion,
        upgradeVersion,
      }
    },
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

/** A QR code proves itself by a MAC of the activation (v4 §11.2). */
function scan(phone: VirtualPhoneV4, text: string): OperationQr {
  if (!phone.isPersonalized(text)) throw new Error('the QR code was not made for this phone')
  const lines = text.split('\n')
  const [operationId = '', title = '', message = '', data = '', flags = '', totp] = lines
  return { operationId, title, message, data, flags, totp: lines.length > 7 ? totp : undefined, nonce: lines.at(-2) ?? '' }
}
