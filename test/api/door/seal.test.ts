// POST /encryption/seal: the answer of the bank to an envelope that was opened for it (cloud §13.2). A ticket seals one answer.
import fc from 'fast-check'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runHousekeeping } from '../../../src/domain/housekeeping.ts'
import { issueTicket, readTicket } from '../../../src/domain/secrets/seal-ticket.ts'
import { fenceTickets } from '../../../src/storage/activation/fence.ts'
import { serverUrl } from '../../helpers/app.ts'
import type { Bank } from '../../helpers/bank.ts'
import { createCaller } from '../../helpers/door.ts'
import {
  type AnyPhone,
  callEncryption,
  isThree,
  openAt,
  sealAt,
  sealForBank,
  type SentEnvelope,
  signForBank,
  startEnvelopeWorld,
  type Version,
  VERSIONS,
} from '../../helpers/door-envelope.ts'
import { expectError } from '../../helpers/expectations.ts'
import { findStoredText } from '../../helpers/stored-text.ts'
import { expectOk, startSharedWorld } from '../../helpers/world.ts'
import { openPhonesV4, startWorldV4, type WorldV4 } from '../../helpers/world-v4.ts'

let v4: WorldV4
let bank: Bank
let tier: Bank
beforeAll(async () => {
  ;({ v4, bank, tier } = await startEnvelopeWorld())
})
afterAll(() => v4.close())

const activePhone = async (version: Version): Promise<AnyPhone> =>
  (isThree(version) ? await v4.world.activePhone(version) : await v4.activePhone(version)).phone
const holder = () => ({ username: 'web-tier', applicationId: v4.world.applicationId })

const openNew = async (version: Version): Promise<{ sent: SentEnvelope; sealTicket: string }> => {
  const sent = await sealForBank(await activePhone(version), '{}')
  return { sent, sealTicket: String((await openAt(bank, sent)).sealTicket) }
}

describe.each(VERSIONS)('a ticket of %s', (version) => {
  test('seals its answer again, byte for byte, and no other', async () => {
    const { sent, sealTicket } = await openNew(version)
    const first = expectOk(await sealAt(bank, sealTicket, 'one')).json
    expect(sent.open(first)).toBe('one')
    const other = await sealAt(bank, sealTicket, 'two')
    expectError(other, 400, 'ERROR_REQUEST')
    expect(other.text).toContain('has sealed another answer')
    expectError(await sealAt(bank, sealTicket, ''), 400, 'ERROR_REQUEST')
    expect(expectOk(await sealAt(bank, sealTicket, 'one')).json).toEqual(first)
  })

  test('is asked by many at once, and seals for one of the answers', async () => {
    const { sealTicket } = await openNew(version)
    const texts = ['one', 'two', 'three', 'one', 'two', 'three']
    const replies = await Promise.all(texts.map((text) => sealAt(bank, sealTicket, text)))
    const sealed = replies.flatMap((reply, i) => (reply.status === 200 ? [{ text: texts[i], json: reply.json }] : []))
    expect(sealed).toHaveLength(2)
    expect(sealed[0]).toEqual(sealed[1])
  })

  test('is good for who had the envelope opened, as it was given', async () => {
    const { sent, sealTicket } = await openNew(version)
    const middle = Math.floor(sealTicket.length / 2)
    const altered = sealTicket.slice(0, middle) + (sealTicket[middle] === 'A' ? 'B' : 'A') + sealTicket.slice(middle + 1)
    // Texts that a lenient decoder takes for the ticket are among these.
    const longer = ['A', '=', 'AA'].map((end) => sealTicket + end)
    for (const text of [altered, sealTicket.slice(0, -2), ...longer, 'x', 'A'.repeat(300)])
      expectError(await sealAt(bank, text, 'one'), 400, 'ERROR_REQUEST')
    expectError(await sealAt(tier, sealTicket, 'one'), 400, 'ERROR_REQUEST')
    expect(sent.open(expectOk(await sealAt(bank, sealTicket, 'one')).json)).toBe('one')
  })
})

test.each(['3.0', '3.1'] as const)('an envelope of %s that is opened twice has one ticket', async (version) => {
  const sent = await sealForBank(await activePhone(version), '{}')
  const [first, second] = [await openAt(bank, sent), await openAt(bank, sent)]
  expect(first.sealTicket).not.toBe(second.sealTicket)
  const answer = expectOk(await sealAt(bank, first.sealTicket, 'one')).json
  expectError(await sealAt(bank, second.sealTicket, 'two'), 400, 'ERROR_REQUEST')
  expect(expectOk(await sealAt(bank, second.sealTicket, 'one')).json).toEqual(answer)
})

