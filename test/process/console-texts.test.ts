// Texts with characters that nobody sees or that turn others around, on every page of the console.
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestServer, type TestServer } from '../helpers/app.ts'
import { startSession } from '../helpers/console-session.ts'
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

/** Stands in every text that a phone or the bank chooses: overrides, isolates, nothing that is seen, and a letter from the right. */
const MARK = '\u202Egpj\u2066\u200B\u00AD\u2060\u3164א'
const HIDDEN = /[\u00AD\u061C\u200B-\u200F\u202A-\u202E\u2060-\u206F\u3164\uFEFF\u{E0000}-\u{E007F}]/u

let server: TestServer
let furnished: Furnished
beforeAll(async () => {
  server = await startTestServer()
  const { user, password } = server.admin
  furnished = await furnish(server.url, `${user}:${password}`, MARK)
}, 120_000)
afterAll(() => server?.close())

/** What a person reads of a page: without what a browser sends or follows. */
const readable = (page: string): string =>
  page
    .replaceAll(/<textarea\b[^>]*>[^<]*<\/textarea>/g, '')
    .replaceAll(/\s(?:value|href|action|hx-[a-z]+|id|for|name)="[^"]*"/g, '')

test('every page shows them by their number, and none as they are', async () => {
  const { user, password } = server.admin
  const session = await startSession(server.url, user, password)
  let marked = 0
  let isolated = 0
  for (const [, path] of consolePages(furnished)) {
    const reply = await session.get(path)
    expect([path, reply.status]).toEqual([path, 200])
    const text = readable(reply.text)
    expect([path, HIDDEN.exec(text)?.index ?? -1, text.slice((HIDDEN.exec(text)?.index ?? 0) - 80).slice(0, 90)]).toEqual([
      path,
      -1,
      expect.any(String),
    ])
    marked += text.split('\\u{202e}').length - 1
    isolated += text.split('<bdi>').length - 1
  }
  expect(marked).toBeGreaterThan(60)
  expect(isolated).toBeGreaterThan(40)
})

test('so does what is searched for, a page that is not there, and what is refused', async () => {
  const { user, password } = server.admin
  const session = await startSession(server.url, user, password)
  const evil = encodeURIComponent(`nobody${MARK}`)
  for (const path of [
    `/registrations?userId=${evil}`,
    `/operations?userId=${evil}&status=${evil}`,
    `/audit?username=${evil}&action=${evil}`,
    `/audit/devices?userId=${evil}`,
    `/inbox?userId=${evil}`,
    `/templates/${evil}`,
    `/applications/${evil}`,
    `/webhooks/${evil}`,
    `/${evil}`,
    `/?app=${encodeURIComponent(`second-app${MARK}`)}`,
  ])
    expect([path, HIDDEN.test(readable((await session.get(path)).text))]).toEqual([path, false])
  const refused = await session.post('/applications', { action: 'create', id: `x${MARK}\u0000`, name: `n${MARK}` })
  expect(HIDDEN.test(readable(refused.text))).toBe(false)
})

test('a form keeps what it had, character by character', async () => {
  const { user, password } = server.admin
  const session = await startSession(server.url, user, password)
  const page = (await session.get(`/webhooks/${furnished.webhookId}`)).text
  expect(page).toContain(`value="Core banking${MARK}"`)
})

describe.skipIf(!hasChromium)(`in a browser (needs ${CHROMIUM})`, () => {
  let browser: Browser
  let page: Page
  beforeAll(async () => {
    browser = await launchChromium()
    page = await openPage(browser, { viewport: { width: 1280, height: 900 } })
    await signIn(page, server.url, server.admin.user, server.admin.password)
  })
  afterAll(() => browser?.close())

  test('a user id reads in the order in which it was written', async () => {
    await page.goto(`${server.url}/console/registrations`)
    const file = process.env['PAWL_TEST_SCREENSHOT']
    if (file !== undefined) await page.screenshot({ path: file, fullPage: true })
    const cell = page.locator('td bdi', { hasText: /^alice/ }).first()
    expect(await cell.innerText()).toBe('alice\\u{202e}gpj\\u{2066}\\u{200b}\\u{ad}\\u{2060}\\u{3164}א')
    // Line by line and from left to right on the screen, whatever the characters would have done.
    const places = await cell.evaluate((element) =>
      [...element.querySelectorAll('.hidden-char')].map((mark) => {
        const { left, bottom } = mark.getBoundingClientRect()
        return Math.round(bottom) * 10_000 + left
      }),
    )
    expect(places).toHaveLength(6)
    expect(places).toEqual(places.toSorted((a, b) => a - b))
  })
})
