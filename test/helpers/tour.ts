// Calls every endpoint in every version, rightly and wrongly, and notes each secret of phones and bank.
import { generateKeyPairSync } from 'node:crypto'
import { connect } from 'node:net'
import type { Bank } from './bank.ts'
import { basicAuthorization, createBank, readApplication, readQrCode } from './bank.ts'
import type { HttpReply } from '../../phone/http.ts'
import { member, NO_BODY, send, sendJson } from '../../phone/http.ts'
import type { PhoneVersion } from '../../phone/v3/crypto.ts'
import { b64, hs256Jwt, random, unb64 } from '../../phone/v3/crypto.ts'
import { PHONE_VERSIONS } from './phone-versions.ts'
import { withHeader, withPair } from '../../phone/header.ts'
import type { AppConfiguration, Prepared } from '../../phone/v3/state.ts'
import { PHONE_ALGORITHMS } from '../../phone/v4/crypto.ts'
import type { Secrets } from './secret-search.ts'
import { tourV4 } from './tour-v4.ts'
import type { VirtualPhone } from '../../phone/v3/virtual-phone.ts'
import { createPhone } from '../../phone/v3/virtual-phone.ts'

export interface TourOptions {
  readonly url: string
  readonly adminUser: string
  readonly adminPassword: string
  readonly secrets: Secrets
}

/** Makes all calls; throws when an answer does not show that the call reached its endpoint. */
export async function tour({ url, adminUser, adminPassword, secrets }: TourOptions): Promise<void> {
  secrets.addText('password of the administrator', adminPassword)
  secrets.addText('credential of the administrator', `${adminUser}:${adminPassword}`)
  const admin = createBank(url, `${adminUser}:${adminPassword}`)
  const app = noteApplication(secrets, await admin.createApplication(APPLICATION))
  await visitAdministration(admin, secrets)
  await visitPinning(admin, secrets)
  const bank = await visitUsers(admin, secrets)
  for (const version of PHONE_VERSIONS) await visitDevice(bank, app, version, secrets)
  for (const algorithm of PHONE_ALGORITHMS) await tourV4({ admin, bank, application: APPLICATION, algorithm, secrets })
  await visitRegistrations(admin, app, secrets)
  await visitLogins(admin, app, secrets)
  await visitTransfer(admin, bank, app, secrets)
  await visitWrongPlaces(admin, app, secrets)
}

const APPLICATION = 'tour'

function noteApplication(secrets: Secrets, reply: HttpReply): AppConfiguration {
  const app = readApplication(reply)
  secrets.addText('application secret', app.applicationSecret)
  secrets.addBytes('bytes of the application secret', unb64(app.applicationSecret))
  return app
}

async function visitAdministration(admin: Bank, secrets: Secrets): Promise<void> {
  expectStatus(await admin.createApplication(APPLICATION), 400)
  expectStatus(await admin.call('GET', '/admin/applications'), 200)
  expectStatus(await admin.call('GET', `/admin/applications/${APPLICATION}`), 200)
  expectStatus(await admin.call('PATCH', `/admin/applications/${APPLICATION}`, { isDefault: true, vaultFactors: [] }), 200)
  const versions = `/admin/applications/${APPLICATION}/versions`
  expectStatus(await admin.call('POST', versions, { name: 'second' }), 200)
  noteApplication(secrets, await admin.call('GET', `/admin/application?id=${APPLICATION}&version=second`))
  expectStatus(await admin.call('PATCH', `${versions}/second`, { isSupported: false }), 200)
  await visitWebhooks(admin, secrets)
}

/** Creates a webhook whose receiver cannot be found, so that every change of an activation is a failed attempt. */
async function visitWebhooks(admin: Bank, secrets: Secrets): Promise<void> {
  const basic = { username: 'receiver', password: 'password of the receiver' }
  secrets.addText('password of a receiver', basic.password)
  secrets.addText('credential of a receiver', `${basic.username}:${basic.password}`)
  const noteSecret = (reply: HttpReply): void => {
    const secret = String(member(expectStatus(reply, 200).json, 'secret'))
    secrets.addText('secret of a webhook', secret)
    secrets.addBytes('key of a webhook', unb64(secret.slice(6)))
  }
  const url = 'https://receiver.invalid/path-of-the-receiver'
  const created = await admin.call('POST', '/admin/webhooks', {
    application: APPLICATION,
    name: 'tour',
    kind: 'ACTIVATION',
    url,
    basic,
  })
  noteSecret(created)
  const path = `/admin/webhooks/${String(member(created.json, 'id'))}`
  noteSecret(await admin.call('POST', `${path}/secret`, { keepPreviousSeconds: 3_600 }))
  expectStatus(await admin.call('PUT', path, { name: 'tour', url }), 200)
  expectStatus(await admin.call('GET', `${path}/deliveries`), 200)
}

