// Forms of the console that replace what is stored. One that was made before somebody else saved is refused, with the values of now. No form is a 500.
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { member } from '../../phone/http.ts'
import { startTestServer, type TestServer } from '../helpers/app.ts'
import { CHROMIUM, type Furnished, furnish, hasChromium, launchChromium, openPage, signIn } from '../helpers/console.ts'
import { type ConsoleSession, startSession } from '../helpers/console-session.ts'
import { expectOk } from '../helpers/world.ts'

const PROVIDER = {
  issuer: 'https://login.bank.example',
  clientId: 'mobile-app',
  redirectUri: 'https://app.bank.example/oidc',
  clientSecret: 'of the client',
}

let server: TestServer
let furnished: Furnished
let session: ConsoleSession
beforeAll(async () => {
  server = await startTestServer()
  const { user, password } = server.admin
  furnished = await furnish(server.url, `${user}:${password}`)
  expectOk(await call('PUT', '/admin/applications/my-app/oidc-providers/web-bank', PROVIDER))
  session = await startSession(server.url, user, password)
})
afterAll(() => server?.close())

const call = (method: string, path: string, body?: unknown) => furnished.world.bank.call(method, path, body)
const read = async (path: string, ...names: readonly string[]): Promise<unknown> =>
  member(expectOk(await call('GET', path)).json, ...names)

interface FormCase {
  readonly path: string
  readonly button: string
  /** The line whose value both administrators change. */
  readonly label: string
  readonly values: readonly [first: string, second: string]
  readonly action: string
  readonly stored: () => Promise<unknown>
}

const activation = (): string => furnished.activationOf('alice')
const CASES: Readonly<Record<string, () => FormCase>> = {
  'the settings of an application': () => ({
    path: '/applications/my-app',
    button: 'Save',
    label: 'Roles',
    values: ['retail', 'private'],
    action: 'settings',
    stored: () => read('/admin/applications/my-app', 'responseObject', 'roles'),
  }),
  'a template': () => ({
    path: '/templates/transfer',
    button: 'Save',
    label: 'Wrong codes that end it',
    values: ['7', '9'],
    action: 'save',
    stored: () => read('/admin/templates/transfer', 'maxFailureCount'),
  }),
  'a webhook': () => ({
    path: `/webhooks/${furnished.webhookId}`,
    button: 'Save',
    label: 'Address',
    values: ['https://first.invalid/', 'https://second.invalid/'],
    action: 'save',
    stored: () => read(`/admin/webhooks/${furnished.webhookId}`, 'url'),
  }),
  'an OpenID provider': () => ({
    path: '/oidc?provider=web-bank',
    button: 'Change',
    label: 'Claim with the user id',
    values: ['email', 'upn'],
    action: 'store',
    stored: () => read('/admin/applications/my-app/oidc-providers/web-bank', 'userIdClaim'),
  }),
  'the flags of a phone': () => ({
    path: `/registrations/${activation()}`,
    button: 'Set flags',
    label: 'Flags',
    values: ['FIRST', 'SECOND'],
    action: 'flags',
    stored: () => read(`/admin/applications/my-app/registrations/${activation()}`, 'flags'),
  }),
  'an item of configuration': () => ({
    path: '/config',
    button: 'Store',
    label: 'Value',
    values: ['{"daily":600}', '{"daily":700}'],
    action: 'store',
    stored: () => read('/admin/applications/my-app/config', 'config'),
  }),
}

describe('a form without the version of what it shows, or with another one, saves nothing', () => {
  test.each(Object.entries(CASES))('of %s', async (_name, make) => {
    const { path, action, stored } = make()
    const before = await stored()
    const lines = { key: 'payments.limit', value: '1', scope: 'APPLICATION', providerId: 'web-bank', flags: 'NONE' }
    for (const seen of [{}, { seen: '' }, { seen: 'x' }]) {
      const reply = await session.post(path, { action, ...lines, ...seen })
      expect(reply.status).toBe(409)
      expect(reply.text).toContain('Somebody changed this after the page was loaded')
    }
    expect(await stored()).toEqual(before)
  })
})

test('the settings of an application are saved also after a version was added, which their form does not show', async () => {
  const { text } = await session.get('/applications/my-app')
  const seen = /name="seen" value="([\w-]+)"/.exec(text)?.[1] ?? ''
  expectOk(await call('POST', '/admin/applications/my-app/versions', { name: 'meanwhile' }))
  const form = { action: 'settings', seen, vaultFactors: 'POSSESSION_KNOWLEDGE', isProtocol3Admitted: 'true', roles: 'seen' }
  expect(await session.post('/applications/my-app', form)).toMatchObject({ status: 303 })
  expect(await read('/admin/applications/my-app', 'responseObject', 'roles')).toEqual(['seen'])
})

