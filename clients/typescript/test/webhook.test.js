// The library of the convention signs, and readWebhook finds the same as its own verification.
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { readWebhook, WebhookError } from '../dist/index.js'

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const BODY = '{"type":"OPERATION","operationId":"0b1c6d0e-2f4b-4f6a-9c35-0f3c1a6b7d21","event":"approved"}'
const at = new Date()
const sign = (secret, time = at) => ({
  'webhook-id': 'msg',
  'webhook-timestamp': String(Math.floor(time.getTime() / 1000)),
  'webhook-signature': new Webhook(secret).sign('msg', time, BODY),
})

test('a genuine message is read, from bytes and from text', () => {
  for (const body of [BODY, Buffer.from(BODY)]) assert.equal(readWebhook(SECRET, sign(SECRET), body).event, 'approved')
})

test('during a rotation one right signature is enough', () => {
  const other = sign(`whsec_${Buffer.alloc(32, 8).toString('base64')}`)
  const both = { ...other, 'webhook-signature': `${other['webhook-signature']} ${sign(SECRET)['webhook-signature']}` }
  assert.equal(readWebhook(SECRET, both, BODY).event, 'approved')
  new Webhook(SECRET).verify(BODY, both)
})

test('without a secret nothing is genuine, whoever signs with none', () => {
  const [id, time] = ['msg', String(Math.floor(at.getTime() / 1000))]
  const signature = createHmac('sha256', '').update(`${id}.${time}.${BODY}`).digest('base64')
  const headers = { 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': `v1,${signature}` }
  for (const none of ['', 'whsec_']) assert.throws(() => readWebhook(none, headers, BODY), /without a secret/)
  assert.throws(() => new Webhook(''))
})

const signed = sign(SECRET)
for (const [what, headers, body] of [
  ['another secret', sign(`whsec_${Buffer.alloc(32, 8).toString('base64')}`), BODY],
  ['another body', signed, BODY.replace('approved', 'rejected')],
  ['another id', { ...signed, 'webhook-id': 'other' }, BODY],
  ['a time of six minutes ago', sign(SECRET, new Date(at.getTime() - 360_000)), BODY],
  ['no signature', { ...signed, 'webhook-signature': undefined }, BODY],
  ['a signature of another kind', { ...signed, 'webhook-signature': signed['webhook-signature'].replace('v1,', 'v2,') }, BODY],
])
  test(`${what} is refused by both`, () => {
    assert.throws(() => readWebhook(SECRET, headers, body), WebhookError)
    assert.throws(() => new Webhook(SECRET).verify(body, headers))
  })