/** Pins certificates, and uploads a private key, as an administrator may do by mistake. */
async function visitPinning(admin: Bank, secrets: Secrets): Promise<void> {
  const app = `/admin/apps/${APPLICATION}`
  const domain = 'api.bank.example'
  const pin = { domain, fingerprint: b64(random(32)), expires: 4_000_000_000 }
  expectStatus(await admin.call('POST', `${app}/certificates/fingerprint`, pin), 200)
  const key = random(48)
  secrets.addBytes('private key in a PEM text', key)
  const pem = `-----BEGIN PRIVATE KEY-----\n${b64(key)}\n-----END PRIVATE KEY-----\n`
  expectStatus(await admin.call('POST', `${app}/certificates/pem`, { domain, pem }), 400)
  expectStatus(await admin.call('POST', `${app}/certificates/pem`, { domain, pem: pem.repeat(1_000) }), 400)
  expectStatus(await admin.call('GET', app), 200)
  const headers = { 'X-Cert-Pinning-Challenge': b64(random(16)) }
  expectStatus(await sendJson(admin.url, 'GET', `/app/init?appName=${APPLICATION}`, undefined, headers), 200)
  expectStatus(await sendJson(admin.url, 'GET', `/app/init/public-key?appName=${APPLICATION}`), 200)
  expectStatus(await sendJson(admin.url, 'GET', `/app/init?appName=${APPLICATION}`), 403)
}

/** Creates users with generated and chosen passwords. The last one is the bank of the tour. */
async function visitUsers(admin: Bank, secrets: Secrets): Promise<Bank> {
  const application = APPLICATION
  const note = (name: string, reply: HttpReply): string => {
    const password = String(member(expectStatus(reply, 200).json, 'password'))
    secrets.addText(name, password)
    return password
  }
  const role = 'integration'
  note('generated password', await admin.call('POST', '/admin/users', { username: 'generated', role, application }))
  const chosen = 'chosen & "wörtlich" / ?'
  note('chosen password', await admin.call('POST', '/admin/users', { username: 'chosen', role, application, password: chosen }))
  expectStatus(await admin.as(`chosen:${chosen}`).view('nobody'), 200)
  expectStatus(await admin.call('POST', '/admin/users', { username: 'chosen', role, application, password: chosen }), 400)
  const keepPreviousSeconds = 60
  note('password after a reset', await admin.call('POST', '/admin/users/generated/password', { keepPreviousSeconds }))
  const second = 'second chosen password'
  note('chosen at a reset', await admin.call('POST', '/admin/users/chosen/password', { password: second, keepPreviousSeconds }))
  note('password of one removed', await admin.call('POST', '/admin/users', { username: 'short-lived', role: 'internal' }))
  expectStatus(await admin.call('DELETE', '/admin/users/short-lived'), 200)
  expectStatus(await admin.call('GET', '/admin/users'), 200)
  expectStatus(await admin.as(`chosen:${second}`).call('GET', '/admin/users'), 403)
  const wrong = 'a wrong password, typed by a person'
  secrets.addText('wrong password', wrong)
  expectStatus(await admin.as(`chosen:${wrong}`).view('nobody'), 401)
  secrets.addText('credential of the bank', `chosen:${second}`)
  return admin.as(`chosen:${second}`)
}

