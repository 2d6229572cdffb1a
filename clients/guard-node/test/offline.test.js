// Offline codes: what is sent to pawl, and what counts as a verdict.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createOfflineCodes, PawlUnavailable } from '../dist/index.js'
import { json, startFakePawl } from './fake-pawl.js'

const answers = {
  '/offline/challenges': { challengeId: 'c', qrCodeData: 'x', expiresAt: 1 },
  '/offline/verification': { isValid: 'true', reason: 'CODE_WRONG' },
}

test('a challenge is made over the bytes of the body, and only true is a right code', async () => {
  const pawl = await startFakePawl((call, response) => json(response, 200, answers[call.path]))
  try {
    const offline = createOfflineCodes({ url: pawl.url, username: 'branch', password: 'secret' })
    assert.equal((await offline.challenge({ userId: 'bob', data: 'ř', resourceId: '/cash', body: 'ř' })).challengeId, 'c')
    assert.deepEqual(pawl.calls[0].body, { userId: 'bob', data: 'ř', resourceId: '/cash', body: 'xZk=' })
    assert.deepEqual(await offline.verify({ challengeId: 'c', otp: '1' }), { isValid: false, reason: 'CODE_WRONG' })
    assert.notEqual(pawl.calls[0].headers['idempotency-key'], pawl.calls[1].headers['idempotency-key'])
  } finally {
    await pawl.close()
  }
})

test('an answer without a challenge is none, and a verdict that was lost is asked for again under its key', async () => {
  const pawl = await startFakePawl((call, response, count) => {
    if (call.path === '/offline/challenges') return json(response, 200, {})
    return count === 2 ? response.destroy() : json(response, 200, { isValid: true, userId: 'bob' })
  })
  try {
    const offline = createOfflineCodes({ url: pawl.url, username: 'branch', password: 'secret' })
    await assert.rejects(offline.challenge({ data: 'x', resourceId: '/cash', body: 'x' }), PawlUnavailable)
    assert.deepEqual(await offline.verify({ challengeId: 'c', otp: '1' }), { isValid: true, userId: 'bob' })
    assert.equal(pawl.calls[1].headers['idempotency-key'], pawl.calls[2].headers['idempotency-key'])
  } finally {
    await pawl.close()
  }
})
