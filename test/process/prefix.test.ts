// Below a prefix: HAProxy, by the lines of docs/OPERATIONS.md, takes /pawl off the path. A browser signs in there, follows every link, and signs out.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { member, NO_BODY, send, sendJson } from '../../phone/http.ts'
import { startTestServer, type TestServer } from '../helpers/app.ts'
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
import { HAPROXY, hasHaproxy, makePem, openStripping, type Stripping } from '../helpers/haproxy.ts'
import { findQuietPort } from '../helpers/ports.ts'
import { ADMIN_PASSWORD, createInstallation, DATABASE_KIND, endEverything, startPawl } from '../helpers/process.ts'
import { PATIENCE_MS } from '../helpers/patience.ts'

const folder = mkdtempSync(join(tmpdir(), 'pawl-prefix-'))
afterAll(() => rmSync(folder, { recursive: true }))

describe.skipIf(!hasHaproxy || !hasChromium).each([
  ['https', '/pawl'],
  ['http', '/phones/of/the-bank'],
] as const)(`a browser by %s at the prefix '%s' (needs ${HAPROXY} and ${CHROMIUM})`, (scheme, prefix) => {
  let server: TestServer
  let proxy: Stripping
  let url: string
  let furnished: Furnished
  let browser: Browser
  let page: Page
  const foreign: string[] = []
  const complaints: string[] = []

  beforeAll(async () => {
    const port = await findQuietPort()
    const given = `${scheme}://127.0.0.1:${port}${prefix}`
    server = await startTestServer({ env: { PAWL_PUBLIC_URL: given, PAWL_TRUSTED_PROXIES: '127.0.0.1' } })
    const pem = scheme === 'https' ? makePem(folder) : undefined
    proxy = await openStripping(given, Number(new URL(server.url).port), pem)
    url = proxy.url
    const { user, password } = server.admin
    // Phones, too, come by the prefix, where they would trust the certificate.
    furnished = await furnish(scheme === 'https' ? server.url : url, `${user}:${password}`)
    browser = await launchChromium()
    page = await openPage(browser, { viewport: { width: 1280, height: 900 }, ignoreHTTPSErrors: true })
    page.setDefaultTimeout(PATIENCE_MS)
    page.on('request', (request) => {
      if (!request.url().startsWith(`${url}/`) && !request.url().startsWith('data:')) foreign.push(request.url())
    })
    page.on('requestfailed', (request) => {
      const why = request.failure()?.errorText
      // The next page was asked for before this one had its icon.
      if (why !== 'net::ERR_ABORTED') complaints.push(`${request.url()}: ${why}`)
    })
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
    })
  })
  afterAll(async () => {
    await browser?.close()
    await proxy?.close()
    await server?.close()
  })

  const addresses = (): Promise<string[]> =>
    page.evaluate(`[...document.querySelectorAll('a, form, link, script')].map((one) => one.tagName === 'FORM'
      ? new URL(one.getAttribute('action'), document.baseURI).href : one.href ?? one.src)
      .concat([...document.querySelectorAll('[hx-get]')].map((one) => new URL(one.getAttribute('hx-get'), document.baseURI).href))`)

  test('the way in leads to the sign-in, and from there to the page that was asked for', async () => {
    const { user, password } = server.admin
    await page.goto(`${url}/console/audit/devices?userId=alice`)
    expect(page.url()).toMatch(`${url}/console/sign-in?next=`)
    await page.getByLabel('User name').fill(user)
    await page.getByLabel('Password').fill('not the password')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('alert').waitFor()
    expect(page.url()).toBe(`${url}/console/sign-in`)
    await page.getByLabel('Password').fill(password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.waitForURL(`${url}/console/audit/devices?userId=alice`)
    complaints.length = 0
  })

  test('the cookie is one of the prefix, or with TLS of the host', async () => {
    const cookies = await page.context().cookies(`${url}/console/`)
    const path = scheme === 'https' ? '/' : `${prefix}/console`
    expect(cookies).toEqual([expect.objectContaining({ path, httpOnly: true, secure: scheme === 'https', sameSite: 'Strict' })])
  })

  test('/ leads to the console', async () => {
    await page.goto(`${url}/`)
    expect(page.url()).toBe(`${url}/console/`)
  })

  // The pages know of a prefix, and of no scheme: they are walked through once.
  test.runIf(scheme === 'https')('every link, form and file of every page is below the prefix and there', async () => {
    const seen = new Set<string>()
    for (const path of ['', ...consolePages(furnished).map(([, one]) => one)]) {
      const reply = await page.goto(`${url}/console${path}`)
      expect([path, reply?.status()]).toEqual([path, 200])
      for (const address of await addresses()) seen.add(address.split('#')[0] ?? '')
    }
    expect([...seen].filter((address) => !`${address}/`.startsWith(`${url}/console/`))).toEqual([])
    expect(seen.size).toBeGreaterThan(40)
    const broken: string[] = []
    for (const address of seen) {
      if (address.endsWith('/sign-out')) continue
      const reply = await page.context().request.get(address, { maxRedirects: 0 })
      if (reply.status() !== 200) broken.push(`${address}: ${reply.status()}`)
    }
    expect(broken).toEqual([])
    expect(foreign).toEqual([])
    expect(complaints).toEqual([])
  })

  test('links are followed, forms sent, and a page asks for itself', async () => {
    await page.goto(`${url}/console`)
    await page.getByRole('link', { name: 'Registrations' }).first().click()
    await page.waitForURL(`${url}/console/registrations?app=my-app`)
    await page.locator('#user').fill('alice')
    await page.getByRole('button', { name: 'Apply' }).click()
    await page.waitForURL(/\/console\/registrations\?app=my-app&user=alice/)
    await page.goto(`${url}/console/registrations/new`)
    await page.locator('#newUserId').fill(`zoe${prefix.length}`)
    await page.locator('form:has(#newUserId)').getByRole('button').click()
    await page.waitForURL(/\/console\/registrations\/(?!new)[\w-]+\?.*done=created/)
    const asked = await page.waitForRequest((request) => request.headers()['hx-request'] === 'true')
    expect(asked.url()).toBe(page.url())
    expect((await asked.response())?.status()).toBe(200)
    expect(page.url().startsWith(`${url}/console/registrations/`)).toBe(true)
    const missing = await page.goto(`${url}/console/registrations/nothing/at/all`)
    expect(missing?.status()).toBe(404)
    await page.getByRole('link', { name: 'To the overview' }).click()
    await page.waitForURL(`${url}/console/`)
    expect(foreign).toEqual([])
  })

  test.runIf(scheme === 'https')('the description of the APIs asks below the prefix', async () => {
    complaints.length = 0
    await page.goto(`${url}/swagger-ui.html`)
    await page.locator('.operation-filter-input').fill('/health/live')
    const operation = page.locator('.opblock:has([data-path="/health/live"])')
    await operation.locator('.opblock-summary-control').click()
    await operation.getByRole('button', { name: 'Try it out' }).click()
    const [request] = await Promise.all([
      page.waitForRequest(/\/health\/live$/),
      operation.getByRole('button', { name: 'Execute' }).click(),
    ])
    expect(request.url()).toBe(`${url}/health/live`)
    await operation.locator('.live-responses-table .response-col_status').getByText('200').waitFor()
    expect(foreign).toEqual([])
    expect(complaints).toEqual([])
  })

  test('a session that has ended leads to the sign-in, also where the page asks for itself', async () => {
    await page.goto(`${url}/console/`)
    const other = await page.context().newPage()
    await other.goto(`${url}/console/`)
    await other.getByRole('button', { name: 'Sign out' }).click()
    await other.waitForURL(`${url}/console/sign-in`)
    await page.waitForURL(/\/console\/sign-in\?next=/, { timeout: PATIENCE_MS })
    expect(page.url().startsWith(`${url}/console/sign-in?next=`)).toBe(true)
    expect(await page.context().cookies(`${url}/console/`)).toEqual([])
    expect(foreign).toEqual([])
    await signIn(page, url, server.admin.user, server.admin.password)
    expect(page.url().startsWith(`${url}/console/`)).toBe(true)
  })

  test('a page of another host may not send a form, whatever the prefix', async () => {
    if (scheme === 'https') return
    const headers = { 'Content-Type': 'application/x-www-form-urlencoded', Origin: 'https://evil.example' }
    const reply = await send(url, {
      method: 'POST',
      path: '/console/sign-in',
      headers,
      body: Buffer.from('username=a&password=b'),
    })
    expect(reply.status).toBe(400)
  })
})