/** Takes one phone through all states to its removal, and leaves one in each other state in the database. */
async function visitDevice(bank: Bank, app: AppConfiguration, version: PhoneVersion, secrets: Secrets): Promise<void> {
  const dialect = version === '3.1' ? 'Svc' : 'PowerAuth'
  const stops = { removed: 'remove', active: 'use', pending: 'activate', created: 'register' } as const
  for (const [name, stop] of Object.entries(stops)) {
    const userId = `tour-${version}-${name}`
    const qrCode = expectStatus(await bank.register(userId), 200)
    const { code } = readQrCode(qrCode)
    secrets.addText('activation code', code)
    expectStatus(await bank.view(userId), 200)
    if (stop === 'register') continue
    const phone = createPhone({ url: bank.url, app, version, dialect, compressed: version !== '3.0' })
    const activationOtp = `otp-${b64(random(9))}`
    secrets.addText('activation OTP', activationOtp)
    await phone.activate(code, { layer2: { activationOtp } })
    note(secrets, phone)
    if (stop === 'activate') continue
    expectStatus(await bank.commit(userId), 200)
    await usePhone(phone, secrets)
    await refusePhone(phone, bank, userId, secrets)
    if (stop === 'remove') await phone.exchange(phone.prepareRemove())
    note(secrets, phone)
  }
}

/** Sends claims, and right and wrong OTPs, and reads them as an administrator. One registration stays with its OTP in the database. */
async function visitRegistrations(admin: Bank, app: AppConfiguration, secrets: Secrets): Promise<void> {
  const registrations = `/admin/applications/${APPLICATION}/registrations`
  const claims = { name: 'claim-of-the-tour' }
  secrets.addText('claim', claims.name)
  for (const userId of ['tour-otp', 'tour-otp-stays']) {
    expectStatus(await admin.call('PUT', `/admin/applications/${APPLICATION}/claims/${userId}`, claims), 200)
    expectStatus(await admin.call('PUT', `/admin/applications/${APPLICATION}/claims/${userId}`, { ...claims, sub: 'x' }), 400)
    const [otp, wrong] = [`otp-${b64(random(9))}`, `wrong-otp-${b64(random(9))}`]
    secrets.addText('OTP of the bank', otp)
    secrets.addText('wrong OTP', wrong)
    const created = expectStatus(await admin.call('POST', registrations, { userId, otp }), 200)
    const { code } = readQrCode(created)
    secrets.addText('activation code', code)
    const phone = createPhone({ url: admin.url, app, version: '3.3' })
    await phone.activate(code)
    note(secrets, phone)
    expectStatus(await admin.call('POST', `${registrations}/commit`, { userId, otp: wrong }), 400)
    expectStatus(await admin.call('POST', `${registrations}/commit`, { userId, otp: [otp] }), 400)
    if (userId === 'tour-otp') expectStatus(await admin.call('POST', `${registrations}/commit`, { userId, otp }), 200)
    const { activationId } = phone.state
    expectStatus(await admin.call('PUT', `/admin/activations/${activationId}/flags`, { flags: ['TOUR'] }), 200)
    expectStatus(await admin.call('GET', `${registrations}/${activationId}`), 200)
    if (userId === 'tour-otp') await phone.exchange(await phone.prepareUserInfo())
  }
  expectStatus(await admin.call('GET', registrations), 200)
}

/** Creates OpenID providers that cannot be found, and has a phone bind by logins there. No answer and no log may have their values. */
async function visitLogins(admin: Bank, app: AppConfiguration, secrets: Secrets): Promise<void> {
  const providers = `/admin/applications/${APPLICATION}/oidc-providers`
  const settings = { issuer: 'https://login.invalid', clientId: 'app', redirectUri: 'https://app.bank.example/oidc' }
  const clientSecret = `secret of a client: ${b64(random(18))}`
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const pem = privateKey.export({ format: 'pem', type: 'pkcs8' })
  secrets.addText('secret of a client', clientSecret)
  secrets.addText('private key of a client', pem)
  const keyed = { ...settings, clientAuthentication: 'private_key_jwt' }
  expectStatus(await admin.call('PUT', `${providers}/web`, { ...settings, clientSecret }), 200)
  expectStatus(await admin.call('PUT', `${providers}/keyed`, { ...keyed, privateKey: pem }), 200)
  for (const wrong of [
    { ...settings, clientSecret: [clientSecret] },
    { ...settings, clientSecret: `${clientSecret}\n` },
    { ...settings, privateKey: pem },
    { ...keyed, clientSecret },
    { ...keyed, privateKey: pem.replaceAll('\n', ' ') },
    { ...settings, issuer: `https://app:${encodeURIComponent(clientSecret)}@login.invalid`, clientSecret },
  ])
    expectStatus(await admin.call('PUT', `${providers}/web`, wrong), 400)
  expectStatus(await admin.call('GET', providers), 200)
  const login = { code: b64(random(24)), nonce: b64(random(24)), codeVerifier: Buffer.from(random(32)).toString('hex') }
  for (const [name, value] of Object.entries(login)) secrets.addText(`${name} of a login`, value)
  for (const change of [{}, { codeVerifier: `${login.codeVerifier}!` }, { nonce: `${login.nonce}\n` }, { providerId: 'keyed' }]) {
    const phone = createPhone({ url: admin.url, app, version: '3.3' })
    const identityAttributes = { method: 'oidc', providerId: 'web', ...login, ...change }
    expectStatus(await phone.send(await phone.prepareActivation('', { layer1: { type: 'DIRECT', identityAttributes } })), 400)
  }
}

