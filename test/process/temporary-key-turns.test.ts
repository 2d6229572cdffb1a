// One phone that asks for temporary keys without end, always with the same request. Nobody else waits until all of them are made.
import { afterAll, expect, test, vi } from 'vitest'
import { sendJson } from '../../phone/http.ts'
import { PATIENCE_MS } from '../helpers/patience.ts'
import { ADMIN_PASSWORD, createInstallation, DATABASE_KIND, endEverything, startPawl } from '../helpers/process.ts'
import { openPhonesV4 } from '../helpers/world-v4.ts'
import { openWorld } from '../helpers/world.ts'

/** Fewer than the places that an address may have, or the other phone would be refused for its address. */
const AT_ONCE = 300
const TIMES = 3

afterAll(endEverything)

test('a phone gets its temporary keys while another one asks for more than can be made', async () => {
  const { env } = await createInstallation(DATABASE_KIND)
  // The turns are asserted here. The limit of a minute would end the flood.
  const settings = { PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD, PAWL_LOG_LEVEL: 'error', PAWL_TEMPORARY_KEYS_PER_MINUTE: '1000000' }
  const { url } = await startPawl(env, settings)
  const admin = `admin:${ADMIN_PASSWORD}`
  const world = await openWorld({ urls: [url], admin, advance: () => undefined, close: async () => undefined })
  const { activePhone } = await openPhonesV4(world)
  const { phone: greedy } = await activePhone('EC_P384_ML_L5')
  const { phone: other } = await activePhone('EC_P384_ML_L5')
  const { json } = greedy.newTemporaryKeyRequest('activation')
  let answered = 0
  const over = new AbortController()
  const flood = Array.from({ length: AT_ONCE }, async () => {
    while (!over.signal.aborted) {
      await sendJson(url, 'POST', '/pa/v4/keystore/create', json)
      answered += 1
    }
  })
  try {
    await vi.waitFor(() => expect(answered).toBeGreaterThan(AT_ONCE), { timeout: PATIENCE_MS })
    const before = answered
    for (let i = 0; i < TIMES; i += 1) await other.fetchTemporaryKey('activation')
    expect(answered - before).toBeLessThan((TIMES * AT_ONCE) / 2)
  } finally {
    over.abort()
    await Promise.all(flood)
  }
})
