// Fills an installation so that every page of the console shows something, and signs a browser in.
import { existsSync } from 'node:fs'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { member } from '../../phone/http.ts'
import { createPhoneV4 } from '../../phone/v4/virtual-phone.ts'
import { readSdkConfiguration } from '../../phone/v4/state.ts'
import type { Bank } from './bank.ts'
import { readQrCode } from './bank.ts'
import { createCaller, RESOURCE, verdictOf } from './door.ts'
import { PATIENCE_MS } from './patience.ts'
import { expectOk, openWorld, type World } from './world.ts'

export const CHROMIUM = '/usr/bin/chromium'
export const hasChromium = existsSync(CHROMIUM)

export const launchChromium = (): Promise<Browser> => chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] })

export interface Furnished {
  readonly world: World
  readonly applicationId: string
  readonly auditor: { readonly user: string; readonly password: string }
  readonly activationOf: (userId: string) => string
  /** The user whose pages show the most. */
  readonly alice: string
  readonly pendingOperation: string
  readonly webhookId: string
  readonly deliveryId: string
  /** The id of a message in the inbox of alice. */
  readonly message: string
}

/**
 * Fills an installation: phones in every state, operations of every status, a webhook, pins, credentials. Each text that a phone or the bank
 * chooses contains `mark`.
 */
export async function furnish(url: string, admin: string, mark = ''): Promise<Furnished> {
  const applicationId = 'my-app'
  const advance = () => undefined
  const world = await openWorld({ urls: [url], admin, advance, close: async () => undefined }, applicationId)
  const { bank } = world
  const user = (name: string): string => `${name}${mark}`
  const ok = async (method: string, path: string, body?: unknown): Promise<unknown> =>
    expectOk(await bank.call(method, path, body)).json
  const activations = new Map<string, string>()
  await ok('POST', '/admin/application', { id: `second-app${mark}` })
  await ok('POST', '/admin/templates', transferTemplate(mark))
  const oneTry = `one-try${withoutDirection(mark)}`
  await ok('POST', '/admin/templates', { ...transferTemplate(mark), templateName: oneTry, maxFailureCount: 1, riskFlags: '' })
  await ok('POST', `/admin/applications/${applicationId}/versions`, { name: `2.0${mark}` })
  await ok('PATCH', `/admin/applications/${applicationId}`, { customObject: { note: `custom${mark}` } })
  const webhook = {
    application: applicationId,
    kind: 'OPERATION',
    name: `Core banking${mark}`,
    attributes: ['userId', 'parameters'],
  }
  // Nothing listens at this address, so the deliveries wait.
  const webhookId = String(
    member(await ok('POST', '/admin/webhooks', { ...webhook, url: 'https://receiver.invalid/pawl' }), 'id'),
  )

  const layer2 = {
    activationName: `Phone of Alice${mark}`,
    platform: 'ios',
    deviceInfo: `iPhone16,2${mark}`,
    extras: `extras${mark}`,
  }
  const bind = async (name: string, isCommitted = true) => {
    const { code } = readQrCode(await bank.register(user(name)))
    const phone = world.newPhone('3.3')
    await phone.activate(code, { layer2 })
    activations.set(name, phone.state.activationId)
    if (isCommitted) expectOk(await bank.commit(user(name)))
    return phone
  }
  const alice = await bind('alice')
  await bind('bob', false)
  await ok('POST', '/registration', { userId: user('carol') })
  const listed = await ok('GET', `/admin/applications/${applicationId}/registrations?state=CREATED`)
  activations.set('carol', String(member(listed, 'registrations', '0', 'activationId')))
  await bind('dave')
  expectOk(await bank.change(user('dave'), 'BLOCK', { blockReason: `LOST${mark}` }))
  activations.set('erin', await bindOf4(bank, url, applicationId, user('erin')))

  const create = async (template: string, parameters: Record<string, string>): Promise<string> =>
    String(
      member(
        expectOk(await bank.createOperation({ userId: user('alice'), template, parameters, externalId: `ext${mark}` })).json,
        'operationId',
      ),
    )
  const payment = (amount: string) => create('payment', { amount, currency: 'EUR', iban: 'DE89370400440532013000' })
  for (const amount of ['10.00', '1250.00', '42.50', '99.90', '7.20']) {
    const id = await payment(amount)
    await alice.exchange(alice.prepareAuthorize({ id, data: `A1*A${amount}EUR*IDE89370400440532013000` }))
  }
  for (const amount of ['900.00', '15.00'])
    await alice.exchange(alice.prepareReject(await payment(amount), { reason: `UNEXPECTED${mark}`.slice(0, 32) }))
  expectOk(await bank.cancelOperation(await payment('3.00'), `WITHDRAWN${mark}`.slice(0, 32)))
  const failed = await create(oneTry, TRANSFER(mark))
  await alice.send(alice.prepareAuthorize({ id: failed, data: 'A1*A1EUR*IXX' }))
  const doors = await createCaller(bank, 'web-tier', 'verification', applicationId)
  for (const [body, more] of [
    ['{"amount":1}', { auditText: `Transfer${mark}` }],
    ['{}', {}],
  ] as const)
    await verdictOf(doors, alice.prepareSigned({ method: 'POST', path: '/bank/transfer', resourceId: RESOURCE, body }), more)
  await verdictOf(doors, alice.prepareSigned({ method: 'POST', path: '/bank/transfer', resourceId: RESOURCE, body: '{}' }), {
    resourceId: '/other',
  })
  await create('login', {})
  const pendingOperation = await create('transfer', TRANSFER(mark))

  const domains = `/admin/apps/${applicationId}/certificates/fingerprint`
  const pin = (domain: string, days: number) => ({
    domain,
    fingerprint: Buffer.from(domain.padEnd(32, '.')).subarray(0, 32).toString('base64'),
    expires: Math.floor(Date.now() / 1000) + days * 86_400,
  })
  await ok('POST', domains, pin('api.bank.example', 210))
  await ok('POST', domains, pin('login.bank.example', 12))
  await ok('PUT', `/admin/applications/${applicationId}/config/payments.limit`, { value: { daily: 500, note: `per day${mark}` } })
  const write = async (subject: string, more: Record<string, string>): Promise<string> => {
    const body = { userId: user('alice'), subject: `${subject}${mark}`, ...more }
    return String(member(await ok('POST', '/inbox/messages', body), 'messageId'))
  }
  await write('Welcome', { summary: `Hello${mark}`, body: `Your phone is bound.${mark}` })
  const html = `<p>On <b>Sunday</b> from 2 to 3, payments wait.</p>${mark}`
  const message = await write('Maintenance on Sunday', { summary: 'Payments wait for an hour', type: 'html', body: html })
  await ok('POST', '/admin/users', {
    username: `core${mark.replaceAll(':', '')}`,
    role: 'integration',
    application: applicationId,
  })
  const sent = await ok('GET', `/admin/webhooks/${webhookId}/deliveries?limit=1`)
  const auditor = await ok('POST', '/admin/users', { username: 'auditor', role: 'read-only' })
  return {
    world,
    applicationId,
    auditor: { user: 'auditor', password: String(member(auditor, 'password')) },
    alice: user('alice'),
    activationOf: (name) => activations.get(name) ?? '',
    pendingOperation,
    webhookId,
    deliveryId: String(member(sent, 'deliveries', '0', 'id')),
    message,
  }
}