/** Has an app hand over to another one, whose code waits in the database, with malformed OTPs and a wrong one. */
async function visitTransfer(admin: Bank, bank: Bank, app: AppConfiguration, secrets: Secrets): Promise<void> {
  const applicationId = 'tour-other'
  const other = noteApplication(secrets, await admin.createApplication(applicationId))
  const transfers = [{ targets: [applicationId], type: 'SPAWN' }]
  expectStatus(await admin.call('PATCH', `/admin/applications/${APPLICATION}`, { transfers }), 200)
  const phone = createPhone({ url: admin.url, app, version: '3.3' })
  const userId = 'tour-transfer'
  const { code } = readQrCode(expectStatus(await bank.register(userId), 200))
  secrets.addText('activation code', code)
  await phone.activate(code)
  expectStatus(await bank.commit(userId), 200)
  const otp = b64(random(18))
  secrets.addText('OTP of both apps', otp)
  const [path, resourceId] = ['/api/activation/code', '/api/activation/code']
  const prepare = (requestObject: object) =>
    phone.prepareSignedEncrypted({ path, resourceId, plaintext: Buffer.from(JSON.stringify({ requestObject })) })
  expectStatus(await phone.send(await prepare({ applicationId, otp: `${otp}é` })), 400)
  expectStatus(await phone.send(await prepare({ applicationId: 'none', otp })), 400)
  const answer = await phone.exchange(await prepare({ applicationId, otp }))
  const activationCode = String(member(answer, 'responseObject', 'activationCode'))
  secrets.addText('activation code of the other app', activationCode)
  const next = createPhone({ url: admin.url, app: other, version: '3.3' })
  const wrong = `wrong-${b64(random(18))}`
  secrets.addText('wrong OTP of both apps', wrong)
  expectStatus(await next.send(await next.prepareActivation(activationCode, { layer2: { activationOtp: wrong } })), 400)
  note(secrets, phone)
}

async function usePhone(phone: VirtualPhone, secrets: Secrets): Promise<void> {
  await phone.readStatus({ withChallenge: true })
  await phone.readStatus({ withChallenge: false })
  for (const factors of ['possession', 'possession_knowledge', 'possession_biometry'] as const) {
    await sendNoted(phone, phone.prepareValidation({ body: 'pay', factors }), 200, secrets)
  }
  await sendNoted(phone, phone.prepareValidation({ method: 'GET', query: 'amount=1' }), 200, secrets)
  for (const method of ['PUT', 'DELETE']) await sendNoted(phone, phone.prepareValidation({ method }), 200, secrets)
  await phone.fetchTemporaryKey('application')
  await phone.fetchTemporaryKey('activation')
  const gone = await phone.createToken('possession')
  const token = await phone.createToken()
  note(secrets, phone)
  await phone.exchange(phone.prepareTokenRemove(gone.id))
  await phone.exchange(await phone.prepareDetail(token))
  await phone.exchange(await phone.prepareUserInfo())
  await phone.exchange(await phone.prepareRename('Renamed phone'))
  secrets.addBytes('vault key', await phone.exchange(await phone.prepareVaultUnlock()))
  note(secrets, phone)
}

