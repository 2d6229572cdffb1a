// Lists, timelines and filters of the console with many users, long names and letters from the right, on a desk and on a phone.
import { sql } from 'kysely'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { member } from '../../phone/http.ts'
import type { VirtualPhone } from '../../phone/v3/virtual-phone.ts'
import { startTestServer, type TestServer } from '../helpers/app.ts'
import { type Bank, readQrCode } from '../helpers/bank.ts'
import {
  CHROMIUM,
  consolePages,
  type Furnished,
  furnish,
  hasChromium,
  launchChromium,
  MANY_USERS,
  openPage,
  signIn,
} from '../helpers/console.ts'
import { type ConsoleSession, startSession } from '../helpers/console-session.ts'
import { createCaller, RESOURCE, verdictOf } from '../helpers/door.ts'
import { expectOk } from '../helpers/world.ts'

/** By how many pixels lists reach over what is inside the padding of their cards. */
const TOO_WIDE = `[...document.querySelectorAll('.rows')].map((list) => {
  const { paddingLeft, paddingRight } = getComputedStyle(list.parentElement)
  return list.scrollWidth - (list.parentElement.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight))
}).filter((pixels) => pixels > 1)`

/** Words of up to 30 letters and signs, without a hyphen, that stand in two lines, in the names of lists. */
const BROKEN_NAMES = `[...document.querySelectorAll('.rows td:first-child :is(a, strong)')].flatMap((element) => {
  const texts = [...element.childNodes].filter(({ nodeType }) => nodeType === Node.TEXT_NODE)
  return texts.flatMap((text) => [...text.data.matchAll(/[^\\s-]{2,30}(?![^\\s-])/g)].flatMap(({ 0: word, index }) => {
    if (index > 0 && /\\S/.test(text.data[index - 1])) return []
    const range = document.createRange()
    range.setStart(text, index)
    range.setEnd(text, index + word.length)
    return new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size > 1 ? [word] : []
  }))
})`

/** As phones of today show it. */
const PHONE = { width: 390, height: 844 }
const PAGE_BYTES_MAX = 60_000

let server: TestServer
let furnished: Furnished
let bank: Bank
let session: ConsoleSession
let phone: VirtualPhone
let rejected: string
beforeAll(async () => {
  server = await startTestServer()
  const { user, password } = server.admin
  furnished = await furnish(server.url, `${user}:${password}`)
  bank = furnished.world.bank
  session = await startSession(server.url, user, password)
  phone = furnished.world.newPhone('3.3')
  const webhook = {
    application: furnished.applicationId,
    kind: 'ACTIVATION',
    name: 'Customers',
    url: 'https://receiver.invalid/customers',
  }
  expectOk(await bank.call('POST', '/admin/webhooks', { ...webhook, attributes: ['userId'] }))
  for (const name of MANY_USERS) {
    const { code } = readQrCode(await bank.register(name))
    if (name !== 'Customer-7') continue
    await phone.activate(code)
    expectOk(await bank.commit(name))
  }
  rejected = await ask('payment', { amount: '19.90', currency: 'EUR', iban: 'DE89370400440532013000' })
  await phone.exchange(phone.prepareReject(rejected, { reason: 'UNEXPECTED_OPERATION' }))
}, 120_000)
afterAll(() => server?.close())

const ask = async (template: string, parameters: Record<string, string>): Promise<string> =>
  String(member(expectOk(await bank.createOperation({ userId: 'Customer-7', template, parameters })).json, 'operationId'))
/** What a person reads of a page. */
const read = async (path: string): Promise<string> => {
  const reply = await session.get(path)
  expect([path, reply.status]).toEqual([path, 200])
  return (reply.text.split('<main')[1] ?? '').replaceAll(/<br>|<\/(?:li|tr|td|p|dd|dt)>/g, '\n').replaceAll(/<[^>]*>/g, '')
}