describe('no form is an error of the server', () => {
  test.each(['constructor', 'toString', '__proto__', 'hasOwnProperty'])('not for the action %s', async (action) => {
    for (const path of ['/applications', '/templates/transfer', '/config'])
      expect([path, (await session.post(path, { action })).status]).toEqual([path, 400])
  })

  test.each(['constructor', '__proto__', 'toString'])('not for a row of the kind %s', async (type) => {
    const row = { [`texts.en.attributes.0.type`]: type, [`texts.en.attributes.0.text`]: 'Row' }
    const reply = await session.post('/check-template/transfer', { action: 'save', language: 'en', ...row })
    expect([reply.status, reply.text.includes('must be one of AMOUNT')]).toEqual([200, true])
  })

  test.each(['null', '5', '[]', '{"en":null}', '{"en":{"attributes":5}}', '{"en":{"attributes":[null]}}', '{"en":{"title":{}}}'])(
    'not for the texts %s, whatever is done to them',
    async (texts) => {
      for (const change of ['', 'form', 'json', 'add:en', 'up:en:1', 'language', 'forget:en']) {
        const form = { action: 'save', mode: 'json', texts, change, newLanguage: 'cs' }
        const reply = await session.post('/check-template/transfer', form)
        expect([change, reply.status]).toEqual([change, 200])
        // They stay as they were typed, and what is wrong with them is said.
        expect(reply.text).toContain('name="texts"')
        if (change === 'form') expect(reply.text).toMatch(/class="fault" id="texts-note">texts/)
      }
    },
  )

  test('not for JSON of too many levels', async () => {
    const deep = '['.repeat(20_000) + ']'.repeat(20_000)
    const seenAt = async (path: string): Promise<string> =>
      /name="seen" value="([\w-]+)"/.exec((await session.get(path)).text)?.[1] ?? ''
    const replies = [
      await session.post('/config', { action: 'store', key: 'deep', value: deep, seen: await seenAt('/config') }),
      await session.post('/applications/my-app', {
        action: 'settings',
        customObject: deep,
        seen: await seenAt('/applications/my-app'),
      }),
      await session.post('/templates/transfer', {
        action: 'save',
        mode: 'json',
        texts: deep,
        seen: await seenAt('/templates/transfer'),
      }),
    ]
    expect(replies.map(({ status }) => status)).toEqual([400, 400, 400])
    for (const { text } of replies) expect(text).toContain('must be JSON of at most 64 levels')
  })

  test('and a line that is no JSON object is neither dropped nor lost', async () => {
    for (const more of ['5', '[1]', '"x"', 'null', '{'])
      for (const change of ['', 'add:en', 'json']) {
        const form = { action: 'save', language: 'en', 'texts.en.ui.mode': 'own', 'texts.en.ui.more': more, change }
        const { text } = await session.post('/check-template/transfer', form)
        expect([more, change, /id="texts\.en\.ui\.more-note">must be/.test(text)]).toEqual([more, change, true])
        expect(text).toContain(`>\n${more.replaceAll('"', '&#34;')}</textarea>`)
      }
  })
})

test.each(['2027-02-30T12:00', '2027-04-31T12:00:00', 'tomorrow', '12.11.2027', '2027-12-31T12:00+01:00'])(
  'the end %s, which no calendar has or no form sends, is refused',
  async (time) => {
    const username = `ends-${time.length}`
    const credential = { action: 'create', username, role: 'admin', expiresAt: time }
    expect(await session.post('/credentials', credential)).toMatchObject({ status: 400 })
    const pin = { action: 'fingerprint', printDomain: `${username}.example`, fingerprint: 'ab'.repeat(32), expires: time }
    expect(await session.post('/certificates', pin)).toMatchObject({ status: 400 })
    expect(JSON.stringify([await read('/admin/users', 'users'), await read('/admin/apps/my-app')])).not.toContain(username)
  },
)

test.each(['2027-02-30', 'abc', '1969-12-31'])(
  'a log is not shown from the day %s, and from no other in its place',
  async (day) => {
    for (const path of ['/audit', '/audit/devices'])
      for (const bound of ['from', 'to'])
        expect([path, bound, (await session.get(`${path}?app=my-app&userId=alice&${bound}=${day}`)).status]).toEqual([
          path,
          bound,
          400,
        ])
  },
)

