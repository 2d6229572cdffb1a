// The first hour in one command: a phone is bound to a user, signs a request, and approves two payments, one without a connection. Every
// step of the bank is printed as the curl command that does the same.
import { join } from 'node:path'
import { member } from '../phone/http.ts'
import type { OperationQr } from '../phone/operations.ts'
import type { Prepared } from '../phone/state.ts'
import { PHONE_ALGORITHMS } from '../phone/v4-crypto.ts'
import { BANK_OPTIONS, BANK_USAGE, type BankApi, type BankCall, callBank, phonesUrl, readBank } from './bank-api.ts'
import { runCommand, UsageError } from './command-line.ts'
import { createDemoPhone, type DemoPhone, type ListedOperation, loadDemoPhone, type PhoneIdentity } from './demo-phone.ts'

const FIRST_APPLICATION = process.env['PAWL_FIRST_APPLICATION'] || 'my-app'

const usage = `Binds a virtual phone to a user of a running server, has it sign a request, and lets it approve two payments:
  npm run demo -- --admin USER:PASSWORD [--user alice] [--algorithm NAME] [--url URL] [--phones-url URL] [--phone FILE]
  npm run demo -- approve [OPERATION-ID]
The second approves what waits for that phone, or one operation of it. The application is the server's default one; where there is none,
${FIRST_APPLICATION} is created.
${BANK_USAGE}
  --phones-url URL       where phones reach the server; by default --url, or on this machine at PAWL_PORT or 8080
  --algorithm NAME       a phone of protocol 4.0: ${PHONE_ALGORITHMS.join(', ')}; without it, of 3.3
  --phone FILE           where the phone is kept; by default demo-phone.json in PAWL_DATA_DIR or ./data`

const options = {
  ...BANK_OPTIONS,
  user: { type: 'string', default: 'alice' },
  algorithm: { type: 'string' },
  'phones-url': { type: 'string' },
  phone: { type: 'string', default: join(process.env['PAWL_DATA_DIR'] || 'data', 'demo-phone.json') },
} as const

const LABEL_WIDTH = 16
const PAYMENTS = [
  { amount: '10.00', currency: 'EUR', iban: 'DE89370400440532013000' },
  { amount: '250.00', currency: 'EUR', iban: 'FR7630006000011234567890189' },
] as const

await runCommand({ usage, options, wordsMax: 2 }, async ({ values, words: [command, operationId] }) => {
  if (command === 'approve') return approveWaiting(values.phone, operationId)
  if (command !== undefined) throw new UsageError(`${command} is no command`)
  const algorithm = PHONE_ALGORITHMS.find((name) => name === values.algorithm)
  if (values.algorithm !== undefined && algorithm === undefined)
    throw new Error(`--algorithm must be one of ${PHONE_ALGORITHMS.join(', ')}`)
  const bank = readBank(values, process.env)
  const url = values['phones-url'] ?? values.url?.replace(/\/+$/, '') ?? phonesUrl(process.env)
  const applicationId = await chooseApplication(bank)
  const app = await readApp(bank, applicationId)
  const identity = { url, applicationId, userId: values.user, app, ...(algorithm && { algorithm }) }
  return demonstrate(bank, identity, values.phone)
})

async function demonstrate(bank: BankApi, identity: PhoneIdentity, file: string): Promise<void> {
  await makeRoom(bank, identity, file)
  const phone = createDemoPhone(identity)
  try {
    await bind(bank, phone)
    await signTwice(phone)
    await approveOnline(bank, phone)
    await approveOffline(bank, phone)
    offerRequest(phone)
  } finally {
    phone.save(file)
  }
}

/** The default application, on which an administrator acts; a first one when there is none. */
async function chooseApplication(bank: BankApi): Promise<string> {
  const { applications } = (await callBank(bank, { method: 'GET', path: '/admin/applications' })) as {
    applications: { id: string; isDefault: boolean }[]
  }
  print('Each indented curl command is what a back end of the bank sends; to repeat one, set ADMIN to the credential.')
  const existing = applications.find(({ isDefault }) => isDefault)?.id
  if (existing !== undefined) {
    print(`\nThe application is ${existing}.`)
    return existing
  }
  await step(bank, 'There is no application yet. The bank makes one:', 'POST', '/admin/application', { id: FIRST_APPLICATION })
  return FIRST_APPLICATION
}

