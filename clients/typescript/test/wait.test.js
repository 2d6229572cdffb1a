import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createPawl, PawlError, waitForOperation } from '../dist/index.js'

/** A client whose server gives these answers, one after the other. */
const pawlOf = (...answers) => {
  const fetch = async () => Response.json(...(answers.length > 1 ? answers.shift() : answers[0]))
  return createPawl({ url: 'http://127.0.0.1:1', username: 'bank', password: 'x', fetch })
}
const status = (text) => [{ operationId: 'o', status: text }]

test('an operation is asked for until it is not PENDING any more', async () => {
  const pawl = pawlOf(status('PENDING'), status('PENDING'), status('REJECTED'))
  assert.equal((await waitForOperation(pawl, 'o', { everyMs: 1 })).status, 'REJECTED')
})

test('one that stays PENDING is an error when the time is over', async () => {
  await assert.rejects(waitForOperation(pawlOf(status('PENDING')), 'o', { everyMs: 1, timeoutMs: 20 }), /still PENDING/)
})

test('a refusal is an error with its code', async () => {
  const refused = { status: 'ERROR', responseObject: { code: 'ERROR_OPERATION_NOT_FOUND', message: 'No such operation' } }
  await assert.rejects(waitForOperation(pawlOf([refused, { status: 400 }]), 'o'), (error) => {
    assert.ok(error instanceof PawlError)
    assert.deepEqual([error.status, error.code], [400, 'ERROR_OPERATION_NOT_FOUND'])
    return true
  })
})

test('a call to a server that does not answer ends', async () => {
  const fetch = ({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  const pawl = createPawl({ url: 'http://127.0.0.1:1', username: 'bank', password: 'x', timeoutMs: 20, fetch })
  await assert.rejects(pawl.GET('/operations', { params: { query: { operationId: 'o' } } }), { name: 'TimeoutError' })
})
