// The page that shows the description, in a browser: without anything from elsewhere, and without a complaint.
import type { Browser, Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestServer, type TestServer } from '../helpers/app.ts'
import { createBank } from '../helpers/bank.ts'
import { CHROMIUM, hasChromium, launchChromium, openPage } from '../helpers/console.ts'
import { member, sendJson } from '../../phone/http.ts'

let server: TestServer
let document: unknown
beforeAll(async () => {
  server = await startTestServer()
  document = (await sendJson(server.url, 'GET', '/openapi.json')).json
})
afterAll(() => server.close())

describe.skipIf(!hasChromium)(`the page in a browser (needs ${CHROMIUM})`, () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchChromium()
  })
  afterAll(() => browser?.close())

  test('lists all operations and carries one out, without an error and without asking another host', async () => {
    await createBank(server.url, `${server.admin.user}:${server.admin.password}`).createApplication('test-app')
    const page = await openPage(browser, { viewport: { width: 1280, height: 1600 } })
    const { complaints, foreign } = watchPage(page, server.url)
    await page.goto(`${server.url}/swagger-ui.html`)
    await page.locator('.opblock').first().waitFor()
    // The page shows the messages of webhooks as operations, too.
    const messages = Object.keys(member(document, 'webhooks') as object)
    expect((await listShown(page)).size).toBe(countOperations(document) + messages.length)

    const filter = page.locator('.operation-filter-input')
    await filter.fill('/pa/v4/biometry/rem')
    await page.locator('.opblock:has([data-path="/pa/v4/biometry/remove"])').waitFor()
    // The messages of webhooks are drawn apart, whatever the box says.
    expect(await page.locator('.opblock').count()).toBe(1 + messages.length)
    await filter.fill('')
    await page.locator('.opblock').nth(3).waitFor()

    await authorize(page, server.admin)
    const operation = await showOperation(page, '#operations-Registration-readRegistration')
    await operation.locator('.opblock-summary-control').click()
    await operation.getByRole('button', { name: 'Try it out' }).click()
    await operation.getByPlaceholder('userId').fill('bob')
    await operation.getByRole('button', { name: 'Execute' }).click()
    await operation.locator('.live-responses-table .response-col_status').getByText('200').waitFor()
    expect(await operation.locator('.live-responses-table').innerText()).toContain('"registration": "NONE"')

    const encrypted = await showOperation(page, '.opblock:has([data-path="/pa/v3/token/create"])')
    await encrypted.locator('.opblock-summary-control').click()
    await encrypted.getByText('Authentication code over resource id').waitFor()
    const screenshot = process.env['PAWL_TEST_SCREENSHOT']
    if (screenshot) await page.screenshot({ path: screenshot, fullPage: true })
    expect(complaints).toEqual([])
    expect(foreign).toEqual([])
    await page.context().close()
  })
})

/** The ids of all operations, from top to bottom: of a long list the page draws what can be seen, and a little more. */
async function listShown(page: Page): Promise<Set<string>> {
  const shown = new Set<string>()
  await page.evaluate(SCROLL_TO_TOP)
  for (let isMore = true; isMore; isMore = await page.evaluate<boolean>(SCROLL_ON)) {
    for (const id of await page.locator('.opblock').evaluateAll((blocks) => blocks.map(({ id }) => id))) shown.add(id)
  }
  return shown
}

/** Scrolls until the page draws an operation. */
async function showOperation(page: Page, selector: string): Promise<Locator> {
  const operation = page.locator(selector)
  await page.evaluate(SCROLL_TO_TOP)
  while ((await operation.count()) === 0 && (await page.evaluate<boolean>(SCROLL_ON)));
  return operation
}

// Expressions of the page: it draws in the frames that follow. The second one is false at the bottom.
const DRAWN = 'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))'
const SCROLL_TO_TOP = `scrollTo(0, 0), ${DRAWN}`
const SCROLL_ON = `(async () => { const before = scrollY; scrollBy(0, 400); await ${DRAWN}; return scrollY > before })()`

/** Collects what the page complains about, refused policies among it, and every address that is not this server's. */
function watchPage(page: Page, url: string): { complaints: string[]; foreign: string[] } {
  const complaints: string[] = []
  const foreign: string[] = []
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(String(error)))
  page.on('requestfailed', (request) => complaints.push(`${request.url()} failed`))
  page.on('request', (request) => {
    if (!request.url().startsWith(`${url}/`) && !request.url().startsWith('data:')) foreign.push(request.url())
  })
  return { complaints, foreign }
}

async function authorize(page: Page, { user, password }: TestServer['admin']): Promise<void> {
  await page.locator('.auth-wrapper > .authorize').click()
  const form = page.locator('.auth-container', { has: page.getByLabel('auth-basic-username') }).first()
  await form.getByLabel('auth-basic-username').fill(user)
  await form.getByLabel('auth-basic-password').fill(password)
  await form.getByRole('button', { name: 'Apply credentials' }).click()
  await page.locator('.modal-ux-header .close-modal').click()
}

const countOperations = (described: unknown): number =>
  Object.values(member(described, 'paths') as Record<string, object>).flatMap((methods) => Object.keys(methods)).length
