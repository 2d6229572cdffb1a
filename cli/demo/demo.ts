// Runs the demo: binds a phone to a user, has it approve two payments, one of them without a connection, and reject a third, and shows the
// messages of a webhook. Prints every step of the bank as the curl command that does the same.
import { setTimeout as sleep } from 'node:timers/promises'
import { newHandset, openHandset } from '../../phone/handset-open.ts'
import type { Handset, HandsetIdentity, ListedOperation } from '../../phone/handset.ts'
import { member } from '../../phone/http.ts'
import { PHONE_ALGORITHMS, type PhoneAlgorithm } from '../../phone/v4/crypto.ts'
import { findDefaultApplication, readApplication, sdkConfigOf } from '../applications.ts'
import { type Bank, type BankValues, connectBank, openBank } from '../bank.ts'
import type { Answer, Terminal } from '../command.ts'
import { readCredential } from '../credential-store.ts'
import { phonesUrl, readUrl } from '../environment.ts'
import { Fault, usageFault } from '../fault.ts'
import { toPath, toQuery } from '../query.ts'
import { drawOperation, drawScanned, quote } from '../phone/screen.ts'
import { readSdk } from '../phone/sdk.ts'
import type { PhoneValues } from '../phone/options.ts'
import { openPhones, toFault } from '../phone/session.ts'
import type { PhoneStore } from '../phone/store.ts'
import { isServing, startOwnServer, startServerToThrowAway } from './own-server.ts'
import { type Receiver, startReceiver } from './receiver.ts'

export interface DemoValues extends BankValues, PhoneValues {
  readonly user: string | undefined
  readonly algorithm: string | undefined
  readonly phonesUrl: string | undefined
  readonly webhookServer: boolean
}

/** The terminal, the server and the user of a demo. */
interface Demo {
  readonly say: (line: string) => void
  readonly bank: Bank
  readonly userId: string
  readonly applicationId: string
  readonly identity: HandsetIdentity
  readonly store: PhoneStore
}

/** The name of the demo's phone in the file of phones, and the password of that phone. */
const PHONE_NAME = 'demo'
const PASSWORD = '1234'
const UNLOCK = { password: PASSWORD }

const PAYMENTS = [
  { amount: '10.00', currency: 'EUR', iban: 'DE89370400440532013000' },
  { amount: '250.00', currency: 'EUR', iban: 'FR7630006000011234567890189' },
  { amount: '9999.00', currency: 'EUR', iban: 'GB29NWBK60161331926819' },
] as const

/** Runs the demo against the server of the options and settings, or against a server of its own when none runs. */
export async function runDemo(values: DemoValues, terminal: Terminal, isJson: boolean): Promise<Answer> {
  const algorithm = PHONE_ALGORITHMS.find((name) => name === values.algorithm)
  if (values.algorithm !== undefined && algorithm === undefined)
    throw usageFault(`--algorithm must be one of ${PHONE_ALGORITHMS.join(', ')}`)
  const say = (line: string): void => (isJson ? terminal.note(line) : terminal.write(`${line}\n`))
  const hasCredential = values.admin ?? values.adminFile ?? (terminal.env['PAWL_ADMIN'] || readCredential(terminal.env))
  if (hasCredential !== undefined || values.url !== undefined || (await isServing(terminal.env)))
    return demonstrate({ ...values, algorithm }, openBank(values, terminal), terminal, say)
  say('No server runs here yet: the demo starts one, as pawl serve does.')
  const server = await startOwnServer(terminal.env)
  try {
    const bank = connectBank(server.url, server.admin, terminal.env)
    const answer = await demonstrate({ ...values, algorithm }, bank, terminal, say)
    say(
      `Its server stops now; npm start starts it again. Administrator: ${server.admin.replace(':', ', password: ')} (shown only now)`,
    )
    return answer
  } finally {
    await server.close()
  }
}

type Meant = DemoValues & { readonly algorithm: PhoneAlgorithm | undefined }

