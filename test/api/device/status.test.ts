// POST /pa/v3/status (v3 §13).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectError } from '../../helpers/expectations.ts'
import { member, NO_BODY, send, sendJson } from '../../../phone/http.ts'
import type { World } from '../../helpers/world.ts'
import { startWorld } from '../../helpers/world.ts'

describe('POST /pa/v3/status', () => {
  let world: World
  beforeAll(async () => {
    world = await startWorld()
  })
  afterAll(() => world.close())

  test('tells the time and what the server is, in the shape of the contract', async () => {
    const reply = await sendJson(world.url, 'POST', '/pa/v3/status')
    expect(reply.status).toBe(200)
    expect(reply.json).toEqual({
      status: 'OK',
      responseObject: { serverTime: expect.any(Number), application: { name: expect.any(String), version: expect.any(String) } },
    })
    expect(reply.headers['content-type']).toMatch(/^application\/json/)
  })

  test('follows the clock of the server', async () => {
    const timeOf = async () =>
      Number(member((await sendJson(world.url, 'POST', '/pa/v3/status')).json, 'responseObject', 'serverTime'))
    const before = await timeOf()
    await world.advance(3_600_000)
    const passed = (await timeOf()) - before
    expect(passed).toBeGreaterThanOrEqual(3_600_000)
    expect(passed).toBeLessThan(3_660_000)
  })

  test.each([
    ['an empty object', {}],
    ['an empty request object', { requestObject: {} }],
  ])('takes %s as a body', async (_, body) => {
    expect((await sendJson(world.url, 'POST', '/pa/v3/status', body)).status).toBe(200)
  })

  test('takes a JSON content type without a body', async () => {
    const headers = { 'Content-Type': 'application/json' }
    expect((await send(world.url, { method: 'POST', path: '/pa/v3/status', headers, body: NO_BODY })).status).toBe(200)
  })

  test.each(['GET', 'PUT', 'DELETE', 'PATCH'])('does not exist for %s', async (method) => {
    expectError(await sendJson(world.url, method, '/pa/v3/status'), 404, 'ERROR_NOT_FOUND')
  })
})
