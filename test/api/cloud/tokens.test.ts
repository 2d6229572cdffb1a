// /v2/registrations/{id}/tokens: what a phone reads with, and how the bank takes it away (cloud §12.6).
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { headerName } from '../../../phone/header.ts'
import type { HttpReply } from '../../../phone/http.ts'
import { member } from '../../../phone/http.ts'
import type { PhoneAlgorithm } from '../../../phone/v4/crypto.ts'
import type { Bank } from '../../helpers/bank.ts'
import { callDoor, PHONE_ADDRESS, readVerdict } from '../../helpers/door.ts'
import { type DoorWorld, startDoorWorld } from '../../helpers/door-world.ts'
import { expectError } from '../../helpers/expectations.ts'
import { expectOk } from '../../helpers/world.ts'
import { TESTED_ALGORITHMS } from '../../helpers/phone-versions.ts'

let world: DoorWorld
beforeAll(async () => {
  world = await startDoorWorld()
})
afterAll(() => world.close())

const list = (id: string, bank: Bank = world.bank): Promise<HttpReply> => bank.call('GET', `/v2/registrations/${id}/tokens`)
const remove = (id: string, tokenId: string, bank: Bank = world.bank): Promise<HttpReply> =>
  bank.call('DELETE', `/v2/registrations/${id}/tokens/${tokenId}`)
const tokensOf = async (id: string) =>
  member(expectOk(await list(id)).json, 'tokens') as { tokenId: string; factors: string; createdAt: number }[]

/** A phone with two tokens, and what the door for tokens says of a new header of one. */
async function withTokens(algorithm: 'EC_P256' | PhoneAlgorithm = 'EC_P256') {
  const { phone, userId } = algorithm === 'EC_P256' ? await world.world.activePhone('3.3') : await world.activePhone(algorithm)
  const first = await phone.createToken('possession_knowledge')
  const second = await phone.createToken('possession')
  const judge = async (token: { readonly id: string; readonly secret: Uint8Array }) => {
    const now = await phone.serverTime()
    const headers: Readonly<Record<string, string>> = phone.tokenHeader({ factors: 'possession', ...token }, now)
    const factors = ['POSSESSION', 'POSSESSION_KNOWLEDGE']
    const call = { token: headers[headerName('PowerAuth', 'Token')], factors, client: { address: PHONE_ADDRESS } }
    return readVerdict(await callDoor(world.bank, 'token', call))
  }
  return { activationId: phone.state.activationId, userId, first, second, judge }
}

test.each(['EC_P256', ...TESTED_ALGORITHMS] as const)('the tokens of a phone of %s, without their secrets', async (algorithm) => {
  const { activationId, userId, first, second } = await withTokens(algorithm)
  const before = Date.now()
  const reply = expectOk(await list(activationId))
  const createdAt = expect.any(Number) as unknown
  expect(reply.json).toEqual({
    activationId,
    userId,
    state: 'ACTIVE',
    tokens: [
      { tokenId: first.id, factors: 'POSSESSION_KNOWLEDGE', createdAt },
      { tokenId: second.id, factors: 'POSSESSION', createdAt },
    ],
  })
  for (const { createdAt: at } of await tokensOf(activationId)) expect(Math.abs(at - before)).toBeLessThan(120_000)
  for (const { secret } of [first, second])
    for (const encoding of ['base64', 'base64url', 'hex'] as const)
      expect(reply.text).not.toContain(Buffer.from(secret).toString(encoding))
})

test('of very many tokens the oldest 1,000 are listed', async () => {
  const { activationId, first } = await withTokens()
  const { db } = world.server.context
  await sql`insert into token (token_id, activation_id, factors, token_secret, created_at)
    select 'copy ' || i, activation_id, factors, token_secret, now() + interval '1 hour' + i * interval '1 second'
    from token, generate_series(1, 1500) i where token_id = ${first.id}`.execute(db)
  const listed = await tokensOf(activationId)
  expect([listed.length, listed[0]?.tokenId, listed.at(-1)?.tokenId]).toEqual([1_000, first.id, 'copy 998'])
})

test('a token that the bank removed is unknown at once, the other stays good', async () => {
  const { activationId, first, second, judge } = await withTokens()
  expect(await judge(first)).toMatchObject({ isValid: true })
  expect(expectOk(await remove(activationId, first.id)).json).toEqual({ status: 'OK' })
  expect(await judge(first)).toEqual({ isValid: false, reason: 'UNKNOWN' })
  expect(await judge(second)).toMatchObject({ isValid: true })
  expect((await tokensOf(activationId)).map(({ tokenId }) => tokenId)).toEqual([second.id])
})

