// The console in a browser: every page and action, marked texts that stay texts, axe, and what a reader is shown.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Browser, Locator, Page, Route } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { member } from '../../phone/http.ts'
import type { VirtualPhone } from '../../phone/v3/virtual-phone.ts'
import { startTestServer, type TestServer } from '../helpers/app.ts'
import { startSession } from '../helpers/console-session.ts'
import { createCertificate } from '../helpers/certificates.ts'
import {
  CHROMIUM,
  consolePages,
  type Furnished,
  furnish,
  hasChromium,
  launchChromium,
  openPage,
  signIn,
} from '../helpers/console.ts'
import { expectOk } from '../helpers/world.ts'

/** Stands in every text that a phone or the bank chooses. As markup it would be an element with a handler; its last word fits into no column. */
const MARK = `<b id=hit onclick=x>"'&${'x'.repeat(60)}`
const axe = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8')

describe.skipIf(!hasChromium)(`in a browser (needs ${CHROMIUM})`, () => {
  let server: TestServer
  let furnished: Furnished
  let browser: Browser
  let page: Page
  let watched: ReturnType<typeof watchPage>
  let atSignIn: readonly string[]
  beforeAll(async () => {
    server = await startTestServer()
    const { user, password } = server.admin
    furnished = await furnish(server.url, `${user}:${password}`, MARK)
    const pin = { fingerprint: Buffer.alloc(32, 1).toString('base64'), expires: Math.floor(Date.now() / 1000) + 8_640_000 }
    const domain = `${'long'.repeat(15)}.${'name'.repeat(15)}.example`
    expectOk(await furnished.world.bank.call('POST', '/admin/apps/my-app/certificates/fingerprint', { domain, ...pin }))
    browser = await launchChromium()
    page = await openPage(browser, { colorScheme: 'light', viewport: { width: 1440, height: 844 } })
    watched = watchPage(page, server.url)
    await page.goto(`${server.url}/console/sign-in`)
    atSignIn = await findFaults(page, '/sign-in')
    await signIn(page, server.url, user, password)
  })
  afterAll(async () => {
    await browser?.close()
    await server?.close()
  })

  const open = async (path: string): Promise<void> => {
    const reply = await page.goto(`${server.url}/console${path}`)
    expect([path, reply?.status()]).toEqual([path, 200])
  }
  const said = (): Promise<string> => page.getByRole('status').innerText()
  /** Opens what asks whether it is meant, and gives its form. */
  const guarded = async (label: string, within: Page | Locator = page): Promise<Locator> => {
    const details = within.locator('details.guarded', { has: page.locator('summary', { hasText: label }) }).first()
    await details.locator('summary').click()
    return details
  }
  /** Presses a button that sends a form, and waits for the page that answers it. */
  const press = async (within: Page | Locator, name: string): Promise<void> => {
    const navigated = page.waitForEvent('framenavigated')
    await within.getByRole('button', { name, exact: true }).first().click()
    await navigated
    await page.waitForLoadState('load')
  }
  const factOf = async (name: string): Promise<string> =>
    (await page.locator(`.facts div:has(> dt:text-is("${name}")) dd`).first().innerText()).trim()

  test('no page turns a text of a phone or of the bank into markup, asks another host, or breaks its policy', async () => {
    let shown = 0
    const findings = [atSignIn]
    for (const [, path] of consolePages(furnished)) {
      await open(path)
      shown += (await page.locator('body').innerText()).split(MARK).length - 1
      expect([path, await page.locator('#hit').count()]).toEqual([path, 0])
      findings.push(await findFaults(page, path))
    }
    // They are there, as they were written.
    expect(shown).toBeGreaterThan(40)
    expect(watched.complaints).toEqual([])
    expect(watched.foreign).toEqual([])
    // Light and wide, axe has no serious finding either.
    expect(findings.flat()).toEqual([])
  })

  test('axe has no serious finding on any page, dark and 390 wide; nothing is wider than the window, no short word broken', async () => {
    const findings: (readonly string[])[] = []
    for (const colorScheme of ['light', 'dark'] as const) {
      const own = await openPage(browser, { colorScheme, viewport: { width: 390, height: 844 } })
      await own.goto(`${server.url}/console/sign-in`)
      findings.push(await findFaults(own, `/sign-in, ${colorScheme}`))
      if (colorScheme === 'dark') {
        await signIn(own, server.url, server.admin.user, server.admin.password)
        for (const [, path] of consolePages(furnished)) {
          await own.goto(`${server.url}/console${path}`)
          findings.push(await findFaults(own, path))
        }
      }
      await own.context().close()
    }
    expect(findings.flat()).toEqual([])
  })

  test('a reader is shown every page that the API shows it, and no button that it may not press', async () => {
    const own = await openPage(browser)
    await signIn(own, server.url, furnished.auditor.user, furnished.auditor.password)
    const buttons = new Set<string>()
    for (const [, path] of consolePages(furnished)) {
      const reply = await own.goto(`${server.url}/console${path}`)
      // What an operation or a message holds is for its application alone, in the API as well.
      const isOfApplication = [furnished.pendingOperation, furnished.message].some((id) => path.endsWith(`/${id}`))
      const isOfAdministrators = path.endsWith(`/${furnished.deliveryId}`)
      expect([path, reply?.status()]).toEqual([path, isOfApplication ? 400 : isOfAdministrators ? 403 : 200])
      const names = await own
        .locator('form[method=post] button')
        .evaluateAll((found) => found.map(({ textContent }) => textContent))
      for (const name of names) buttons.add(name)
    }
    expect([...buttons].toSorted()).toEqual(['End', 'Export up to 1,000 rows', 'Sign out', 'Verify now'])
    await own.goto(`${server.url}/console/audit`)
    await own.getByRole('button', { name: 'Verify now' }).click()
    await own.getByText('Intact').first().waitFor()
    await own.goto(`${server.url}/console/credentials`)
    expect(await own.getByRole('button', { name: 'End' }).count()).toBe(1)
    await own.getByRole('button', { name: 'End' }).click()
    await own.getByRole('heading', { name: 'Sign in' }).waitFor()
    await own.context().close()
  })

  test('the whole console is reached by keyboard, and by its menu on a phone', async () => {
    await open('/')
    await page.keyboard.press('Tab')
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Skip to the content')
    // What a page fetches anew by itself takes the focus from nobody.
    await open(`/webhooks/${furnished.webhookId}`)
    const again = page.getByRole('button', { name: 'Try now' }).first()
    await again.focus()
    // The second is asked for when the first is shown.
    for (let i = 0; i < 2; i += 1) await page.waitForResponse((reply) => reply.request().headers()['hx-request'] === 'true')
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Try now')
    const own = await openPage(browser, { viewport: { width: 390, height: 844 } })
    await signIn(own, server.url, server.admin.user, server.admin.password)
    expect(await own.getByRole('link', { name: 'Webhooks' }).count()).toBe(0)
    await own.getByRole('button', { name: 'Menu' }).click()
    await own.getByRole('navigation').getByRole('link', { name: 'Webhooks' }).click()
    await own.getByRole('heading', { level: 1, name: 'Webhooks' }).waitFor()
    await own.context().close()
  })

  describe('registrations', () => {
    let phone: VirtualPhone

    test('are made, scanned, compared and committed; the page goes on by itself', async () => {
      await open('/registrations')
      await page.getByRole('link', { name: 'Register a user' }).click()
      await page.getByLabel('User', { exact: true }).fill('frank')
      await press(page, 'Register')
      await page.getByRole('heading', { name: 'Scan with the app' }).waitFor()
      const code = await page.locator('.phones .value').innerText()
      phone = furnished.world.newPhone('3.3')
      const { fingerprint } = await phone.activate(code)
      await page.getByRole('heading', { name: 'Compare and commit' }).waitFor()
      expect(await page.locator('p.fingerprint').innerText()).toBe(fingerprint)
      await press(page, 'The digits are the same: commit')
      expect(await said()).toContain('committed')
      expect(await phone.readStatus()).toBeDefined()
    })

    test('are found by user and state, blocked with a reason, unblocked and flagged', async () => {
      await open('/registrations?userId=frank&state=ACTIVE')
      await page.getByRole('link', { name: 'frank' }).click()
      const block = await guarded('Block')
      await block.getByLabel('Reason').fill('LOST_PHONE')
      await press(block, 'Block')
      expect(await factOf('Blocked because')).toBe('Lost phone')
      // The history names who did it.
      expect(await page.locator('.steps').innerText()).toContain(`Lost phone · by ${server.admin.user}`)
      await press(page, 'Unblock')
      expect(await said()).toBe('Unblocked.')
      const flags = await guarded('Set flags')
      await flags.getByLabel('Flags').fill('VERIFIED TRUSTED')
      await press(flags, 'Set flags')
      expect(await factOf('Flags')).toBe('VERIFIED, TRUSTED')
    })

    test('approve an operation while the page watches it', async () => {
      await open('/operations/new?template=payment')
      await page.getByLabel('User', { exact: true }).fill('frank')
      await page.getByLabel('Amount', { exact: true }).fill('77.70')
      await page.locator('#preview').getByText('€77.70').waitFor()
      await page.getByLabel('Currency', { exact: true }).fill('EUR')
      await page.getByLabel('To account', { exact: true }).fill('DE89370400440532013000')
      await press(page, 'Ask the user')
      expect(await said()).toBe('Created.')
      expect(await page.locator('.phone').innerText()).toContain('€77.70')
      const id = page.url().split('/').at(-1)?.split('?')[0]
      await phone.exchange(phone.prepareAuthorize({ id, data: 'A1*A77.70EUR*IDE89370400440532013000' }))
      await page.locator('#status .facts').getByText('Approved', { exact: true }).waitFor()
      // What can be done no more is not offered any longer.
      expect(await page.getByRole('button', { name: 'Make a QR code' }).isVisible()).toBe(false)
    })

    test('approve an operation without a connection, after a wrong password as well', async () => {
      await open('/operations/new?template=login')
      await page.getByLabel('User', { exact: true }).fill('frank')
      await press(page, 'Ask the user')
      await press(page, 'Make a QR code')
      const text = await page.locator('input[name=qr]').inputValue()
      const otp = phone.computeOtp(phone.scanOperation(text))
      await page.getByLabel('One-time password').fill('12345678-12345678')
      await press(page, 'Approve')
      await page.getByRole('alert').waitFor()
      await page.getByLabel('One-time password').fill(otp)
      await press(page, 'Approve')
      expect(await said()).toContain('approved')
      expect(await factOf('Status')).toBe('Approved')
    })

    test('try no password with a text that no QR code was made of', async () => {
      const { user, password } = server.admin
      const session = await startSession(server.url, user, password)
      const { bank } = furnished.world
      const { json } = await bank.createOperation({ userId: 'frank', template: 'login', parameters: {} })
      const operationId = String(member(json, 'operationId'))
      const { json: made } = await bank.offlineQr(operationId)
      const nonce = String(member(made, 'nonce'))
      const page = `/operations/${operationId}`
      for (const qr of ['x'.repeat(3_500), 'ř'.repeat(1_500), '💶'.repeat(2_000), 'x'.repeat(200_000)])
        for (const action of ['otp', 'nothing', 'cancel?'])
          expect((await session.post(page, { action, otp: '12345678-12345678', nonce, qr })).status).toBe(400)
      expect((await bank.readOperation(operationId)).json).toMatchObject({ failureCount: 0, status: 'PENDING' })
      const typed = { action: 'otp', otp: '12345678-12345678', nonce, qr: String(member(made, 'operationQrCodeData')) }
      expect((await session.post(page, typed)).text).toContain('QR code of the operation')
      expect((await bank.readOperation(operationId)).json).toMatchObject({ failureCount: 1 })
      await bank.cancelOperation(operationId)
    })

    test('have operations canceled, and end for good', async () => {
      await open('/operations/new?template=login')
      await page.getByLabel('User', { exact: true }).fill('frank')
      await press(page, 'Ask the user')
      const cancel = await guarded('Cancel the operation')
      await cancel.getByLabel('Reason').fill('MISTAKE')
      await press(cancel, 'Cancel the operation')
      expect(await factOf('Status')).toBe('Canceled')
      await open('/operations?userId=frank&status=CANCELED')
      expect(await page.locator('.rows tbody').innerText()).toContain('Mistake')
      await open('/registrations?userId=frank')
      await page.getByRole('link', { name: 'frank' }).click()
      await press(await guarded('Remove'), 'Remove')
      expect(await page.locator('.lead').innerText()).toContain('Removed')
      // Its page is still there, and does nothing to a later phone of the user.
      expect(await page.getByRole('button', { name: 'Remove' }).count()).toBe(0)
    })
  })

  test('what the API refuses is said where it was typed, and nothing typed is lost', async () => {
    await open('/operations/new?template=payment')
    await page.getByLabel('User', { exact: true }).fill('nobody-at-all')
    await page.getByLabel('Amount', { exact: true }).fill('abc')
    await page.getByLabel('Currency', { exact: true }).fill('EUR')
    await page.getByLabel('To account', { exact: true }).fill('DE89370400440532013000')
    await press(page, 'Ask the user')
    await page.getByRole('alert').waitFor()
    expect(await page.getByLabel('User', { exact: true }).inputValue()).toBe('nobody-at-all')
    expect(await page.getByLabel('Amount', { exact: true }).inputValue()).toBe('abc')
  })

  test('what was chosen is kept as well, where a form is refused', async () => {
    await open('/registrations/new')
    await page.getByLabel('User', { exact: true }).fill(' ')
    await page.locator('summary', { hasText: 'With a one-time password' }).click()
    await page.getByLabel('One-time password', { exact: true }).fill('123456')
    await page.getByLabel('Asked for').selectOption('ON_KEY_EXCHANGE')
    await press(page, 'Register')
    await page.getByRole('alert').waitFor()
    expect(await page.locator('#otpPhase').inputValue()).toBe('ON_KEY_EXCHANGE')
    await open('/credentials')
    await page.getByLabel('User name').fill(server.admin.user)
    await page.getByLabel('Role').selectOption('read-only')
    await page.getByLabel('Application', { exact: true }).selectOption('')
    await press(page, 'Create')
    await page.getByRole('alert').waitFor()
    expect(await page.getByLabel('Application', { exact: true }).inputValue()).toBe('')
  })

  test('a part that cannot be fetched again stays, says that it is old, and goes on later', async () => {
    const own = await openPage(browser)
    await signIn(own, server.url, server.admin.user, server.admin.password)
    await own.goto(`${server.url}/console/operations/${furnished.pendingOperation}`)
    const part = own.locator('#status')
    const failures: readonly ((route: Route) => Promise<void>)[] = [
      (route) =>
        route.fulfill({ status: 503, contentType: 'text/html', body: '<!doctype html><title>T</title><main>Not available' }),
      (route) => route.fulfill({ status: 500, body: '' }),
      (route) => route.abort(),
    ]
    for (const fail of failures) {
      await own.route('**/console/operations/*', fail)
      await own.locator('#status.is-stale').waitFor()
      expect(await part.innerText()).toContain('waits for the phone')
      await own.unroute('**/console/operations/*')
      await own.locator('#status:not(.is-stale)').waitFor()
      expect(await part.innerText()).toContain('waits for the phone')
      expect(await own.title()).not.toBe('T')
    }
    await own.context().close()
  })

  test('a form whose button is pressed again is sent once, however long the answer takes', async () => {
    const own = await openPage(browser)
    await signIn(own, server.url, server.admin.user, server.admin.password)
    await own.clock.install()
    await own.goto(`${server.url}/console/inbox`)
    const fill = async (): Promise<void> => {
      for (const [label, text] of [
        ['User', 'twice'],
        ['Subject', 'Once'],
        ['Summary', 'Once'],
        ['Body', 'Once'],
      ] as const)
        await own.getByLabel(label, { exact: true }).last().fill(text)
    }
    const button = own.getByRole('button', { name: 'Put it into the inbox' })
    await fill()
    // Whether each press would send the form. Nothing is sent, as while an answer does not come.
    await own.evaluate(`
      globalThis.wouldSend = []
      addEventListener('submit', (event) => {
        wouldSend.push(!event.defaultPrevented)
        event.preventDefault()
      })`)
    await button.dblclick({ delay: 20 })
    await own.clock.fastForward(30_000)
    await button.click()
    await own.clock.fastForward(31_000)
    await button.click()
    expect(await own.evaluate('wouldSend')).toEqual([true, false, false, true])

    await own.reload()
    await fill()
    await button.dblclick({ delay: 20 })
    await own.getByText('The message is in the inbox.').waitFor()
    await own.context().close()
    const { json } = await furnished.world.bank.call('GET', '/inbox/messages?userId=twice')
    expect(member(json, 'messages')).toHaveLength(1)
  })

  test('applications are created and set up, with versions', async () => {
    await open('/applications')
    await page.getByLabel('Name').fill('third-app')
    await press(page, 'Create')
    await page.getByRole('heading', { level: 1, name: 'third-app' }).waitFor()
    await page.getByRole('img', { name: 'QR code of the first four values' }).waitFor()
    await page.getByLabel('EC_P384_ML_L3').uncheck()
    await page.getByLabel('EC_P384_ML_L5').uncheck()
    await page.getByLabel('Oldest version').selectOption('3.2')
    await page.getByLabel('protocol 3 (3.0 to 3.3)').uncheck()
    await page.getByLabel('Custom object').fill('{')
    await press(page, 'Save')
    // A choice is kept where the form is refused, as what was typed.
    await page.getByRole('alert').waitFor()
    await page.getByLabel('Custom object').fill('{"a":1}')
    await press(page, 'Save')
    expect(await said()).toBe('Saved.')
    expect(await page.getByLabel('protocol 3 (3.0 to 3.3)').isChecked()).toBe(false)
    expect(await page.getByLabel('EC_P384_ML_L3').isChecked()).toBe(false)
    await page.getByLabel('protocol 3 (3.0 to 3.3)').check()
    await press(page, 'Save')
    // Without keys of ML-DSA the whole configuration may be short enough.
    expect(await page.getByLabel('Oldest version').inputValue()).toBe('3.2')
    await page.getByLabel('Name of a new version').fill('2.0')
    await press(page, 'Add version')
    await press(await guarded('Switch off', page.locator('tr', { hasText: '2.0' })), 'Switch off')
    await page.getByText('Switched off').waitFor()
    await press(page, 'Switch on')
    expect(await page.getByText('Switched off').count()).toBe(0)
  })

  test('an action is one on the application of its page', async () => {
    await open('/registrations/new?app=third-app')
    await page.getByLabel('User', { exact: true }).fill('grace')
    await press(page, 'Register')
    await page.getByRole('heading', { name: 'Scan with the app' }).waitFor()
    const { bank } = furnished.world
    const found = await bank.call('GET', '/admin/applications/third-app/registrations?userId=grace')
    expect(member(found.json, 'registrations', '0', 'state')).toBe('CREATED')
    expect(member((await bank.view('grace')).json, 'registration')).toBe('NONE')
    await press(await guarded('Remove'), 'Remove')
    expect(
      member(
        (await bank.call('GET', '/admin/applications/third-app/registrations?userId=grace')).json,
        'registrations',
        '0',
        'state',
      ),
    ).toBe('REMOVED')
  })

  test('templates are checked while they are typed, created, changed and removed', async () => {
    await open('/new-template')
    await page.getByLabel('Name', { exact: true }).fill('from-the-console')
    await page.getByLabel('Signed data').fill('Z9')
    await page.locator('#preview').getByText('dataTemplate').waitFor()
    // What is wrong stands beside its line as soon as somebody asks.
    await press(page, 'Check')
    expect(
      await page
        .locator('.field', { has: page.getByLabel('Signed data') })
        .locator('.fault')
        .innerText(),
    ).toContain('must')
    await page.getByLabel('Signed data').fill('A1*A${amount}${currency}*I${iban}')
    await page.locator('#preview').getByText('€1,234.50').waitFor()
    await press(page, 'Create')
    expect(await said()).toBe('Created.')
    await page.getByLabel('Title').fill('')
    await press(page, 'Check')
    expect(
      await page
        .locator('.field', { has: page.getByLabel('Title') })
        .locator('.fault')
        .innerText(),
    ).toContain('must be')
    await page.getByLabel('Title').fill('Changed title')
    await page.locator('#preview').getByText('Changed title').waitFor()
    await press(page, 'Save')
    expect(await said()).toBe('Saved.')
    await page.getByRole('button', { name: 'Edit as JSON' }).click()
    await page.getByLabel('Texts', { exact: true }).fill('{"en":{"title":"Changed"')
    await page.locator('#preview').getByText('must be JSON').waitFor()
    await press(page, 'Save')
    expect(await page.getByRole('alert').innerText()).toContain('must be JSON')
    await page.getByLabel('Texts', { exact: true }).fill('{"en":{"title":"Once more","message":"M"}}')
    await page.locator('#preview').getByText('Once more').waitFor()
    await press(page, 'Save')
    expect(await said()).toBe('Saved.')
    await press(await guarded('Remove the template'), 'Remove the template')
    expect(await page.getByText('from-the-console').count()).toBe(0)
  })

  test('the rows of a template are added, moved, given another kind and removed; languages and screens too', async () => {
    await open('/new-template')
    const labels = (): Promise<string[]> => page.locator('.rows-editor > li').locator('[id$=".text"]').evaluateAll(valuesOf)
    await page.getByLabel('Name', { exact: true }).fill('shaped')
    await page.getByRole('button', { name: 'Add a row' }).click()
    const added = page.locator('.rows-editor > li').nth(2)
    await added.getByLabel('Label').fill('Bank')
    await added.getByLabel('Kind').selectOption('PARTY_INFO')
    for (const [slot, parameter] of [
      ['Logo from (may be left out)', 'logo'],
      ['Name from', 'bank'],
      ['Description from (may be left out)', 'place'],
    ] as const)
      await added.getByLabel(slot, { exact: true }).fill(parameter)
    expect(await labels()).toEqual(['Amount', 'To account', 'Bank'])
    await page.getByRole('button', { name: 'Move up Bank' }).click()
    await expect.poll(labels).toEqual(['Amount', 'Bank', 'To account'])
    await page.getByRole('button', { name: 'Remove Amount' }).click()
    await expect.poll(labels).toEqual(['Bank', 'To account'])
    await page.getByText('Screens', { exact: true }).click()
    await page.getByLabel('The app asks').selectOption('own')
    await page.getByLabel('First it shows').selectOption('WARNING')
    await page.getByLabel('Heading', { exact: true }).fill('Do you know them?')
    await page.getByLabel('Message', { exact: true }).last().fill('Look twice')
    await page.getByLabel('Points, one a line').fill('First\nSecond')
    await page.locator('#preview').getByText('Do you know them?').waitFor()
    await page.getByLabel('Another language').fill('de')
    await page.getByRole('button', { name: 'Add language' }).click()
    await page.locator('.panel > summary', { hasText: 'de' }).waitFor()
    await press(page, 'Create')
    const { json } = await furnished.world.bank.call('GET', '/admin/templates/shaped')
    const attributes = [
      { id: 'operation.3', type: 'PARTY_INFO', text: 'Bank', params: { logoUrl: 'logo', name: 'bank', description: 'place' } },
      { id: 'operation.account', type: 'KEY_VALUE', text: 'To account', params: { value: 'iban' } },
    ]
    const preApprovalScreen = { type: 'WARNING', heading: 'Do you know them?', message: 'Look twice', items: ['First', 'Second'] }
    const texts = { title: 'Payment', message: 'Please confirm the payment', attributes, ui: { preApprovalScreen } }
    expect(member(json, 'texts')).toEqual({ de: texts, en: texts })
    await page.locator('.panel > summary', { hasText: 'de' }).click()
    await page.getByRole('button', { name: 'Remove de' }).click()
    await expect.poll(() => page.locator('.panel').count()).toBe(1)
    await press(page, 'Save')
    expect(
      Object.keys(member((await furnished.world.bank.call('GET', '/admin/templates/shaped')).json, 'texts') as object),
    ).toEqual(['en'])
  })

  test('webhooks are created, changed, given a secret, sent again and removed', async () => {
    await open('/webhooks')
    await page.getByLabel('Name', { exact: true }).fill('Second receiver')
    await page.getByLabel('Address').fill('https://second.invalid/hook')
    const openBasic = () => page.locator('summary', { hasText: 'HTTP Basic at the receiver' }).click()
    await openBasic()
    await page.getByLabel('User name').fill('pawl')
    await page.getByLabel('Password').fill('of the receiver')
    await press(page, 'Create')
    expect(await page.locator('.value').innerText()).toMatch(/^whsec_/)
    await page.getByRole('link', { name: 'I have noted it' }).click()
    await page.getByLabel('Switched on').uncheck()
    await page.getByLabel('Address').fill('http://second.invalid/hook')
    await press(page, 'Save')
    await page.getByRole('alert').waitFor()
    await page.getByLabel('Address').fill('https://second.invalid/other')
    await press(page, 'Save')
    await page.locator('.lead').getByText('Off').waitFor()
    // Nobody can type the password of the receiver again: it stays.
    expect(await factOf('HTTP Basic as')).toBe('pawl')
    await openBasic()
    await page.getByLabel('User name').fill('')
    await press(page, 'Save')
    expect(await page.getByText('HTTP Basic as').count()).toBe(0)
    await press(await guarded('New secret'), 'New secret')
    expect(await page.locator('.value').innerText()).toMatch(/^whsec_/)
    await page.getByRole('link', { name: 'I have noted it' }).click()
    await press(await guarded('Remove'), 'Remove')
    expect(await page.getByText('Second receiver').count()).toBe(0)
    await open(`/webhooks/${furnished.webhookId}`)
    await press(page, 'Send a test message')
    expect(await said()).toBe('The receiver did not take it')
    expect(await factOf('Problem')).toContain('receiver.invalid cannot be resolved')
    await press(page.locator('.rows'), 'Try now')
    expect(await said()).toContain('Waiting again')
  })

  test('certificates are pinned in three ways and unpinned', async () => {
    const { pem } = createCertificate(['DNS:pinned.bank.example'], { days: 90 })
    await open('/certificates')
    await page.getByText('From a PEM file').click()
    await page.getByLabel('Common name').first().fill('pinned.bank.example')
    await page.getByLabel('Certificate').fill(pem)
    await press(page.locator('details', { hasText: 'From a PEM file' }), 'Pin')
    const card = page.locator('section.card', { has: page.getByRole('heading', { name: 'pinned.bank.example' }) })
    expect(await card.innerText()).toMatch(/Ends in (89|90) days/)
    expect(await card.innerText()).toContain('common name of the certificate, which is "test"')
    await press(await guarded('Unpin', card), 'Unpin')
    await press(await guarded('Remove the domain', card), 'Remove the domain')
    expect(await card.count()).toBe(0)
    await page.getByText('By its fingerprint').click()
    const form = page.locator('details', { hasText: 'By its fingerprint' })
    await form.getByLabel('Common name').fill('*.bank.example')
    await form.getByLabel('Fingerprint').fill(Buffer.alloc(32, 7).toString('base64'))
    await form.getByLabel('Ends (UTC)').fill('2040-01-01T00:00')
    await press(form, 'Pin')
    await page.getByRole('heading', { name: '*.bank.example' }).waitFor()
    // Private addresses are refused before a connection, and the refusal names the line.
    await page.getByLabel('Domain').first().fill('localhost')
    await press(page, 'Pin what the server shows')
    await page.getByRole('alert').waitFor()
  })

  test('an OpenID provider is created, changed and removed, and its secret is not shown', async () => {
    await open('/oidc')
    for (const [label, text] of [
      ['Id', 'web-bank'],
      ['Issuer', 'https://login.bank.example'],
      ['Client', 'mobile-app'],
      ['Redirect URI', 'https://app.bank.example/oidc'],
    ] as const)
      await page.getByLabel(label, { exact: true }).fill(text)
    await press(page, 'Create')
    await page.getByText('must be given').first().waitFor()
    await page.getByLabel('Secret').fill('of the client')
    await press(page, 'Create')
    const row = page.locator('tr', { hasText: 'web-bank' })
    expect(await row.innerText()).toContain('Active at once')
    await row.getByRole('link', { name: 'web-bank' }).click()
    await page.getByLabel('are active at once').uncheck()
    expect(await page.content()).not.toContain('of the client')
    await press(page, 'Change')
    expect(await row.innerText()).toContain('Wait for the bank')
    await press(await guarded('Remove', row), 'Remove')
    expect(await row.count()).toBe(0)
  })

  test('configuration items and messages are stored', async () => {
    await open('/config')
    await page.getByLabel('Name').fill('theme')
    await page.getByLabel('Value').fill('{"dark":true}')
    await page.getByLabel('For', { exact: true }).selectOption('ACTIVATION')
    await press(page, 'Store')
    const row = page.locator('tr', { hasText: 'theme' })
    expect(await row.innerText()).toContain('{"dark":true}')
    await press(await guarded('Remove', row), 'Remove')
    expect(await row.count()).toBe(0)
    await open(`/config?activation=${furnished.activationOf('alice')}`)
    await page.getByLabel('Name').fill('theme')
    await page.getByLabel('Value').fill('1')
    await press(page, 'Store')
    await page.locator('tr', { hasText: 'theme' }).waitFor()

    await open('/inbox')
    for (const [label, text] of [
      ['User', 'alice'],
      ['Subject', 'Maintenance'],
      ['Summary', 'Tonight'],
      ['Body', 'From 2 to 3.'],
    ] as const)
      await page.getByLabel(label, { exact: true }).last().fill(text)
    await press(page, 'Put it into the inbox')
    expect(await said()).toBe('The message is in the inbox.')
    await page.getByRole('link', { name: 'Maintenance' }).click()
    await page.getByText('From 2 to 3.').waitFor()
    expect(await page.locator('.facts').innerText()).toContain('Unread')
    await press(await guarded('Remove the message'), 'Remove the message')
    expect(await page.getByText('was sent nothing yet').count()).toBe(1)
  })

  test('credentials are created, given a password and removed; sessions are ended', async () => {
    await open('/credentials')
    await page.getByLabel('User name').fill('helper-desk')
    await page.getByLabel('Role').selectOption('admin')
    await page.getByLabel('Application', { exact: true }).selectOption('')
    await press(page, 'Create')
    const password = await page.locator('.value').innerText()
    const other = await openPage(browser)
    await signIn(other, server.url, 'helper-desk', password)
    await open('/credentials')
    await press(page.locator('section', { hasText: 'Sessions of the console' }).locator('tr', { hasText: 'helper-desk' }), 'End')
    await other.goto(`${server.url}/console/`)
    await other.getByRole('heading', { name: 'Sign in' }).waitFor()
    await other.context().close()
    const row = page.locator('tr', { hasText: 'helper-desk' }).first()
    await press(await guarded('New password', row), 'New password')
    expect(await page.locator('.value').innerText()).not.toBe(password)
    await page.getByRole('link', { name: 'I have noted it' }).click()
    await press(await guarded('Remove', row), 'Remove')
    expect(await said()).toBe('Removed.')
  })

  test('the audit logs are filtered, verified and exported', async () => {
    await open('/audit?username=admin&action=console%20sign-in')
    const actions = await page.locator('.rows tbody details .hint').allTextContents()
    expect([actions.length > 0, new Set(actions)]).toEqual([true, new Set(['console sign-in'])])
    await press(page, 'Verify now')
    await page.getByText('Intact').first().waitFor()
    const exported = async () => {
      const started = page.waitForEvent('download')
      await page.getByRole('button', { name: 'Export up to 1,000 rows' }).click()
      return started
    }
    await exported()
    // The page is still there: whoever wants the rows of the moment presses again at once.
    const download = await exported()
    expect(download.suggestedFilename()).toBe('pawl-audit-administrators.jsonl')
    const lines = readFileSync((await download.path()) ?? '', 'utf8')
      .trim()
      .split('\n')
    expect(lines.map((line) => member(JSON.parse(line), 'action'))).toContain('console sign-in')
    await open(`/audit/devices?userId=${encodeURIComponent(`alice${MARK}`)}`)
    expect(await page.locator('.rows tbody tr').count()).toBeGreaterThan(10)
  })

  test('after all of it no page has complained, and no other host was asked', () => {
    expect(watched.complaints).toEqual([])
    expect(watched.foreign).toEqual([])
  })
})