async function demonstrate(values: Meant, bank: Bank, terminal: Terminal, say: Demo['say']): Promise<Answer> {
  const applicationId = await makeApplication(bank, say, terminal)
  const identity = await readIdentity(values, bank, applicationId, terminal)
  const store = await openPhones(values, terminal, false)
  try {
    const demo: Demo = { say, bank, userId: values.user ?? 'alice', applicationId, identity, store }
    await makeRoom(demo)
    const phone = await bind(demo)
    await signTwice(demo, phone)
    const { done: decided, isTold } = await withWebhook(demo, 2 * PAYMENTS.length, async () => [
      ['APPROVED', await approveOnline(demo, phone)],
      ['APPROVED', await approveOffline(demo, phone)],
      ['REJECTED', await rejectThird(demo, phone)],
    ])
    if (!isTold && values.webhookServer) await showWebhookElsewhere(demo, values, terminal)
    offerRequest(demo, phone)
    const operations = decided.map(([status, operationId]) => ({ operationId, status }))
    return { json: { application: applicationId, user: demo.userId, phone: PHONE_NAME, store: store.path, operations }, text: '' }
  } catch (error) {
    throw toFault(error, identity.url)
  } finally {
    store.close()
  }
}

/** Returns the id of the default application; creates a first application when there is none. */
async function makeApplication(bank: Bank, say: Demo['say'], { env }: Terminal): Promise<string> {
  const existing = await findDefaultApplication(bank)
  say("Each indented curl command is what a back end of the bank sends; to repeat one, first set ADMIN='NAME:PASSWORD'.")
  if (existing !== undefined) {
    say(`\nThe application is ${existing}.`)
    return existing
  }
  const id = env['PAWL_FIRST_APPLICATION'] || 'my-app'
  await step({ say, bank }, 'There is no application yet. The bank makes one:', 'POST', '/admin/application', { id })
  return id
}

async function readIdentity(values: Meant, bank: Bank, applicationId: string, { env }: Terminal): Promise<HandsetIdentity> {
  const url = values.phonesUrl ?? (env['PAWL_INTERNAL_PORT'] && values.url === undefined ? phonesUrl(env) : bank.url)
  const { algorithm } = values
  return {
    url: readUrl(url),
    dialect: 'PowerAuth',
    version: algorithm === undefined ? '3.3' : '4.0',
    ...(algorithm !== undefined && { algorithm }),
    app: readSdk(sdkConfigOf(await readApplication(bank, applicationId))),
  }
}

/** Removes the registration of an earlier demo, because a user has only one. Throws a Fault for any other registration. */
async function makeRoom(demo: Demo): Promise<void> {
  const { bank, userId, applicationId, store, identity } = demo
  const path = `/registration${toQuery({ userId })}`
  const { registration } = await bank.call<{ registration: string }>('GET', path)
  const earlier = store.phones.get(PHONE_NAME)
  const isOfDemo = earlier?.identity.url === identity.url && (await isPhoneOf(demo, earlier.state.activationId))
  if (registration === 'NONE') return
  if (!isOfDemo)
    throw new Fault(
      'refused',
      `${userId} has a registration in ${applicationId} that is not of this demo (${registration}): --user names another user`,
    )
  await step(demo, `${userId} has the phone of an earlier demo. The bank removes it:`, 'DELETE', path)
}

async function isPhoneOf({ bank, userId, applicationId }: Demo, activationId: string): Promise<boolean> {
  const path = toPath`/admin/applications/${applicationId}/registrations` + toQuery({ userId })
  const { registrations } = await bank.call<{ registrations: { activationId: string }[] }>('GET', path)
  return registrations.some((one) => one.activationId === activationId)
}

async function bind(demo: Demo): Promise<Handset> {
  const { say, userId, identity, store } = demo
  const registered = await step(demo, `The bank registers ${userId} and shows the code as a QR code:`, 'POST', '/registration', {
    userId,
  })
  const [code = ''] = String(member(registered, 'activationQrCodeData')).split('#')
  const phone = newHandset(identity, (record) => {
    if (record.state.activationId !== '') store.phones.set(PHONE_NAME, record)
    store.save()
  })
  const fingerprint = await phone.bind(code, 'Phone of the demo', PASSWORD)
  say(
    `\nThe phone scans it and exchanges keys by protocol ${identity.algorithm === undefined ? '3.3' : `4.0 (${identity.algorithm})`}.`,
  )
  say(`It shows the fingerprint ${fingerprint}, which the bank sees too:`)
  await step(demo, undefined, 'GET', `/registration${toQuery({ userId })}`)
  await step(demo, 'They are equal, so the bank commits:', 'POST', '/registration/commit', { userId })
  await phone.confirm(UNLOCK)
  await phone.createToken(UNLOCK)
  say(`\nUser ${userId} is bound to activation ${phone.record.state.activationId}.`)
  return openHandset(phone.record, store.save)
}