test('a removal has one row of the audit log, which names the credential', async () => {
  const { activationId, userId, first } = await withTokens()
  const bank = await world.openBank('integration', world.world.applicationId)
  expectOk(await remove(activationId, first.id, bank))
  expectError(await remove(activationId, first.id, bank), 400, 'ERROR_REQUEST')
  const path = `/admin/applications/${world.world.applicationId}/audit?userId=${userId}`
  const items = member(expectOk(await world.bank.call('GET', path)).json, 'items') as Record<string, unknown>[]
  expect(items.filter(({ eventType }) => eventType === 'token_removed')).toEqual([
    {
      activationId,
      eventType: 'token_removed',
      eventData: JSON.stringify({ tokenId: first.id }),
      verifiedBy: bank.credential?.split(':')[0],
      timestamp: expect.any(Number) as unknown,
    },
  ])
})

test('a token that the registration does not have changes nothing', async () => {
  const [one, other] = [await withTokens(), await withTokens()]
  for (const tokenId of [other.first.id, '3f2504e0-4f89-41d3-9a0c-0305e82c3301', 'x'.repeat(129)]) {
    const reply = await remove(one.activationId, tokenId)
    expectError(reply, 400, 'ERROR_REQUEST')
    expect(member(reply.json, 'responseObject', 'violations')).toEqual([
      { fieldName: 'tokenId', invalidValue: tokenId.slice(0, 128), hint: 'the registration has no such token' },
    ])
  }
  for (const { activationId, first, second } of [one, other])
    expect((await tokensOf(activationId)).map(({ tokenId }) => tokenId)).toEqual([first.id, second.id])
})

test('a registration that is unknown or of another application is not found, and keeps its tokens', async () => {
  const { activationId, first } = await withTokens()
  const { bank } = await world.foreignPhone()
  for (const reply of [
    await list(activationId, bank),
    await remove(activationId, first.id, bank),
    await list('3f2504e0-4f89-41d3-9a0c-0305e82c3301'),
    await remove('3f2504e0-4f89-41d3-9a0c-0305e82c3301', first.id),
  ])
    expectError(reply, 400, 'ERROR_REGISTRATION_NOT_FOUND')
  expect(await tokensOf(activationId)).toHaveLength(2)
  for (const reply of [await list('x%0Ay'), await remove('x%0Ay', 'x'), await remove(activationId, 'x%00')])
    expectError(reply, 400, 'ERROR_REQUEST')
})

test('a registration without a phone has none, one that was removed says so', async () => {
  const { activationId, userId } = await world.createdRegistration()
  expect(expectOk(await list(activationId)).json).toEqual({ activationId, userId, state: 'CREATED', tokens: [] })
  const phone = await withTokens()
  expectOk(await world.bank.remove(phone.userId))
  expect(member(expectOk(await list(phone.activationId)).json, 'state')).toBe('REMOVED')
})

test('who may list may not always remove', async () => {
  const { activationId, first, second } = await withTokens()
  const open = (role: string) => world.openBank(role, world.world.applicationId)
  const [reader, integration, verifier] = [await open('read-only'), await open('integration'), await open('verification')]
  expectOk(await list(activationId, reader))
  expectOk(await list(activationId, integration))
  for (const reply of [
    await list(activationId, verifier),
    await remove(activationId, first.id, verifier),
    await remove(activationId, first.id, reader),
    await list(activationId, await world.openBank('internal')),
  ])
    expectError(reply, 403, 'HTTP_403')
  expectError(await list(activationId, world.bank.as(undefined)), 401, 'HTTP_401')
  expect(await tokensOf(activationId)).toHaveLength(2)
  expectOk(await remove(activationId, first.id, integration))
  expectOk(await remove(activationId, second.id))
  expect(await tokensOf(activationId)).toEqual([])
})

test('of twenty removals at once one removes', async () => {
  const { activationId, first } = await withTokens()
  const replies = await Promise.all(Array.from({ length: 20 }, () => remove(activationId, first.id)))
  expect(replies.map(({ status }) => status).toSorted()).toEqual([200, ...Array.from({ length: 19 }, () => 400)])
})
