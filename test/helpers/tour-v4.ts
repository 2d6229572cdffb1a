// Calls every endpoint of protocol 4.0 with one algorithm, rightly and wrongly, and notes each secret of the phones.
import type { Bank } from './bank.ts'
import { readApplication, readQrCode } from './bank.ts'
import type { HttpReply } from '../../phone/http.ts'
import { member } from '../../phone/http.ts'
import { b64, random } from '../../phone/v3/crypto.ts'
import type { Prepared } from '../../phone/v3/state.ts'
import type { PhoneAlgorithm } from '../../phone/v4/crypto.ts'
import type { Secrets } from './secret-search.ts'
import { upgradeOf } from './upgrading-phone.ts'
import { createPhone } from '../../phone/v3/virtual-phone.ts'
import { createPhoneV4 } from '../../phone/v4/virtual-phone.ts'
import { type PhoneV4, readAppV4 } from './world-v4.ts'

export interface TourV4Options {
  readonly admin: Bank
  readonly bank: Bank
  readonly application: string
  readonly algorithm: PhoneAlgorithm
  readonly secrets: Secrets
}

/** The number of activations that a tour leaves in the database. */
export const ACTIVATIONS_OF_TOUR_V4 = 5

/** Makes all calls; throws when an answer does not show that the call reached its endpoint. */
export async function tourV4(options: TourV4Options): Promise<void> {
  const { admin, bank, application, algorithm, secrets } = options
  const app = await readAppV4(admin, application)
  const dialect = algorithm === 'EC_P384' ? 'Svc' : 'PowerAuth'
  const newPhone = (): PhoneV4 => createPhoneV4({ url: admin.url, app, algorithm, dialect })
  for (const stop of ['removed', 'active', 'pending'] as const) {
    const userId = `tour-${algorithm}-${stop}`
    const claims = { name: `claim-of-${userId}` }
    secrets.addText('claim', claims.name)
    expectStatus(await admin.call('PUT', `/admin/applications/${application}/claims/${userId}`, claims), 200)
    const phone = newPhone()
    const activationOtp = `otp-${b64(random(9))}`
    secrets.addText('activation OTP', activationOtp)
    await phone.activate(await registerUser(bank, userId, secrets), { layer2: { activationOtp } })
    note(secrets, phone)
    if (stop === 'pending') continue
    expectStatus(await bank.commit(userId), 200)
    await sendNoted(phone, phone.prepareConfirm(true), 200, secrets)
    if (stop === 'removed') {
      await phone.createToken()
      await phone.exchange(phone.prepareRemove())
    } else {
      await usePhone(phone, secrets)
      await refusePhone(phone, bank, userId, secrets)
    }
    note(secrets, phone)
  }
  for (const isConfirmed of [true, false]) await visitUpgrade(options, newPhone, isConfirmed)
}

async function usePhone(phone: PhoneV4, secrets: Secrets): Promise<void> {
  if (phone.options.dialect !== 'Svc') await phone.readStatus()
  for (const factors of ['possession', 'possession_knowledge', 'possession_biometry'] as const) {
    await sendNoted(phone, phone.prepareValidation({ body: 'pay', factors }), 200, secrets)
  }
  for (const scope of ['application', 'activation'] as const) {
    // The key is used once more, so that the database has its secret, and the tour knows it.
    const temporaryKey = await phone.fetchTemporaryKey(scope)
    secrets.addBytes('shared secret of a temporary key', temporaryKey.secret)
    await phone.exchange(await phone.prepareConfiguration(scope, { temporaryKey }))
  }
  const gone = await phone.createToken('possession')
  const token = await phone.createToken()
  note(secrets, phone)
  await phone.exchange(phone.prepareTokenRemove(gone.id))
  await phone.exchange(await phone.prepareDetail(token))
  await phone.exchange(await phone.prepareUserInfo())
  await phone.exchange(await phone.prepareRename('Renamed phone'))
  for (const identifier of ['KEK_DEVICE_PRIVATE', 'KDK_APP_VAULT_KNOWLEDGE', 'KDK_APP_VAULT_2FA']) {
    secrets.addBytes(`vault key ${identifier}`, await phone.exchange(await phone.prepareVaultUnlock(identifier)))
  }
  const lost = await phone.exchange(await phone.preparePasswordChange())
  secrets.addBytes('key of a password that was never used', lost)
  phone.adopt({ knowledge: await phone.exchange(await phone.preparePasswordChange()) })
  await sendNoted(phone, phone.prepareValidation(), 200, secrets)
  await phone.exchange(phone.prepareBiometryRemove())
  phone.adopt({ biometry: await phone.exchange(await phone.prepareBiometryAdd()) })
  await sendNoted(phone, phone.prepareValidation({ factors: 'possession_biometry' }), 200, secrets)
  // The last new key of each factor waits in the database beside the key in use.
  secrets.addBytes('next key of biometry', await phone.exchange(await phone.prepareBiometryAdd()))
  note(secrets, phone)
}