describe.skipIf(!hasHaproxy)(`a process that is started with the prefix (needs ${HAPROXY})`, () => {
  let proxy: Stripping | undefined
  afterAll(async () => {
    await proxy?.close()
    await endEverything()
  })

  const printed = (output: string, name: string): string => new RegExp(`^${name}: (\\S+)$`, 'm').exec(output)?.[1] ?? ''

  test.each(['one listener', 'two listeners'])('prints addresses that answer, with %s', async (kind) => {
    const { env } = await createInstallation(DATABASE_KIND)
    const [port, internalPort, proxyPort] = [await findQuietPort(), await findQuietPort(), await findQuietPort()]
    const url = `http://127.0.0.1:${proxyPort}/pawl`
    const hasTwo = kind === 'two listeners'
    proxy = await openStripping(url, port)
    const ports = { PAWL_PORT: String(port), ...(hasTwo && { PAWL_INTERNAL_PORT: String(internalPort) }) }
    const own = { PAWL_PUBLIC_URL: url, PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD, PAWL_TRUSTED_PROXIES: '127.0.0.1' }
    const pawl = await startPawl(env, ports, own)
    const bankUrl = hasTwo ? `http://127.0.0.1:${internalPort}` : url
    expect(printed(pawl.output(), 'Console')).toBe(`${bankUrl}/console/`)
    expect(printed(pawl.output(), 'API description')).toBe(`${bankUrl}/swagger-ui.html`)
    for (const name of ['Console', 'API description']) {
      const answer = await fetch(printed(pawl.output(), name))
      expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
      expect(answer.url.startsWith(`${bankUrl}/`)).toBe(true)
    }
    const authorization = `Basic ${Buffer.from(`admin:${ADMIN_PASSWORD}`).toString('base64')}`
    const made = await sendJson(bankUrl, 'POST', '/admin/application', { id: 'my-app' }, { Authorization: authorization })
    expect(made.status).toBe(200)
    const document = (await sendJson(bankUrl, 'GET', '/openapi.json')).json
    const [ofAll] = member(document, 'servers') as { url: string }[]
    expect(new URL(ofAll?.url ?? '', `${bankUrl}/openapi.json`).href).toBe(`${bankUrl}/`)
    const [ofPhones] = (member(document, 'paths', '/pa/v3/status', 'post', 'servers') ?? [ofAll]) as { url: string }[]
    const status = new URL(ofPhones?.url ?? '', `${bankUrl}/openapi.json`).href.replace(/\/?$/, '/pa/v3/status')
    expect((await fetch(status, { method: 'POST' })).status).toBe(200)
    const doctorsWay = await send(url, { method: 'POST', path: '/pa/v3/status', headers: {}, body: NO_BODY })
    expect(doctorsWay.text).toContain('serverTime')
    await pawl.end('SIGTERM')
    await proxy.close()
    proxy = undefined
  })
})