const valuesOf = (found: readonly unknown[]): string[] => found.map((one) => (one as { value: string }).value)

/** Serious and critical findings of axe, and content that is wider than the window, each with its page. */
async function findFaults(page: Page, path: string): Promise<readonly string[]> {
  await page.evaluate(axe)
  const { violations } = await page.evaluate<{
    violations: { id: string; impact: string; nodes: { html: string; failureSummary: string }[] }[]
  }>('axe.run(document, { resultTypes: ["violations"] })')
  const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
  const excess = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
  return [
    ...serious.map(
      ({ id, nodes: [node] }) => `${path}: ${id}: ${node?.html.slice(0, 200)} ${node?.failureSummary.slice(0, 300)}`,
    ),
    ...(excess > 0 ? [`${path}: ${excess} pixels too wide`] : []),
    ...(await page.evaluate<string[]>(FIND_BROKEN)).map((word) => `${path}: ${word} is broken`),
  ]
}

/** Finds words of up to 22 letters that stand in two lines, in lists, labels and headings. */
const FIND_BROKEN = `[...document.querySelectorAll('th, td, dt, dd, h1, h2, summary, label, .button, .badge')].flatMap((element) => {
  if (!element.checkVisibility() || element.closest('.hidden')) return []
  const texts = [...element.childNodes].filter(({ nodeType }) => nodeType === Node.TEXT_NODE)
  return texts.flatMap((text) => [...text.data.matchAll(/(?<!\\S)[\\p{L}\\d]{2,22}(?!\\S)/gu)].flatMap(({ 0: word, index }) => {
    const range = document.createRange()
    range.setStart(text, index)
    range.setEnd(text, index + word.length)
    return new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size > 1 ? [word] : []
  }))
})`

/** Collects what the page complains about, refused policies among it, and every address that is not this server's. */
function watchPage(page: Page, url: string): { complaints: string[]; foreign: string[] } {
  const complaints: string[] = []
  const foreign: string[] = []
  page.on('console', (message) => {
    // Chromium logs every answer that is not a success, which forms that are refused on purpose give.
    if (['error', 'warning'].includes(message.type()) && !/the server responded with a status of 4\d\d/.test(message.text()))
      complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(String(error)))
  page.on('dialog', (dialog) => complaints.push(dialog.message()))
  page.on('request', (request) => {
    if (!request.url().startsWith(`${url}/`) && !request.url().startsWith('data:')) foreign.push(request.url())
  })
  return { complaints, foreign }
}
