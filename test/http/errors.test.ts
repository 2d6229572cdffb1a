// Errors of a dependency or a resource that is away for a while are told from bugs.
import { expect, test } from 'vitest'
import { toPawlError } from '../../src/http/errors.ts'

const withCode = (code: string): Error => Object.assign(new Error(`connect ${code}`), { code })

// 55P03: lock_timeout; 25P03: idle_in_transaction_session_timeout; 25P04: transaction_timeout.
const LATE = ['55P03', '25P03', '25P04']

test.each(['EMFILE', 'ENFILE', 'ECONNREFUSED', 'EPIPE', '57P01', '08006', '40001', ...LATE])('%s is UNAVAILABLE', (code) => {
  expect(toPawlError(withCode(code))).toMatchObject({ code: 'UNAVAILABLE', retryAfterSeconds: 1 })
})

test('a disk of the embedded database that has become read only is UNAVAILABLE', () => {
  const error = Object.assign(new Error('could not extend file "base/5/16455": Read-only file system'), { code: '42501' })
  expect(toPawlError(error)).toMatchObject({ code: 'UNAVAILABLE', retryAfterSeconds: 1 })
})

test.each(['EACCES', '42501', '23505', '42601'])('%s is a bug', (code) => {
  expect(toPawlError(withCode(code)).code).toBe('INTERNAL')
})