describe('lists', () => {
  test('name an operation by what the phone shows of it, and lead to its user', async () => {
    const list = await read('/operations')
    expect(list).toMatch(/€19\.90 Payment\s*DE89370400440532013000 · payment/)
    expect(list).toMatch(/CZK\s2,490\.00 Transfer to Jana Nováková/)
    expect((await session.get('/operations')).text).toContain('registrations?app&#61;my-app&#38;userId&#61;Customer-7')
  })

  test('tell readers the template alone', async () => {
    const { user, password } = furnished.auditor
    const reader = await startSession(server.url, user, password)
    const { text } = await reader.get('/operations')
    expect(text).toContain('payment')
    expect(text).not.toMatch(/19\.90|DE8937|Nováková/)
  })

  test('lead readers to no page that they may not see', async () => {
    const { user, password } = furnished.auditor
    const reader = await startSession(server.url, user, password)
    const linksOf = (text: string) =>
      [...text.matchAll(/href="\.[./]*\/(operations\/[0-9a-f-]{36})/g)].map(([, path]) => `/${path}`)
    const [refused, shownToOthers]: [string[], string[]] = [[], []]
    for (const from of ['/', `/webhooks/${furnished.webhookId}`, '/audit/devices?userId=Customer-7', '/operations']) {
      const { status, text } = await reader.get(from)
      expect([from, status]).toEqual([from, 200])
      for (const path of new Set(linksOf(text))) if ((await reader.get(path)).status !== 200) refused.push(`${from} to ${path}`)
      shownToOthers.push(...linksOf((await session.get(from)).text))
    }
    expect(refused).toEqual([])
    expect(shownToOthers).not.toEqual([])
  })

  test('say reasons in words', async () => {
    expect(await read('/operations?status=REJECTED')).toContain('Unexpected operation')
    expect(await read(`/operations/${rejected}`)).toMatch(/Reason\s+Unexpected operation/)
  })

  test.each([
    ['/registrations', 'customer-1', 11],
    ['/registrations', 'CUSTOMER-26', 1],
    ['/registrations', 'ustomer', 25],
    ['/registrations', 'USTOMER-26', 1],
    ['/registrations', 'כהן', 1],
    ['/registrations', 'ustomer_', 0],
    ['/registrations', 'מ', 0],
    ['/registrations', 'דוד', 1],
    ['/registrations', '🦊', 1],
    ['/registrations', 'x'.repeat(99), 1],
    ['/registrations', '%', 0],
    ['/operations', 'CUST', 1],
    ['/operations', 'STOMER-7', 1],
    ['/operations', 'customer-8', 0],
  ])('%s finds users whose name begins with %j, or holds it where none does', async (path, user, count) => {
    const { text } = await session.get(`${path}?${new URLSearchParams({ user }).toString()}`)
    expect([...text.matchAll(/<tr><td/g)]).toHaveLength(count)
    if (count === 0) expect(text).toContain('Nothing matches')
  })

  test('are filtered by links that keep what was searched for, and pages of them too', async () => {
    const { text } = await session.get('/registrations?user=customer-&state=CREATED')
    expect(text).toContain('aria-current="true">Created')
    const hrefs = [...text.matchAll(/<a href="([^"]*)"[^>]*>(Blocked|Older →)/g)].map(([, href = '']) =>
      href.replaceAll('&#38;', '&').replaceAll('&#61;', '='),
    )
    expect(hrefs).toHaveLength(1)
    expect(hrefs[0]).toContain('user=customer-')
    expect(hrefs[0]).toContain('state=BLOCKED')
    const all = await session.get('/registrations?user=c')
    expect(/user=c&[^"]*cursor=/.test(all.text.replaceAll('&#38;', '&').replaceAll('&#61;', '='))).toBe(true)
  })

  test('of events name who had a phone verified, and say that nobody has a name', async () => {
    const events = await read('/audit/devices?userId=alice')
    expect(events).toMatch(/Right code asked by web-tier/)
    expect(events).toMatch(/Registration created asked by \S/)
    expect(await read('/audit/devices?userId=nobody-at-all')).toContain('Nobody of that name')
    // From a day on which there was nothing.
    expect(await read('/audit/devices?userId=alice&from=2020-01-01&to=2020-01-02')).toContain('Nothing found')
  })

  test('of events have those of the days that were chosen, also without a first one', async () => {
    await sql`insert into audit_pending (application_id, user_id, activation_id, event_type, event_data, occurred_at)
      values (${furnished.applicationId}, 'Customer-7', ${phone.state.activationId}, 'token_removed', '{}',
        clock_timestamp() - interval '40 days')`.execute(server.context.db)
    const last = new Date(Date.now() - 39 * 86_400_000).toISOString().slice(0, 10)
    for (const days of [`to=${last}`, `from=1970-01-01&to=${last}`])
      expect(await read(`/audit/devices?userId=Customer-7&${days}`), days).toContain('Token removed')
  })

  test('say what administrators did', async () => {
    const log = await read('/audit')
    expect(log).toContain('Set configuration item payments.limit of application my-app')
    expect(log).toContain('Created webhook')
  })
})

test('the page of an operation says for which device it is, which flag it demands, and that nobody has claimed it', async () => {
  const registrationId = phone.state.activationId
  const create = async (body: object) =>
    member(expectOk(await bank.createDeviceOperation({ template: 'login', ...body })).json, 'operationId')
  const id = String(await create({ userId: 'Customer-7', registrationId, applicationFlag: 'VIP' }))
  const page = await read(`/operations/${id}`)
  expect(page).toMatch(new RegExp(`Only on\\s+this device\\s+${registrationId}`))
  expect(page).toMatch(/Demands the flag\s+VIP/)
  expect((await session.get(`/operations/${id}`)).text).toContain(`registrations/${registrationId}`)
  const unclaimed = String(await create({}))
  const ofNobody = await read(`/operations/${unclaimed}`)
  expect(ofNobody).toMatch(/for nobody yet · login/)
  expect(ofNobody).not.toMatch(/Only on|Demands the flag/)
  const claim = await phone.prepareTokenCall('claim', await phone.createToken('possession'), { id: unclaimed })
  expectOk(await phone.send(claim))
  expect(await read(`/operations/${unclaimed}`)).toMatch(/Timeline[^]*Created[^]*Claimed\n[^\n]*by the phone/)
  for (const one of [id, unclaimed]) expectOk(await bank.cancelOperation(one))
})

test('a block that ends by itself can be made one that lasts', async () => {
  const id = phone.state.activationId
  const { db } = server.context
  await sql`update activation set state = 'BLOCKED', block_expires_at = now() + interval '1 hour' where activation_id = ${id}`.execute(
    db,
  )
  expect(await read(`/registrations/${id}`)).toMatch(/Block…/)
  const change = (action: string) => session.post(`/registrations/${id}`, { action, csrf: session.formToken })
  expect((await change('block')).status).toBe(303)
  expect(await read(`/registrations/${id}`)).not.toMatch(/Block…|until/)
  expect((await change('unblock')).status).toBe(303)
})

test('the page of an operation says who made and canceled it, also while it is for nobody', async () => {
  for (const body of [{ userId: 'Customer-7' }, { registrationId: phone.state.activationId }, {}]) {
    const id = member(expectOk(await bank.createDeviceOperation({ template: 'login', ...body })).json, 'operationId')
    expectOk(await bank.cancelOperation(String(id)))
    const timeline = /Timeline[^]*Created\n[^\n]* · by (\S+)[^]*Canceled\n[^\n]* · by (\S+)/.exec(
      await read(`/operations/${String(id)}`),
    )
    const user = bank.credential?.split(':')[0]
    expect(timeline?.slice(1)).toEqual([user, user])
  }
})

test('the figures of the overview say that they have the newest 1,000 operations alone', async () => {
  const { db } = server.context
  const fill = (from: number, to: number) =>
    sql`
    insert into operation select c.* from operation o, generate_series(${from}::int, ${to}::int) i, jsonb_populate_record(o, jsonb_build_object(
      'operation_id', '00000000-0000-4000-8000-' || lpad(i::text, 12, '0'), 'application_id', 'second-app',
      'created_at', clock_timestamp() - i * interval '1 second')) c
    where o.operation_id = ${rejected}`.execute(db)
  await fill(1, 999)
  expect(await read('/?app=second-app')).toMatch(
    /24 hours\s*999\s*0 wait [^]*Approved\s*0 %\s*of 999 that ended\s*Failed\s*0\s*too many/,
  )
  await fill(1_000, 1_200)
  expect(await read('/?app=second-app')).toMatch(
    /24 hours\s*1000\+\s*0\+ wait [^]*Approved\s*0 %\s*of 1000\+ that ended\s*Failed\s*0\+\s*too many/,
  )
  await sql`delete from operation where application_id = 'second-app'`.execute(db)
})

test('the overview says that more phones wait for their commit than it names', async () => {
  const { db } = server.context
  const wait = (from: number, to: number) =>
    sql`
    insert into activation select c.* from activation a, generate_series(${from}::int, ${to}::int) i, jsonb_populate_record(a, jsonb_build_object(
      'activation_id', '00000000-0000-4000-8000-' || lpad(i::text, 12, '0'), 'application_id', 'second-app', 'user_id', 'waits-' || i,
      'activation_code_hash', '\\x' || lpad(to_hex(i), 64, '0'), 'state', 'PENDING_COMMIT', 'expires_at', clock_timestamp() + interval '1 hour')) c
    where a.activation_id = ${phone.state.activationId}`.execute(db)
  await wait(1, 5)
  expect(await read('/?app=second-app')).toMatch(/waits-\d waits for the commit/)
  expect(await read('/?app=second-app')).not.toContain('More phones')
  await wait(6, 6)
  expect(await read('/?app=second-app')).toMatch(/waits-\d waits for the commit[^]*More phones wait for their commit/)
  expect((await session.get('/?app=second-app')).text).toMatch(
    /registrations\?app&#61;second-app&#38;state&#61;PENDING_COMMIT">More phones/,
  )
  await sql`delete from activation where application_id = 'second-app'`.execute(db)
})

describe('timelines', () => {
  test('of an operation have its end and what webhooks were told, and nothing that can be done no more', async () => {
    const page = await read(`/operations/${rejected}`)
    expect(page).toMatch(
      /Timeline[^]*Created[^]*Webhook Core banking is told “Pending”[^]*Rejected\n[^\n]*by the phone · Unexpected operation/,
    )
    expect(page).toMatch(/is told “Rejected”\n[^\n]*waits, because an earlier message about it was not delivered yet/)
    expect(page).not.toMatch(/Expires|Cancel the operation|Make a QR code/)
  })

  test('of an operation are whole, however much its user did later', async () => {
    const { db } = server.context
    const id = await ask('login', {})
    await phone.exchange(phone.prepareReject(id, { reason: 'NOT_ME' }))
    await sql`update operation set expires_at = clock_timestamp() where operation_id = ${id}`.execute(db)
    await sql`insert into audit_pending (application_id, user_id, activation_id, event_type, event_data, occurred_at)
      select ${furnished.applicationId}, 'Customer-7', ${phone.state.activationId}, 'token_created', '{}', clock_timestamp()
      from generate_series(1, 300)`.execute(db)
    expect(await read(`/operations/${id}`)).toMatch(/Rejected\n[^\n]*by the phone · Not me/)
    // The user decided long before the operation would have expired.
    const early = await ask('login', {})
    await phone.exchange(phone.prepareReject(early, { reason: 'NOT_ME' }))
    server.clock.advance(60_000)
    await sql`insert into audit_pending (application_id, user_id, activation_id, event_type, event_data, occurred_at)
      select ${furnished.applicationId}, 'Customer-7', ${phone.state.activationId}, 'token_created', '{}',
        ${new Date(server.context.platform.now())}
      from generate_series(1, 300)`.execute(db)
    expect(await read(`/operations/${early}`)).toMatch(/Rejected\n[^\n]*by the phone · Not me/)
  })

  test('of a delivery have what is sent, and why it waits', async () => {
    const path = `/admin/webhooks/${furnished.webhookId}/deliveries?objectId=${rejected}`
    const [behind, first] = member(expectOk(await bank.call('GET', path)).json, 'deliveries') as { id: string }[]
    expect(behind).toMatchObject({ objectStatus: 'REJECTED', status: 'WAITING', attempts: 0, isBehindEarlier: true })
    expect(first).toMatchObject({ objectStatus: 'PENDING', objectId: rejected })
    expect(first).not.toHaveProperty('isBehindEarlier')
    const page = await read(`/webhooks/${furnished.webhookId}/deliveries/${behind?.id}`)
    expect(page).toMatch(
      /What is sent[^]*&#34;event&#34;: &#34;rejected&#34;[^]*&#34;iban&#34;: &#34;DE89370400440532013000&#34;/,
    )
    expect(page).toContain('waits, because an earlier message about it was not delivered yet')
    expect((await session.get(`/webhooks/${furnished.webhookId}/deliveries/nothing`)).status).toBe(400)
  })

  test('of a registration name who did what, and why', async () => {
    expect(await read(`/registrations/${furnished.activationOf('dave')}`)).toMatch(/Active → Blocked\n[^\n]*· Lost/)
    const page = await read(`/registrations/${phone.state.activationId}`)
    expect(page).toMatch(
      /Webhook Customers is told “Active”\n[^]*Pending commit → Active\n[^]*Webhook Customers is told “Created”/,
    )
  })
})

describe('verifications for the bank', () => {
  test('stand on the page of the registration: when, which door, resource, verdict, and who asked', async () => {
    const page = await read(`/registrations/${furnished.activationOf('alice')}`)
    expect(page).toMatch(/Verified for the bank[^]*POST \/other\s+Wrong code\s+Code\s+web-tier\s+\S+/)
    expect(page).toMatch(/POST \/transfer\s+Transfer\s+Right\s+Code\s+web-tier/)
    // The phone of another user has none, and says nothing of them.
    expect(await read(`/registrations/${furnished.activationOf('erin')}`)).not.toContain('Verified for the bank')
  })

  test('have a page for more, and pages of that', async () => {
    const doors = await createCaller(bank, 'statements', 'verification', furnished.applicationId)
    for (let i = 0; i < 53; i += 1)
      await verdictOf(doors, phone.prepareSigned({ method: 'POST', path: '/bank', resourceId: RESOURCE, body: '{}' }), {
        auditText: `call ${i}`,
      })
    const here = `/registrations/${phone.state.activationId}`
    expect(await read(here)).toMatch(/Verified for the bank\s*All/)
    const first = await session.get(`${here}/verifications`)
    const next =
      /verifications\?app&#61;my-app&#38;before&#61;(\d+)/.exec(first.text)?.[1] ?? /before=(\d+)/.exec(first.text)?.[1]
    const rest = await read(`${here}/verifications?before=${next}`)
    const found = [...(await read(`${here}/verifications`)).matchAll(/call (\d+)/g), ...rest.matchAll(/call (\d+)/g)].map(
      ([, i]) => Number(i),
    )
    expect(new Set(found).size).toBe(53)
    expect(found).toHaveLength(53)
    expect((await session.get('/registrations/nobody/verifications')).status).toBe(400)
  })
})

test('the overview leads with the webhook that fails, and says nowhere that all is well', async () => {
  const text = await read('/')
  expect(text).toMatch(/^[^]*Overview[^]*Needs attention\s*Webhook fails/)
  expect(text.indexOf('Needs attention')).toBeLessThan(text.indexOf('Operations, 24 hours'))
  expect(text).not.toMatch(/is well|Nothing needs attention/)
})

test('the overview counts the days to the next end of a pin, not those since the end of one that nobody has removed', async () => {
  const { db } = server.context
  await sql`update pinned_certificate set expires_at = now() - interval '40 days' where domain = 'login.bank.example'`.execute(db)
  expect(await read('/')).toMatch(/Next certificate\s*in (209|210) days\s*until a pin ends/)
  await sql`update pinned_certificate set expires_at = now() - interval '40 days'`.execute(db)
  expect(await read('/')).toMatch(/Next certificate\s*–\s*all pins have ended/)
})

test('what is not there is said below the menu, and leads on', async () => {
  for (const path of [
    '/registrations/nobody',
    '/webhooks/nothing',
    '/templates/nothing',
    '/operations/3f2504e0-4f89-41d3-9a0c-0305e82c3301',
  ]) {
    const { status, text } = await session.get(path)
    expect([path, status, /<nav aria-label="Pages">/.test(text), /To the overview/.test(text)]).toEqual([path, 400, true, true])
    expect(text).not.toContain('Invalid or unknown')
  }
  expect((await session.get('/templates/nothing')).text).toContain('template: there is no template nothing')
})

test.each(['/inbox/nothing', '/inbox/3f2504e0-4f89-41d3-9a0c-0305e82c3301'])(
  '%s, an address of no message, is no form that was not accepted',
  async (path) => {
    const { status, text } = await session.get(path)
    expect([status, /<h1>([^<]*)/.exec(text)?.[1]]).toEqual([400, 'No such page'])
    expect(text).toContain('Nothing is at this address.')
    expect(text).not.toContain('Not accepted')
  },
)

test('a query that the API does not accept is said to be none that it accepts, and not that nobody or nothing is there', async () => {
  for (const path of [
    '/inbox?userId=alice&page=-1',
    '/inbox?userId=%20',
    '/audit/devices?userId=%20',
    '/audit/devices?userId=alice&before=x',
    '/operations?cursor=x',
    '/registrations?state=x',
  ]) {
    const { status, text } = await session.get(path)
    const title = /<h1>([^<]*)/.exec(text)?.[1]
    expect([path, status, title]).toEqual([path, 400, 'Not accepted'])
  }
})

test(`no page has more than ${PAGE_BYTES_MAX} bytes`, async () => {
  for (const [, path] of consolePages(furnished)) {
    const { text } = await session.get(path)
    expect([path, Buffer.byteLength(text) <= PAGE_BYTES_MAX]).toEqual([path, true])
  }
})

describe.skipIf(!hasChromium)(`in a browser (needs ${CHROMIUM})`, () => {
  let browser: Browser
  let page: Page
  beforeAll(async () => {
    browser = await launchChromium()
    page = await openPage(browser, { viewport: PHONE, permissions: ['clipboard-read', 'clipboard-write'] })
    await signIn(page, server.url, server.admin.user, server.admin.password)
  })
  afterAll(() => browser?.close())
  const open = (path: string) => page.goto(`${server.url}/console${path}`)

  test('records are cards of two lines on a phone, and none is wider than a window of 360', async () => {
    await open('/registrations?user=customer-2')
    const heights = await page
      .locator('.rows tbody tr')
      .evaluateAll((rows) => rows.map((row) => row.getBoundingClientRect().height))
    expect(heights.length).toBeGreaterThan(5)
    expect(Math.max(...heights)).toBeLessThan(75)
    await page.setViewportSize({ width: 360, height: 800 })
    for (const [, path] of consolePages(furnished)) {
      await open(path)
      expect([path, await page.evaluate('document.documentElement.scrollWidth - innerWidth')]).toEqual([path, 0])
    }
    await page.setViewportSize(PHONE)
  })

  test.each([820, 1010, 1280])('no list is wider than its card, and breaks a name, in a window of %i', async (width) => {
    await page.setViewportSize({ width, height: 800 })
    for (const [, path] of consolePages(furnished)) {
      await open(path)
      expect([path, await page.evaluate(TOO_WIDE), await page.evaluate(BROKEN_NAMES)]).toEqual([path, [], []])
    }
    await page.setViewportSize(PHONE)
  })

  test('everything that can be pressed, followed or typed into is reached by the keyboard', async () => {
    const paths = ['/operations', `/operations/${furnished.pendingOperation}`, `/registrations/${phone.state.activationId}`]
    for (const path of [...paths, `/webhooks/${furnished.webhookId}`, '/operations/new?template=transfer']) {
      await open(path)
      const count = await page.evaluate<number>(`(() => {
        const all = [...document.querySelectorAll('a[href], button, summary, input, select, textarea')]
        window.reached = new Set(all.filter((one) => one.type !== 'hidden' && one.checkVisibility({ visibilityProperty: true })))
        return window.reached.size
      })()`)
      expect(count).toBeGreaterThan(5)
      let left = count
      for (let i = 0; i < count * 2 && left > 0; i += 1) {
        await page.keyboard.press('Tab')
        left = await page.evaluate<number>('window.reached.delete(document.activeElement), window.reached.size')
      }
      const missed = await page.evaluate<string[]>('[...window.reached].map((one) => one.outerHTML.slice(0, 120))')
      expect([path, missed]).toEqual([path, []])
    }
  })

  test('a value is copied by its button, by keyboard too', async () => {
    await open(`/operations/${rejected}`)
    const button = page.getByRole('button', { name: 'Copy the id of the operation' })
    await button.focus()
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Copied' }).waitFor()
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(rejected)
  })

  test('without scripts there is no such button', async () => {
    const own = await browser.newContext({ javaScriptEnabled: false })
    const other = await own.newPage()
    await signIn(other, server.url, server.admin.user, server.admin.password)
    await other.goto(`${server.url}/console/operations/${rejected}`)
    expect(await other.getByText('Copy', { exact: false }).first().isVisible()).toBe(false)
    await own.close()
  })

  test('Save stays in sight in a long form, and the way to the preview with it', async () => {
    await open('/templates/transfer')
    const save = page.getByRole('button', { name: 'Save', exact: true }).last()
    const box = await save.boundingBox()
    expect((box?.y ?? Number.POSITIVE_INFINITY) + (box?.height ?? 0)).toBeLessThanOrEqual(PHONE.height)
    await page.getByRole('link', { name: 'Preview', exact: true }).click()
    // The page scrolls after the click has returned.
    const top = () => page.locator('#preview').evaluate((element) => element.getBoundingClientRect().top)
    await expect.poll(top).toBeLessThan(PHONE.height)
  })

  test('a block can be undone where it is told of', async () => {
    await open(`/registrations/${phone.state.activationId}`)
    const block = page.locator('details.guarded', { hasText: 'Block…' })
    await block.locator('summary').click()
    await block.getByRole('button', { name: 'Block' }).click()
    await page.getByRole('status').getByText('Blocked.').waitFor()
    await page.getByRole('button', { name: 'Undo' }).click()
    await page.getByRole('status').getByText('Unblocked.').waitFor()
    expect(await page.getByRole('button', { name: 'Undo' }).count()).toBe(0)
  })

  test('what asks whether it is meant can be left again', async () => {
    await open(`/registrations/${furnished.activationOf('alice')}`)
    const block = page.locator('details.guarded', { hasText: 'Block…' })
    await block.locator('summary').press('Enter')
    await block.getByText('Do not').waitFor()
    await block.locator('summary').press('Enter')
    expect(await block.getByRole('button', { name: 'Block' }).isVisible()).toBe(false)
  })
})