/** Sends wrong codes, digests and envelopes until the activation is blocked. The bank unblocks it. */
async function refusePhone(phone: VirtualPhone, bank: Bank, userId: string, secrets: Secrets): Promise<void> {
  const [token] = phone.state.tokens.slice(-1)
  if (!token) throw new Error('the phone has no token')
  const wrongKeys = { knowledge: random(16) }
  secrets.addBytes('key of a wrong PIN', wrongKeys.knowledge)
  expectStatus(await phone.send(await phone.prepareVaultUnlock({ factors: 'possession' })), 400)
  expectStatus(await phone.send(await phone.prepareVaultUnlock({ wrongKeys })), 401)
  expectStatus(await phone.send(await phone.prepareTokenCreate({ wrongKeys })), 401)
  expectStatus(await phone.send(await phone.prepareRename('wrong', { wrongKeys })), 401)
  expectStatus(await phone.send(phone.prepareRemove({ wrongKeys })), 401)
  expectStatus(await phone.send(await phone.prepareDetail({ ...token, secret: wrongKeys.knowledge })), 401)
  expectStatus(
    await phone.send(await phone.prepareUserInfo({ alterEnvelope: (envelope) => ({ ...envelope, mac: b64(random(32)) }) })),
    400,
  )
  await sendNoted(phone, phone.prepareValidation({ wrongKeys }), 401, secrets)
  await sendNoted(phone, phone.prepareValidation(), 401, secrets)
  expectStatus(await bank.change(userId, 'UNBLOCK'), 200)
  expectStatus(await bank.change(userId, 'BLOCK', { blockReason: 'LOST' }), 200)
  expectStatus(await bank.change(userId, 'UNBLOCK'), 200)
  note(secrets, phone)
}

/** Notes every present secret of the phone: keys, device key, counter, tokens. */
function note(secrets: Secrets, phone: VirtualPhone): void {
  for (const [name, bytes] of Object.entries(phone.secrets())) secrets.addBytes(`${name} of a phone`, bytes)
}

/** Sends a request and notes the counter and the code, which from 3.1 on is long enough for a search. */
async function sendNoted(phone: VirtualPhone, request: Prepared<unknown>, status: number, secrets: Secrets): Promise<void> {
  secrets.addBytes('ctrData of a phone', phone.state.ctrData)
  const header = Object.values(request.headers).find((value) => value.includes('pa_signature=')) ?? ''
  const [, code = ''] = /pa_signature="([^"]+)"/.exec(header) ?? []
  if (code.length > 20) secrets.addText('authentication code', code)
  expectStatus(await phone.send(request), status)
}

/** Sends secrets in wrong places: queries, paths, malformed bodies, wrong headers. pawl serves none of these requests. */
async function visitWrongPlaces(admin: Bank, app: AppConfiguration, secrets: Secrets): Promise<void> {
  const { url } = admin
  const password = 'misplaced-password-of-the-bank'
  const key = b64(random(16))
  secrets.addText('misplaced password', password)
  secrets.addBytes('misplaced key', unb64(key))
  const inQuery = `password=${password}&key=${encodeURIComponent(key)}`
  for (const path of [
    '/registration',
    '/admin/application',
    '/admin/users',
    '/pa/v3/status',
    '/pa/v3/signature/validate',
    '/unknown',
  ]) {
    for (const method of ['GET', 'POST', 'PUT']) {
      const headers = basicAuthorization(admin.credential)
      const reply = await send(url, { method, path: `${path}?${inQuery}`, headers, body: NO_BODY })
      if (reply.status >= 500) throw new Error(`${method} ${path}: HTTP ${reply.status} ${reply.text}`)
    }
  }
  for (const path of [`/${password}`, `/pa/v3/${password}`, `/pa/v3/%zz${password}`, `/%zz?${inQuery}`]) {
    expectClientError(await sendJson(url, 'GET', path))
  }
  await visitWrongBodies(admin, password, key)
  await visitWrongHeaders(admin, app, password, key)
  await sendGarbage(url, password)
}