describe.skipIf(!hasChromium)(`in a browser (needs ${CHROMIUM})`, () => {
  let browser: Browser
  let older: Page
  let newer: Page
  beforeAll(async () => {
    browser = await launchChromium()
    const { json } = expectOk(await call('POST', '/admin/users', { username: 'other', role: 'admin' }))
    older = await openPage(browser, { viewport: { width: 1280, height: 900 } })
    newer = await openPage(browser, { viewport: { width: 1280, height: 900 } })
    await signIn(older, server.url, server.admin.user, server.admin.password)
    await signIn(newer, server.url, 'other', String(member(json, 'password')))
  })
  afterAll(() => browser?.close())

  /** Types into the form and sends it. Returns the status of the answer that is a page. */
  async function save(page: Page, { button, label }: FormCase, value: string): Promise<number> {
    const guard = page.locator('details.guarded:not([open]) > summary', { hasText: button })
    if ((await guard.count()) > 0) await guard.click()
    const name = page.getByLabel('Name', { exact: true })
    if (label === 'Value') await name.fill('payments.limit')
    await page.getByLabel(label, { exact: true }).fill(value)
    return press(page, button)
  }

  /** Waits for the answer to the form itself. Redirects are followed. */
  async function press(page: Page, button: string): Promise<number> {
    const answered = page.waitForResponse((reply) => reply.request().isNavigationRequest() && reply.status() !== 303)
    await page.getByRole('button', { name: button, exact: true }).first().click()
    const status = (await answered).status()
    await page.waitForLoadState('load')
    return status
  }

  test.each(Object.entries(CASES))('%s: who saves later is shown what somebody else saved first', async (_name, make) => {
    const form = make()
    const [first, second] = form.values
    for (const page of [older, newer]) await page.goto(`${server.url}/console${form.path}`)
    expect(await save(newer, form, first)).toBe(200)
    const stored = await form.stored()
    expect(await save(older, form, second)).toBe(409)
    expect(await form.stored()).toEqual(stored)
    expect(await older.getByRole('alert').innerText()).toContain('Somebody changed this after the page was loaded')
    const shown = older.getByLabel(form.label, { exact: true })
    if (form.label === 'Value') expect(await older.locator('.rows tbody').innerText()).toContain(first)
    else expect(await shown.inputValue()).toBe(first)
    // What was typed can still be read.
    await older.locator('summary', { hasText: 'Your form had' }).click()
    expect(await older.locator('main').innerText()).toContain(second)
    // Now the page is of today.
    expect(await save(older, form, second)).toBe(200)
    expect(await form.stored()).not.toEqual(stored)
  })

  test('a form that was moved about, or refused, is of the version of its first page', async () => {
    const form = (CASES['a template'] as () => FormCase)()
    for (const page of [older, newer]) await page.goto(`${server.url}/console${form.path}`)
    await older.getByRole('button', { name: 'Add a row' }).first().click()
    await expect.poll(() => older.locator('.rows-editor > li').count()).toBeGreaterThan(4)
    expect(await save(newer, form, '3')).toBe(200)
    await older.getByRole('button', { name: 'Move up Note' }).click()
    await press(older, 'Check')
    expect(await save(older, form, '4')).toBe(409)
    expect(await form.stored()).toBe(3)
  })

  test('a secret that was typed is not shown again', async () => {
    const form = (CASES['an OpenID provider'] as () => FormCase)()
    for (const page of [older, newer]) await page.goto(`${server.url}/console${form.path}`)
    expect(await save(newer, form, 'sub')).toBe(200)
    await older.getByLabel('Secret').fill('hush, a new secret')
    expect(await save(older, form, 'other')).toBe(409)
    expect(await older.content()).not.toContain('hush')
  })

  test('a form shows what was typed into it, and not what another form of its page had', async () => {
    await older.goto(`${server.url}/console/certificates`)
    const pem = older.locator('details.more', { hasText: 'From a PEM file' })
    await pem.locator('summary').click()
    await pem.getByLabel('Common name').fill('login.bank.example')
    await pem.getByLabel('Certificate').fill('no certificate')
    await pem.getByLabel('even if it is for other names').check()
    await pem.getByRole('button', { name: 'Pin' }).click()
    await older.getByRole('alert').waitFor()
    expect(await pem.getByLabel('Common name').isVisible()).toBe(true)
    expect(await pem.getByLabel('even if it is for other names').isChecked()).toBe(true)
    expect(await older.getByLabel('even if it is for other names').first().isChecked()).toBe(false)
    expect(await older.locator('#domain[aria-invalid]').count()).toBe(0)
  })
})