/** Names of users: written from the right, with signs, as long as a line, and many with the same beginning. */
export const MANY_USERS: readonly string[] = [
  ...Array.from({ length: 26 }, (_, i) => `Customer-${i + 1}`),
  'محمد عبد الله',
  'דוד כהן',
  '🦊 fox',
  'x'.repeat(100),
]

/** Binds a phone to each of MANY_USERS, and asks each for a transfer; every fourth rejects a payment. */
export async function populate({ world }: Furnished): Promise<void> {
  const { bank } = world
  const payees = [
    'Jana Nováková',
    'שרה לוי',
    'شركة النور للتجارة',
    'A name of a payee that goes on and on and on and does not end',
  ]
  for (const [i, userId] of MANY_USERS.entries()) {
    const phone = world.newPhone('3.3')
    const activationName = i % 3 === 0 ? `Phone of ${userId}` : 'Pixel 9'
    await phone.activate(readQrCode(await bank.register(userId)).code, {
      layer2: { activationName, platform: 'android', deviceInfo: 'Google Pixel 9' },
    })
    expectOk(await bank.commit(userId))
    const parameters = { amount: `${(i + 1) * 137}.50`, currency: 'CZK', iban: 'CZ6508000000192000145399', payee: payees[i % 4] }
    expectOk(await bank.createOperation({ userId, template: 'transfer', parameters }))
    if (i % 4 !== 0) continue
    const payment = {
      userId,
      template: 'payment',
      parameters: { amount: '19.90', currency: 'EUR', iban: 'DE89370400440532013000' },
    }
    const id = member(expectOk(await bank.createOperation(payment)).json, 'operationId')
    await phone.exchange(phone.prepareReject(id, { reason: 'UNEXPECTED_OPERATION' }))
  }
}