async function readApp(bank: BankApi, applicationId: string): Promise<PhoneIdentity['app']> {
  const id = encodeURIComponent(applicationId)
  const [values, detail] = await Promise.all([
    callBank(bank, { method: 'GET', path: `/admin/application?id=${id}` }),
    callBank(bank, { method: 'GET', path: `/admin/applications/${id}` }),
  ])
  const text = (answer: unknown, name: string): string => String(member(answer, 'responseObject', name))
  return {
    appKey: text(values, 'appKey'),
    appSecret: text(values, 'appSecret'),
    masterServerPublicKey: text(values, 'masterServerPublicKey'),
    mobileSdkConfig: text(detail, 'mobileSdkConfig'),
  }
}

/** A user has one registration: that of an earlier demo goes, any other stays. */
async function makeRoom(bank: BankApi, { url, applicationId, userId }: PhoneIdentity, file: string): Promise<void> {
  const path = `/registration?userId=${encodeURIComponent(userId)}`
  const { registration } = (await callBank(bank, { method: 'GET', path })) as { registration: string }
  if (registration === 'NONE') return
  const earlier = loadDemoPhone(file)?.identity
  if (earlier?.url !== url || earlier.applicationId !== applicationId || earlier.userId !== userId)
    throw new Error(`${userId} has a registration that is not of this demo (${registration}): --user names another user`)
  await step(bank, `${userId} has the phone of an earlier demo. The bank removes it:`, 'DELETE', path)
}

async function bind(bank: BankApi, phone: DemoPhone): Promise<void> {
  const { userId, algorithm } = phone.identity
  const registered = await step(bank, `The bank registers ${userId} and shows the code as a QR code:`, 'POST', '/registration', {
    userId,
  })
  const [code = ''] = String(member(registered, 'activationQrCodeData')).split('#')
  const fingerprint = await phone.bind(code)
  print(`\nThe phone scans it and exchanges keys by protocol ${algorithm === undefined ? '3.3' : `4.0 (${algorithm})`}.`)
  print(`It shows the fingerprint ${fingerprint}, which the bank sees too:`)
  await step(bank, undefined, 'GET', `/registration?userId=${encodeURIComponent(userId)}`)
  await step(bank, 'They are equal, so the bank commits:', 'POST', '/registration/commit', { userId })
  await phone.begin()
  print(`\nUser ${userId} is bound to activation ${phone.activationId}.`)
}

async function signTwice(phone: DemoPhone): Promise<void> {
  const request = phone.prepareSigned('{"any":"request"}')
  const answers = [await phone.send(request), await phone.send(request)].map(({ status, text }) => `HTTP ${status} ${text}`)
  print(`\nThe phone signs a request and sends it: ${answers[0]}`)
  print(`The same request once more: ${answers[1]}`)
}

async function approveOnline(bank: BankApi, phone: DemoPhone): Promise<void> {
  const operationId = await askForPayment(bank, phone, 'The bank asks for an approval:', PAYMENTS[0])
  const operation = (await phone.list()).find(({ id }) => id === operationId)
  if (operation === undefined) throw new Error(`the phone does not list ${operationId}`)
  print(`\nThe phone lists it, and shows its user:\n${draw(operation)}`)
  await phone.approve(operation)
  print(`\nThe user types the PIN. The phone signs ${operation.data} and sends the approval. The bank asks what became of it:`)
  await step(bank, undefined, 'GET', `/operations?operationId=${operationId}`)
}

async function approveOffline(bank: BankApi, phone: DemoPhone): Promise<void> {
  const operationId = await askForPayment(bank, phone, 'A second payment, and now the phone has no connection:', PAYMENTS[1])
  const path = `/operations/offline/qr?operationId=${operationId}`
  const answer = await step(bank, 'The bank asks for a QR code and shows it:', 'GET', path)
  const qr = phone.scan(String(member(answer, 'operationQrCodeData')))
  print(`\nThe phone scans it, finds it signed by the bank, and shows its user:\n${drawQr(qr)}`)
  const otp = phone.computeOtp(qr)
  print(`\nThe user types the PIN and reads ${otp} from the phone to the bank:`)
  await step(bank, undefined, 'POST', '/operations/offline/otp', { operationId, otp, nonce: qr.nonce })
  await step(bank, undefined, 'GET', `/operations?operationId=${operationId}`)
}