test('no two answers share key and nonce, whatever is opened and sealed in which order', async () => {
  const phones = await Promise.all(VERSIONS.map(activePhone))
  const opened: { readonly sent: SentEnvelope; readonly sealTicket: string }[] = []
  const sealed = new Map<string, string>()
  const asked = fc.sample(
    fc.record({ kind: fc.nat(3), which: fc.nat(1_000), text: fc.constantFrom('', 'a', 'bb', 'c'.repeat(40)) }),
    160,
  )
  for (const { kind, which, text } of asked) {
    const known = opened[which % Math.max(1, opened.length)]
    if (kind === 0 || known === undefined) {
      const phone = phones[which % phones.length] ?? phones[0]
      if (phone === undefined) throw new TypeError('there are phones')
      const sent = which % 2 === 0 ? await sealForBank(phone, '{}') : await signForBank(phone, '{}')
      opened.push({ sent, sealTicket: String((await openAt(bank, sent)).sealTicket) })
      continue
    }
    if (kind === 1) {
      const again = await openAt(bank, known.sent)
      if (again.sealTicket !== undefined) opened.push({ sent: known.sent, sealTicket: again.sealTicket })
      continue
    }
    const reply = await sealAt(bank, known.sealTicket, text)
    if (reply.status !== 200) {
      expectError(reply, 400, 'ERROR_REQUEST')
      continue
    }
    const answer = reply.json as Record<string, unknown>
    const place = keyAndNonceOf(known.sent, answer)
    expect(sealed.get(place) ?? answer['encryptedData']).toBe(answer['encryptedData'])
    sealed.set(place, String(answer['encryptedData']))
  }
  expect(sealed.size).toBeGreaterThan(5)
}, 120_000)

/** What an answer was encrypted under: an ephemeral key with its IV, or a temporary key with both nonces of its request. */
function keyAndNonceOf({ body }: SentEnvelope, { nonce }: Record<string, unknown>): string {
  const envelope = body['envelope'] as Record<string, unknown>
  return JSON.stringify([envelope['ephemeralPublicKey'] ?? envelope['temporaryKeyId'], nonce ?? envelope['nonce'] ?? ''])
}

test('a ticket that has ended, by the clock of the database, seals nothing', async () => {
  const { sealTicket } = await openNew('3.3')
  const { installationKeys, platform } = v4.server.context
  const ticket = readTicket(installationKeys.doorSeal, holder(), sealTicket)
  if (ticket === undefined) throw new TypeError('a ticket that cannot be read')
  expect(ticket.expiresAt - ticket.openedAt).toBe(300_000)
  const issue = (expiresAt: number) => issueTicket(installationKeys.doorSeal, platform, holder(), { ...ticket, expiresAt })
  // The clock of the process says nothing of it.
  await v4.world.advance(3_600_000)
  const ended = await sealAt(bank, issue(Date.now() - 1), 'one')
  expectError(ended, 400, 'ERROR_REQUEST')
  expect(ended.text).toContain('that has not ended')
  expectOk(await sealAt(bank, sealTicket, 'one'))
})

test('a ticket that is older than a fence after a restore seals nothing, not even its answer', async () => {
  const [used, unused] = [await openNew('EC_P384'), await openNew('3.3')]
  expectOk(await sealAt(bank, used.sealTicket, 'one'))
  await fenceTickets(v4.server.context.db)
  for (const { sealTicket } of [used, unused]) expectError(await sealAt(bank, sealTicket, 'one'), 400, 'ERROR_REQUEST')
  const { sealTicket } = await openNew('EC_P384')
  expectOk(await sealAt(bank, sealTicket, 'one'))
})

test('an answer is forgotten two hours after its ticket has ended, and not before', async () => {
  const { db } = v4.server.context
  const insert = (id: number, seconds: number) =>
    sql`insert into sealed_answer (ticket_id, plaintext_hash, sealed_at, expires_at)
      values (${Buffer.alloc(16, id)}, ${Buffer.alloc(32)}, now(), clock_timestamp() - make_interval(secs => ${seconds}))`.execute(
      db,
    )
  await insert(1, 7_199)
  await insert(2, 7_201)
  await runHousekeeping(v4.server.context)
  const { rows } = await sql<{ id: string }>`select encode(ticket_id, 'hex') as id from sealed_answer where ticket_id in
    (${Buffer.alloc(16, 1)}, ${Buffer.alloc(16, 2)})`.execute(db)
  expect(rows).toEqual([{ id: '01'.repeat(16) }])
})

