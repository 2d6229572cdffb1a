// A process that is killed when an opening or a seal is stored, before the bank has its answer: the call that is made again is answered as the
// first would have been, and a ticket seals no second answer (cloud §12.4, §13).
import pg from 'pg'
import { afterEach, describe, expect, test } from 'vitest'
import type { HttpReply } from '../../phone/http.ts'
import { random } from '../../phone/v3/crypto.ts'
import type { Bank } from '../helpers/bank.ts'
import { type DatabaseLine, openDatabaseLine } from '../helpers/database-line.ts'
import { createCaller } from '../helpers/door.ts'
import {
  type AnyPhone,
  callEncryption,
  type OpenedAnswer,
  openAt,
  sealAt,
  sealForBank,
  type SentEnvelope,
  signForBank,
  textOf,
} from '../helpers/door-envelope.ts'
import { expectError } from '../helpers/expectations.ts'
import {
  ADMIN_PASSWORD,
  createInstallation,
  DATABASE_KIND,
  endEverything,
  type Installation,
  type PawlProcess,
  startPawl,
} from '../helpers/process.ts'
import { expectOk, openWorld } from '../helpers/world.ts'
import { openPhonesV4 } from '../helpers/world-v4.ts'

const ADMIN = { PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD }
const REFUSED = { isOpened: false, reason: 'ENVELOPE' }
const newKey = (): string => Buffer.from(random(16)).toString('hex')

/** An installation with a process, and a phone that is bound there. */
interface Site {
  readonly phone: AnyPhone
  readonly bank: Bank
  /** What `door` does is stored, and its process is killed; gives the answer, if there was one. */
  readonly killDuring: (door: 'open' | 'seal', call: () => Promise<HttpReply>) => Promise<HttpReply | undefined>
  /** The bank at a new process. */
  readonly restart: () => Promise<Bank>
}

const cleanups: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
  await endEverything()
})

async function openSite(version: '3.3' | '4.0'): Promise<Site> {
  const installation = await createInstallation(DATABASE_KIND)
  const { DATABASE_URL } = installation.env
  const line = DATABASE_URL === undefined ? undefined : await openDatabaseLine(DATABASE_URL)
  if (line !== undefined) cleanups.push(() => line.close())
  const server = await startPawl(installation.env, ADMIN, line === undefined ? {} : { DATABASE_URL: line.url })
  const world = await openWorld({
    urls: [server.url],
    admin: `admin:${ADMIN_PASSWORD}`,
    advance: () => {
      throw new Error('the clock of a process is not to be moved')
    },
    close: async () => undefined,
  })
  const bank = await createCaller(world.bank, 'web-tier', 'verification', world.applicationId)
  const { phone } =
    version === '3.3' ? await world.activePhone(version) : await (await openPhonesV4(world)).activePhone('EC_P384_ML_L3')
  return {
    phone,
    bank,
    killDuring: (door, call) => killDuring({ installation, line, server }, door, call),
    restart: async () => {
      const again = await startPawl(installation.env, ADMIN)
      return bank.as(bank.credential, again.url)
    },
  }
}

const STORED = {
  open: { statement: /insert into door_verdict/, rows: 'door_verdict' },
  seal: { statement: /insert into sealed_answer/, rows: 'sealed_answer' },
} as const

/** PostgreSQL does what it is asked and its answer does not arrive. The embedded database dies with its process, which has answered by then. */
async function killDuring(
  { installation, line, server }: { installation: Installation; line: DatabaseLine | undefined; server: PawlProcess },
  door: 'open' | 'seal',
  call: () => Promise<HttpReply>,
): Promise<HttpReply | undefined> {
  if (line === undefined) {
    const reply = await call()
    await server.end('SIGKILL')
    return reply
  }
  const { statement, rows } = STORED[door]
  const client = new pg.Client({ connectionString: installation.adminUrl ?? '' })
  await client.connect()
  cleanups.push(() => client.end())
  const count = async (): Promise<number> =>
    Number((await client.query<{ n: string }>(`select count(*) as n from ${rows}`)).rows[0]?.n)
  const before = await count()
  const struck = line.strike(statement, 'mute')
  const answered = call().catch(() => undefined)
  await struck
  await expect.poll(count).toBe(before + 1)
  await server.end('SIGKILL')
  expect(await answered).toBeUndefined()
  return undefined
}