async function askForPayment(
  bank: BankApi,
  { identity: { userId } }: DemoPhone,
  text: string,
  parameters: Record<string, string>,
): Promise<string> {
  const answer = await step(bank, text, 'POST', '/operations', { userId, template: 'payment', parameters })
  return String(member(answer, 'operationId'))
}

/** Made last: the codes that the phone made before it are older, and the server takes none that is older than the last. */
function offerRequest(phone: DemoPhone): void {
  const { url } = phone.identity
  const request = phone.prepareSigned('{"amount":"100","currency":"EUR"}')
  print('\nThis request is signed by the phone. Paste it twice: the first is verified, the second is refused.\n')
  print(renderSigned(url, request))
  print('\nThe phone stays bound. What the bank asks of its user from now on: npm run demo -- approve')
}

async function approveWaiting(file: string, operationId: string | undefined): Promise<void> {
  const phone = loadDemoPhone(file)
  if (phone === undefined) throw new Error(`there is no phone in ${file}: run the demo with --admin first`)
  const { userId } = phone.identity
  const waiting = (await phone.list()).filter(({ id }) => operationId === undefined || id === operationId)
  if (waiting.length === 0) print(operationId === undefined ? `Nothing waits for ${userId}.` : `${operationId} does not wait.`)
  if (waiting.length === 0 && operationId !== undefined) process.exitCode = 1
  try {
    for (const operation of waiting) {
      print(draw(operation))
      await phone.approve(operation)
      print(`The phone of ${userId} approved ${operation.id}.`)
    }
  } finally {
    phone.save(file)
  }
}

/** Prints what is done and how, does it, prints the answer and returns it. */
async function step(bank: BankApi, text: string | undefined, method: string, path: string, body?: unknown): Promise<unknown> {
  if (text !== undefined) print(`\n${text}`)
  print(`  ${renderCurl(bank.url, { method, path, body })}`)
  const answer = await callBank(bank, { method, path, body })
  print(`  ${JSON.stringify(answer)}`)
  return answer
}

function renderCurl(url: string, { method, path, body }: BankCall): string {
  const json = method === 'GET' ? [] : [`-H 'Content-Type: application/json'`, `-d ${quote(JSON.stringify(body ?? {}))}`]
  const verb = method === 'GET' || method === 'POST' ? [] : [`-X ${method}`]
  return ['curl', `-w '\\n'`, '-u "$ADMIN"', ...verb, ...json, quote(url + path)].join(' ')
}

function renderSigned(url: string, { method, path, headers, body }: Prepared<unknown>): string {
  const given = Object.entries(headers).map(([name, value]) => `-H ${quote(`${name}: ${value}`)}`)
  return ['curl', `-w '\\n'`, `-X ${method}`, url + path, ...given, `-d ${quote(Buffer.from(body).toString())}`].join(' ')
}

/** One word of a shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

/** What the user of the phone sees before the PIN is typed. */
function draw({ formData: { title, message, attributes } }: ListedOperation): string {
  const rows = attributes.map((attribute) => {
    const value = attribute['valueFormatted'] ?? attribute['value'] ?? attribute['note'] ?? ''
    return `${String(attribute['label'] ?? '').padEnd(LABEL_WIDTH)}${String(value)}`
  })
  return frame([title, message, ...rows])
}

/** A QR code has title, message and the signed data alone; phones take the data apart. */
function drawQr({ title, message, data }: OperationQr): string {
  return frame([title, message, data])
}

function frame(lines: readonly string[]): string {
  const width = Math.max(...lines.map((line) => line.length))
  const edge = `  +-${'-'.repeat(width)}-+`
  return [edge, ...lines.map((line) => `  | ${line.padEnd(width)} |`), edge].join('\n')
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