const prepareSigned = (phone: Handset, body: string) => phone.sign({ ...phone.generation.validation, body }, UNLOCK)

async function signTwice({ say }: Demo, phone: Handset): Promise<void> {
  const request = prepareSigned(phone, '{"any":"request"}')
  const answers = [await phone.transfer(request), await phone.transfer(request)].map(
    ({ status, text }) => `HTTP ${status} ${text}`,
  )
  say(`\nThe phone signs a request and sends it: ${answers[0]}`)
  say(`The same request once more: ${answers[1]}`)
}

/** Runs `work` with a webhook to this machine, and shows its `messages`. `isTold` is false when the server sends nothing to this machine. */
async function withWebhook<T>(
  demo: Demo,
  messages: number,
  work: () => Promise<T>,
): Promise<{ readonly done: T; readonly isTold: boolean }> {
  const receiver = await startReceiver()
  try {
    const webhook = await createWebhook(demo, receiver)
    const done = await work()
    if (webhook !== undefined) await showMessages(demo, receiver, webhook, messages)
    return { done, isTold: webhook !== undefined }
  } finally {
    receiver.close()
  }
}

/** Shows a webhook with one payment at a temporary server that may send to this machine, so that the bank's server keeps its settings. */
async function showWebhookElsewhere({ say, userId }: Demo, values: Meant, terminal: Terminal): Promise<void> {
  say(
    '\nTo show a webhook, the demo starts a second server with an empty database. This server may send to this machine. The demo ends it afterwards.',
  )
  const server = await startServerToThrowAway(terminal.env)
  try {
    const bank = connectBank(server.url, server.admin, {})
    const there = { ...terminal, env: {} }
    const quiet = (): void => undefined
    const applicationId = await makeApplication(bank, quiet, there)
    const identity = await readIdentity({ ...values, url: server.url, phonesUrl: undefined }, bank, applicationId, there)
    const store: PhoneStore = { path: '', phones: new Map(), isSealed: false, save: quiet, close: quiet }
    const demo: Demo = { say: quiet, bank, userId, applicationId, identity, store }
    const phone = await bind(demo)
    await withWebhook({ ...demo, say }, 2, () => approveOnline({ ...demo, say }, phone))
  } finally {
    await server.close()
  }
}

async function createWebhook(demo: Demo, receiver: Receiver): Promise<string | undefined> {
  const { say, applicationId: application } = demo
  const body = { application, kind: 'OPERATION', name: 'demo', url: receiver.url, attributes: ['status', 'userId'] }
  try {
    const answer = await step(
      demo,
      'The bank wants to be told of operations, and listens on this machine:',
      'POST',
      '/admin/webhooks',
      body,
    )
    receiver.expectSecret(String(member(answer, 'secret')))
    return String(member(answer, 'id'))
  } catch (error) {
    if (!(error instanceof Fault && error.kind === 'refused')) throw error
    say('  This server sends to https and public addresses alone, as it should, so it makes no webhook for the demo.')
    say('  PAWL_WEBHOOK_ALLOW_HTTP=true and PAWL_WEBHOOK_ALLOW_PRIVATE_ADDRESSES=true would let it.')
    return undefined
  }
}

const DELIVERY_MS = 20_000

async function showMessages(demo: Demo, receiver: Receiver, webhook: string, messages: number): Promise<void> {
  const { say } = demo
  const end = performance.now() + DELIVERY_MS
  while (receiver.messages.length < messages && performance.now() < end) await sleep(50)
  say('\nThe bank was told of each change, and checks the signature of every message:')
  for (const { text, signature, isGenuine } of receiver.messages) {
    say(`  ${text}`)
    say(`  webhook-signature: ${signature} (${isGenuine ? 'right' : 'WRONG'})`)
  }
  if (!receiver.messages.every(({ isGenuine }) => isGenuine)) throw new Fault('refused', 'a message has a wrong signature')
  if (receiver.messages.length === 0) throw new Fault('refused', `no message came within ${DELIVERY_MS / 1000} s`)
  await step(demo, 'The demo needs the webhook no longer:', 'DELETE', toPath`/admin/webhooks/${webhook}`)
}