describe.each(['3.3', '4.0'] as const)('killed when it is stored, with a phone of %s', (version) => {
  test('an opening: its key opens it again with the same ticket, and nobody else does', async () => {
    const { phone, bank, killDuring: kill, restart } = await openSite(version)
    const sent = await sealForBank(phone, '{"pin":"1234"}')
    const key = newKey()
    const first = await kill('open', () => callEncryption(bank, 'open', sent.body, key))
    const later = await restart()
    await expectOpenedOnce(later, sent, key, first?.json as OpenedAnswer | undefined)
  })

  test('an opening with a code: its key gets the verdict of the first time, and the counter has moved once', async () => {
    const { phone, bank, killDuring: kill, restart } = await openSite(version)
    const sent = await signForBank(phone, '{"pin":"1234"}')
    const afterwards = await signForBank(phone, '{"pin":"5678"}')
    const key = newKey()
    const first = await kill('open', () => callEncryption(bank, 'open', sent.body, key))
    const later = await restart()
    const again = await expectOpenedOnce(later, sent, key, first?.json as OpenedAnswer | undefined)
    expect(again.verdict).toMatchObject({ isValid: true, remainingAttempts: 5 })
    expect((await openAt(later, afterwards)).verdict).toMatchObject({ isValid: true })
  })

  test('a seal: the same answer has the same envelope, another one is refused', async () => {
    const { phone, bank, killDuring: kill, restart } = await openSite(version)
    const sent = await sealForBank(phone, '{}')
    const key = newKey()
    const { sealTicket } = await openAt(bank, sent, {}, key)
    const first = await kill('seal', () => sealAt(bank, sealTicket, 'one'))
    const later = await restart()
    const refused = await sealAt(later, sealTicket, 'two')
    expectError(refused, 400, 'ERROR_REQUEST')
    expect(refused.text).toContain('has sealed another answer')
    const sealed = expectOk(await sealAt(later, sealTicket, 'one')).json
    if (first !== undefined) expect(sealed).toEqual(first.json)
    expect(sent.open(sealed)).toBe('one')
    expect(expectOk(await sealAt(later, sealTicket, 'one')).json).toEqual(sealed)
    // The ticket of a repeated opening is the same one.
    const { sealTicket: repeated } = await openAt(later, sent, {}, key)
    expectError(await sealAt(later, repeated, 'two'), 400, 'ERROR_REQUEST')
    expect(expectOk(await sealAt(later, repeated, 'one')).json).toEqual(sealed)
  })
})

/** The opening belongs to its key, and one answer is sealed for it, whichever of its tickets asks. */
async function expectOpenedOnce(
  bank: Bank,
  sent: SentEnvelope,
  key: string,
  first: OpenedAnswer | undefined,
): Promise<OpenedAnswer> {
  expect(await openAt(bank, sent)).toEqual(REFUSED)
  expect(await openAt(bank, sent, {}, newKey())).toEqual(REFUSED)
  const again = await openAt(bank, sent, {}, key)
  expect(textOf(again)).toBe('{"pin":"1234"}')
  // Each of its tickets is another text for the same right.
  expect(await openAt(bank, sent, {}, key)).toEqual({ ...again, sealTicket: expect.any(String) as unknown })
  const tickets = [first?.sealTicket ?? again.sealTicket, again.sealTicket]
  const [one, other] = [await sealAt(bank, tickets[0], 'one'), await sealAt(bank, tickets[1], 'two')]
  expect(sent.open(expectOk(one).json)).toBe('one')
  expectError(other, 400, 'ERROR_REQUEST')
  if (first !== undefined) expect(again).toEqual({ ...first, sealTicket: again.sealTicket })
  return again
}
