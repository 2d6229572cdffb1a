// The page of the example web back ends, in a browser, before a back end that a test plays: examples/backend/page.html.
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { encodeQR } from 'qr'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CHROMIUM, hasChromium, launchChromium, openPage } from '../helpers/console.ts'

type Answer = readonly [status: number, json: object]

describe.skipIf(!hasChromium)(`the page in a browser (needs ${CHROMIUM})`, () => {
  let server: Server
  let browser: Browser
  let url: string
  /** What is answered, by method and path with query; `asked` are the calls so far, with their bodies. */
  let answers: Record<string, Answer>
  const asked: string[] = []
  beforeAll(async () => {
    const answer = async (request: IncomingMessage, response: ServerResponse): Promise<unknown> => {
      const parts: Buffer[] = []
      for await (const part of request as AsyncIterable<Buffer>) parts.push(part)
      const name = `${request.method} ${request.url}`
      if (name === 'GET /') return response.setHeader('content-type', 'text/html').end(readFileSync('examples/backend/page.html'))
      asked.push(`${name} ${Buffer.concat(parts).toString()}`.trim())
      const [status, json] = answers[name] ?? [404, {}]
      return response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(json))
    }
    server = createServer((request, response) => void answer(request, response))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    browser = await launchChromium()
  })
  afterAll(async () => {
    await browser?.close()
    server.closeAllConnections()
    server.close()
  })

  async function open(): Promise<{ page: Page; complaints: string[] }> {
    const page = await openPage(browser)
    const complaints: string[] = []
    page.on('pageerror', (error) => complaints.push(error.message))
    await page.goto(url)
    return { page, complaints }
  }

  test('binds a phone: the code, the number to compare, and the commit', async () => {
    const text = 'VVVVV-VVVVV-VVVVV-VTFVA#MEUCIQDcPHNjYPjLQ7iYoQ=='
    answers = {
      'POST /register': [200, { qrCode: encodeQR(text, 'svg', { ecc: 'low', border: 4 }), text }],
      'GET /registration?userId=ca%20rol': [200, { registration: 'CREATED' }],
      'POST /commit': [200, { status: 'OK' }],
    }
    const { page, complaints } = await open()
    await page.getByLabel('You are').fill('ca rol')
    await page.getByRole('button', { name: 'Bind a phone' }).click()
    await page.getByText('Scan the code').waitFor()
    expect(await page.locator('#code svg').boundingBox()).toMatchObject({ width: expect.any(Number) as unknown })
    expect(await page.locator('#code').getAttribute('title')).toBe(text)
    const commit = page.getByRole('button', { name: 'The phone shows the same number' })
    expect(await commit.isVisible()).toBe(false)
    answers['GET /registration?userId=ca%20rol'] = [200, { registration: 'PENDING_COMMIT', activationFingerprint: '74618273' }]
    await page.getByText('The number of this phone is 74618273.').waitFor()
    expect(await page.locator('#code svg').count()).toBe(0)
    await commit.click()
    await page.getByText('Your phone is bound.').waitFor()
    expect(asked).toContain('POST /register {"userId":"ca rol"}')
    expect(asked.at(-1)).toBe('POST /commit {"userId":"ca rol"}')
    expect(complaints).toEqual([])
    await page.context().close()
  })

  test('follows a login from PENDING to APPROVED, and shows what was refused', async () => {
    answers = {
      'POST /login': [200, { operationId: 'o-1' }],
      'GET /login?operationId=o-1': [200, { status: 'PENDING' }],
    }
    const { page, complaints } = await open()
    const log = page.getByRole('button', { name: 'Log in with the phone' })
    await log.click()
    const status = page.getByRole('status')
    await expect.poll(() => status.textContent()).toBe('PENDING')
    answers['GET /login?operationId=o-1'] = [200, { status: 'APPROVED' }]
    await expect.poll(() => status.textContent()).toBe('APPROVED')
    answers['POST /login'] = [400, { error: 'No such <b>registration</b>' }]
    await log.click()
    await expect.poll(() => status.textContent()).toBe('No such <b>registration</b>')
    expect(complaints).toEqual([])
    await page.context().close()
  })
})