/** Sends wrong codes, digests and envelopes until the activation is blocked. The bank unblocks it. */
async function refusePhone(phone: PhoneV4, bank: Bank, userId: string, secrets: Secrets): Promise<void> {
  const [token] = phone.state.tokens.slice(-1)
  if (!token) throw new Error('the phone has no token')
  const wrongKeys = { knowledge: random(32) }
  secrets.addBytes('key of a wrong PIN', wrongKeys.knowledge)
  expectStatus(await phone.send(await phone.prepareVaultUnlock('UNKNOWN')), 400)
  expectStatus(await phone.send(await phone.preparePasswordChange({ plaintext: '{"password":"typed by a person"}' })), 400)
  secrets.addText('misplaced password', 'typed by a person')
  expectStatus(await phone.send(await phone.prepareDetail({ ...token, secret: wrongKeys.knowledge })), 401)
  const altered = (envelope: Record<string, unknown>) => ({ ...envelope, encryptedData: b64(random(64)) })
  expectStatus(await phone.send(await phone.prepareUserInfo({ alterEnvelope: altered })), 400)
  expectStatus(await phone.send(await phone.prepareVaultUnlock('KDK_APP_VAULT_2FA', { wrongKeys })), 401)
  expectStatus(await phone.send(await phone.preparePasswordChange({ wrongKeys })), 401)
  expectStatus(await phone.send(await phone.prepareBiometryAdd({ wrongKeys })), 401)
  expectStatus(await phone.send(await phone.prepareTokenCreate({ wrongKeys })), 401)
  await sendNoted(phone, phone.prepareValidation({ wrongKeys }), 401, secrets)
  await sendNoted(phone, phone.prepareValidation(), 401, secrets)
  expectStatus(await bank.change(userId, 'UNBLOCK'), 200)
  await sendNoted(phone, phone.prepareValidation(), 200, secrets)
  // The code above used the old keys, which dropped the waiting key, so another one is requested.
  secrets.addBytes('next key of knowledge', await phone.exchange(await phone.preparePasswordChange()))
  note(secrets, phone)
}

/** Has a phone of 3.3 start its upgrade twice, and confirm it or not. */
async function visitUpgrade(
  { admin, bank, application, algorithm, secrets }: TourV4Options,
  newPhone: () => PhoneV4,
  isConfirmed: boolean,
): Promise<void> {
  const userId = `tour-${algorithm}-upgrade-${isConfirmed}`
  const app = readApplication(await admin.call('GET', `/admin/application?id=${application}`))
  const { dialect = 'PowerAuth' } = newPhone().options
  const old = createPhone({ url: admin.url, app, version: '3.3', dialect })
  await old.activate(await registerUser(bank, userId, secrets))
  expectStatus(await bank.commit(userId), 200)
  const upgrading = upgradeOf({ newPhone }, { userId, old }, algorithm)
  const { phone } = upgrading
  const first = upgrading.newAttempt()
  await first.exchange(await upgrading.prepareStart({}, first))
  note(secrets, first)
  await phone.exchange(await upgrading.prepareStart({ enableBiometry: true }))
  note(secrets, phone)
  for (const [name, bytes] of Object.entries(old.secrets())) secrets.addBytes(`${name} of a phone of 3.3`, bytes)
  if (!isConfirmed) return
  expectStatus(await phone.send(first.prepareUpgradeConfirm()), 401)
  await sendNoted(phone, phone.prepareUpgradeConfirm(), 200, secrets)
  await sendNoted(phone, phone.prepareValidation(), 200, secrets)
  note(secrets, phone)
}

async function registerUser(bank: Bank, userId: string, secrets: Secrets): Promise<string> {
  const { code } = readQrCode(expectStatus(await bank.register(userId), 200))
  secrets.addText('activation code', code)
  return code
}

/** Notes every present secret of the phone: keys, device keys, counter, tokens. */
function note(secrets: Secrets, phone: PhoneV4): void {
  for (const [name, bytes] of Object.entries(phone.secrets())) secrets.addBytes(`${name} of a phone of 4.0`, bytes)
}

/** Sends a request and notes the counter and the code. */
async function sendNoted(phone: PhoneV4, request: Prepared<unknown>, status: number, secrets: Secrets): Promise<void> {
  secrets.addBytes('ctrData of a phone of 4.0', phone.state.ctrData)
  const header = Object.values(request.headers).find((value) => value.includes('pa_auth_code=')) ?? ''
  const [, code = ''] = /pa_auth_code="([^"]+)"/.exec(header) ?? []
  secrets.addText('authentication code', code)
  expectStatus(await phone.send(request), status)
}

function expectStatus(reply: HttpReply, status: number): HttpReply {
  if (reply.status === status) return reply
  throw new Error(
    `HTTP ${reply.status} instead of ${status}: ${String(member(reply.json, 'responseObject', 'code'))} ${reply.text}`,
  )
}