async function approveOnline(demo: Demo, phone: Handset): Promise<string> {
  const operation = await listed(phone, await askForPayment(demo, 'The bank asks for an approval:', 0))
  demo.say(`\nThe phone lists it, and shows its user:\n${drawOperation(operation).trimEnd()}`)
  await phone.approve(operation, UNLOCK)
  demo.say(`\nThe user types the PIN. The phone signs ${operation.data} and sends the approval. The bank asks what became of it:`)
  await showState(demo, operation.id)
  return operation.id
}

async function approveOffline(demo: Demo, phone: Handset): Promise<string> {
  const operationId = await askForPayment(demo, 'A second payment, and now the phone has no connection:', 1)
  const path = `/operations/offline/qr${toQuery({ operationId })}`
  const answer = await step(demo, 'The bank asks for a QR code and shows it:', 'GET', path)
  const qr = phone.scan(String(member(answer, 'operationQrCodeData')))
  demo.say(`\nThe phone scans it, finds it signed by the bank, and shows its user:\n${drawScanned(qr).trimEnd()}`)
  const otp = phone.computeOtp(qr, UNLOCK)
  demo.say(`\nThe user types the PIN and reads ${otp} from the phone to the bank:`)
  await step(demo, undefined, 'POST', '/operations/offline/otp', { operationId, otp, nonce: qr.nonce })
  await showState(demo, operationId)
  return operationId
}

async function rejectThird(demo: Demo, phone: Handset): Promise<string> {
  const operation = await listed(phone, await askForPayment(demo, 'A third payment, which the user never ordered:', 2))
  demo.say(`\nThe phone shows it:\n${drawOperation(operation).trimEnd()}`)
  await phone.reject(operation.id, 'UNEXPECTED_OPERATION')
  demo.say('\nThe user rejects it:')
  await showState(demo, operation.id)
  return operation.id
}

async function askForPayment(demo: Demo, text: string, which: number): Promise<string> {
  const body = { userId: demo.userId, template: 'payment', parameters: PAYMENTS[which] }
  return String(member(await step(demo, text, 'POST', '/operations', body), 'operationId'))
}

const showState = (demo: Demo, operationId: string): Promise<unknown> =>
  step(demo, undefined, 'GET', `/operations${toQuery({ operationId })}`)

async function listed(phone: Handset, operationId: string): Promise<ListedOperation> {
  const operation = (await phone.list()).find(({ id }) => id === operationId)
  if (operation === undefined) throw new Fault('refused', `the phone does not list ${operationId}`)
  return operation
}

/** Prints a signed request. It is the phone's last code of the demo, because the server accepts no code that is older than the last one. */
function offerRequest({ say, identity, store }: Demo, phone: Handset): void {
  const { method, path, headers, body } = prepareSigned(phone, '{"amount":"100","currency":"EUR"}')
  const given = Object.entries(headers).map(([name, value]) => `-H ${quote(`${name}: ${value}`)}`)
  say('\nThis request is signed by the phone. Paste it twice: the first is verified, the second is refused.\n')
  say(['curl', `-w '\\n'`, `-X ${method}`, identity.url + path, ...given, `-d ${quote(Buffer.from(body).toString())}`].join(' '))
  say(`\nThe phone stays bound, in ${store.path}; its password is ${PASSWORD}. What the bank asks of its user from now on:`)
  say(`  PAWL_PHONE_PASSWORD=${PASSWORD} npx pawl phone list --phone ${PHONE_NAME}`)
  say(`  PAWL_PHONE_PASSWORD=${PASSWORD} npx pawl phone approve --all --phone ${PHONE_NAME}`)
}

/** Prints the text and the curl command of a call, makes the call, prints its answer and returns it. */
async function step(
  { say, bank }: Pick<Demo, 'say' | 'bank'>,
  text: string | undefined,
  method: string,
  path: string,
  body?: unknown,
): Promise<unknown> {
  if (text !== undefined) say(`\n${text}`)
  say(`  ${renderCurl(bank.url, method, path, body)}`)
  const answer = await bank.call(method, path, body)
  say(`  ${JSON.stringify(answer)}`)
  return answer
}

function renderCurl(url: string, method: string, path: string, body: unknown): string {
  const json = method === 'GET' ? [] : [`-H 'Content-Type: application/json'`, `-d ${quote(JSON.stringify(body ?? {}))}`]
  const verb = method === 'GET' || method === 'POST' ? [] : [`-X ${method}`]
  return ['curl', `-w '\\n'`, '-u "$ADMIN"', ...verb, ...json, quote(url + path)].join(' ')
}