test('an envelope that its key opens again an hour later has no second answer', async () => {
  const patient = await startWorldV4({
    worksInBackground: false,
    env: { PAWL_DOOR_IDEMPOTENCY_SECONDS: '3600', PAWL_TEMPORARY_KEY_VALIDITY_SECONDS: '7200' },
  })
  try {
    const { world, server } = patient
    const caller = await createCaller(world.bank, 'web-tier', 'verification', world.applicationId)
    const sent = await sealForBank((await patient.activePhone('EC_P384')).phone, '{}')
    const first = await openAt(caller, sent, {}, 'a-key-of-the-bank')
    expectOk(await sealAt(caller, first.sealTicket, 'one'))
    await world.advance(3_500_000)
    await sql`update sealed_answer set expires_at = expires_at - interval '3500 seconds'`.execute(server.context.db)
    await runHousekeeping(server.context)
    const again = await openAt(caller, sent, {}, 'a-key-of-the-bank')
    expectError(await sealAt(caller, again.sealTicket, 'two'), 400, 'ERROR_REQUEST')
    expect(sent.open(expectOk(await sealAt(caller, again.sealTicket, 'one')).json)).toBe('one')
  } finally {
    await patient.close()
  }
})

test('who has lost the right seals no answer for the application any more', async () => {
  const sent = await sealForBank(v4.newPhone('EC_P384'), '{}', { scope: 'application' })
  const { sealTicket } = await openAt(tier, sent)
  const entitle = async (rights: readonly string[]) =>
    expectOk(await v4.world.bank.call('PATCH', '/admin/users/first-tier', { rights }))
  await entitle([])
  expectError(await sealAt(tier, sealTicket, 'one'), 400, 'ERROR_REQUEST')
  await entitle(['envelopes:application'])
  expect(sent.open(expectOk(await sealAt(tier, sealTicket, 'one')).json)).toBe('one')
})

test('an answer of 256 KiB is sealed, a longer one and what is no Base64 are errors', async () => {
  const { sent, sealTicket } = await openNew('EC_P384')
  const longest = 'x'.repeat(256 * 1024)
  expectError(await sealAt(bank, sealTicket, `${longest}x`), 400, 'ERROR_REQUEST')
  expectError(await callEncryption(bank, 'seal', { sealTicket, plaintext: '%' }), 400, 'ERROR_REQUEST')
  expectError(await callEncryption(bank, 'seal', { sealTicket }), 400, 'ERROR_REQUEST')
  expect(sent.open(expectOk(await sealAt(bank, sealTicket, longest)).json)).toBe(longest)
})

test('the database holds neither what was opened nor what was sealed, and the log does not either', async () => {
  const [request, answer] = ['a PIN that nobody else reads: 4711', 'an account that nobody else reads: 0815']
  for (const version of VERSIONS) {
    const phone = await activePhone(version)
    for (const make of [sealForBank, signForBank]) {
      const sent = await make(phone, request)
      const { sealTicket } = await openAt(bank, sent, {}, `key-of-${version}-${make.name}`)
      expect(sent.open(expectOk(await sealAt(bank, sealTicket, answer)).json)).toBe(answer)
      expect(v4.server.log()).not.toContain(String(sealTicket).slice(30, 60))
    }
  }
  for (const text of [request, answer]) {
    expect(await findStoredText(v4.server.context.db, text)).toEqual([])
    expect(v4.server.log()).not.toContain(text)
  }
})

const overTwo = serverUrl() === undefined ? test.skip : test
overTwo('a ticket of one server seals at another on the same database, one answer over both', async () => {
  const world = await startSharedWorld()
  try {
    const phones = await openPhonesV4(world)
    const first = await createCaller(world.bank, 'web-tier', 'verification', world.applicationId)
    const second = first.as(first.credential, world.urls[1])
    for (const version of ['3.1', 'EC_P384'] as const) {
      const { phone } = version === '3.1' ? await world.activePhone(version) : await phones.activePhone(version)
      const sent = await sealForBank(phone, '{}')
      const { sealTicket } = await openAt(first, sent)
      const replies = await Promise.all([sealAt(first, sealTicket, 'one'), sealAt(second, sealTicket, 'two')])
      expect(replies.map(({ status }) => status).toSorted()).toEqual([200, 400])
      const text = replies[0]?.status === 200 ? 'one' : 'two'
      const again = [await sealAt(first, sealTicket, text), await sealAt(second, sealTicket, text)]
      expect(again[0]?.json).toEqual(again[1]?.json)
      expect(sent.open(expectOk(again[1] ?? (await sealAt(second, sealTicket, text))).json)).toBe(text)
    }
  } finally {
    await world.close()
  }
})