async function visitWrongBodies(admin: Bank, password: string, key: string): Promise<void> {
  const { url } = admin
  const whole = JSON.stringify({ username: 'misplaced', role: 'integration', password, key })
  for (const body of [whole.slice(0, -1), `${whole},`, password, `"${password}"`, `[${whole}]`]) {
    expectClientError(await admin.callRaw('POST', '/admin/users', body, 'application/json'))
    expectClientError(await admin.callRaw('POST', '/registration', body, 'application/json'))
    expectClientError(await sendBody(url, '/pa/v3/keystore/create', body))
    expectClientError(await sendBody(url, '/pa/v3/activation/status', body))
    expectClientError(await sendBody(url, '/pa/v3/activation/create', body))
  }
  expectClientError(await admin.callRaw('POST', '/admin/users', whole, 'text/plain'))
  expectClientError(await admin.call('POST', '/admin/users', { username: 'misplaced', role: password, password: [password] }))
  expectClientError(
    await admin.call('POST', '/admin/users', { username: 'misplaced', role: 'integration', application: 'none', password }),
  )
  expectClientError(await admin.call('POST', `/admin/users/${password}/password`, { password }))
  const jwt = hs256Jwt({ applicationKey: key, activationId: key, challenge: key, password }, random(16))
  expectClientError(await sendJson(url, 'POST', '/pa/v3/keystore/create', { requestObject: { jwt } }))
  expectClientError(await sendJson(url, 'POST', '/pa/v3/keystore/create', { requestObject: { jwt: password } }))
  await sendJson(url, 'POST', '/pa/v3/activation/status', { requestObject: { activationId: key, challenge: password } })
}

async function visitWrongHeaders(admin: Bank, app: AppConfiguration, password: string, key: string): Promise<void> {
  const { url } = admin
  for (const value of [`Basic ${password}`, `Basic ${b64(Buffer.from(password))}`, `Bearer ${password}`, password]) {
    expectStatus(await sendJson(url, 'GET', '/registration?userId=x', undefined, { Authorization: value }), 401)
  }
  const stranger = createPhone({ url, app, version: '3.1' })
  stranger.state.activationId = '6fc4f0e4-6ab0-4d02-a5ba-0bd1bd8a2d5a'
  stranger.state.ctrData = random(16)
  stranger.state.serverPublicKey = app.masterPublicKey
  const own = random(16)
  stranger.state.keys = {
    masterSecret: own,
    possession: own,
    knowledge: own,
    biometry: own,
    transport: own,
    transportIv: own,
    transportCtr: own,
    vault: own,
  }
  for (const pair of [
    'pa_activation_id',
    'pa_application_key',
    'pa_nonce',
    'pa_signature_type',
    'pa_signature',
    'pa_version',
    'password',
  ]) {
    expectClientError(await stranger.send(withPair(stranger.prepareValidation(), pair, key)))
    expectClientError(await stranger.send(withPair(stranger.prepareValidation(), pair, password)))
  }
  for (const pair of ['application_key', 'activation_id', 'version']) {
    expectClientError(await stranger.send(withPair(await stranger.prepareUserInfo(), pair, key)))
    expectClientError(await stranger.send(withPair(await stranger.prepareUserInfo(), pair, app.applicationSecret)))
  }
  for (const name of [
    'X-PowerAuth-Authorization',
    'X-PowerAuth-Encryption',
    'X-PowerAuth-Token',
    'X-Svc-Token',
    'User-Agent',
    'Cookie',
  ]) {
    const request = stranger.prepareValidation()
    expectClientError(await stranger.send(withHeader(request, name, `PowerAuth ${password} key="${key}"`)))
  }
}

/** Sends bytes that are no HTTP. The server answers 400 and closes the connection. */
function sendGarbage(url: string, password: string): Promise<void> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname)
    socket.once('error', reject)
    socket.once('close', () => resolve())
    socket.resume()
    socket.end(`GET /?password=${password} HTTP/1.1\r\nContent-Length: ${password}\r\nX-Password: ${password}\r\n\r\n`)
  })
}

const sendBody = (url: string, path: string, body: string): Promise<HttpReply> =>
  send(url, { method: 'POST', path, headers: { 'Content-Type': 'application/json' }, body: Buffer.from(body) })

function expectStatus(reply: HttpReply, status: number): HttpReply {
  if (reply.status !== status) throw new Error(`HTTP ${reply.status} instead of ${status}: ${reply.text}`)
  return reply
}

function expectClientError(reply: HttpReply): void {
  if (reply.status < 400 || reply.status >= 500) throw new Error(`HTTP ${reply.status} instead of a refusal: ${reply.text}`)
}