async function bindOf4(bank: Bank, url: string, applicationId: string, userId: string): Promise<string> {
  const { json } = expectOk(await bank.call('GET', `/admin/applications/${applicationId}`))
  const app = readSdkConfiguration(String(member(json, 'responseObject', 'mobileSdkConfig')))
  const phone = createPhoneV4({ url, algorithm: 'EC_P384_ML_L3', app })
  await phone.activate(readQrCode(await bank.register(userId)).code)
  expectOk(await bank.commit(userId))
  await phone.exchange(phone.prepareConfirm(true))
  return phone.state.activationId
}

/** Removes characters that change the direction of text, which pawl refuses in templates and parameters of operations. */
const withoutDirection = (mark: string): string => mark.replaceAll(/[\u202A-\u202E\u2066-\u2069]/g, '')

const TRANSFER = (mark: string) => ({
  amount: '2490.00',
  currency: 'CZK',
  iban: 'CZ6508000000192000145399',
  payee: `Jana Nováková${withoutDirection(mark)}`,
})

const transferTemplate = (given: string, mark = withoutDirection(given)) => ({
  templateName: 'transfer',
  operationType: `authorize_transfer${mark}`,
  dataTemplate: 'A1*A${amount}${currency}*I${iban}',
  signatureType: ['possession_knowledge', 'possession_biometry'],
  maxFailureCount: 5,
  expiration: 900,
  riskFlags: 'XF',
  texts: {
    en: {
      summary: `Transfer${mark}`,
      resultTexts: { success: `Sent${mark}` },
      title: `Transfer to \${payee}${mark}`,
      message: `Please check amount and account${mark}`,
      attributes: [
        { id: `amount${mark}`, type: 'AMOUNT', text: `Amount${mark}`, params: { amount: 'amount', currency: 'currency' } },
        { id: 'account', type: 'KEY_VALUE', text: 'To account', params: { value: 'iban' } },
        { id: 'payee', type: 'KEY_VALUE', text: 'Recipient', params: { value: 'payee' } },
        { id: 'note', type: 'NOTE', text: 'Note', params: { note: 'note' } },
      ],
    },
    de: { title: 'Überweisung', message: 'Bitte prüfen', attributes: [] },
  },
})

/** Signs in as a user does; the page is then the overview. */
export async function signIn(page: Page, url: string, user: string, password: string): Promise<void> {
  await page.goto(`${url}/console/`)
  await page.getByLabel('User name').fill(user)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.waitForURL(/\/console\/(?!sign-)/)
}

/** Opens a page in a session of its own. */
export async function openPage(browser: Browser, options: BrowserContextOptions = {}): Promise<Page> {
  const context = await browser.newContext(options)
  context.setDefaultTimeout(PATIENCE_MS)
  return context.newPage()
}

/** The paths of all pages, by a name for the picture of each. */
export const consolePages = ({
  activationOf,
  pendingOperation,
  webhookId,
  deliveryId,
  alice,
  message,
}: Furnished): readonly (readonly [string, string])[] => [
  ['overview', '/'],
  ['registrations', '/registrations'],
  ['registration-active', `/registrations/${activationOf('alice')}`],
  ['registration-created', `/registrations/${activationOf('carol')}`],
  ['registration-pending', `/registrations/${activationOf('bob')}`],
  ['registration-new', '/registrations/new'],
  ['registration-verifications', `/registrations/${activationOf('alice')}/verifications`],
  ['operations', '/operations'],
  ['operation-new', '/operations/new?template=transfer'],
  ['operation', `/operations/${pendingOperation}`],
  ['inbox-empty', '/inbox'],
  ['inbox', `/inbox?${new URLSearchParams({ userId: alice }).toString()}`],
  ['inbox-message', `/inbox/${message}`],
  ['applications', '/applications'],
  ['application', '/applications/my-app'],
  ['templates', '/templates'],
  ['template', '/templates/transfer'],
  ['template-new', '/new-template'],
  ['webhooks', '/webhooks'],
  ['webhook', `/webhooks/${webhookId}`],
  ['webhook-delivery', `/webhooks/${webhookId}/deliveries/${deliveryId}`],
  ['certificates', '/certificates'],
  ['config', '/config'],
  ['oidc', '/oidc'],
  ['audit', '/audit'],
  ['audit-devices', `/audit/devices?${new URLSearchParams({ userId: alice }).toString()}`],
  ['credentials', '/credentials'],
]
