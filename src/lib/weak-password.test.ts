// Tests which chosen passwords count as weak.
import { expect, test } from 'vitest'
import { isWeakPassword } from './weak-password.ts'

test.each([
  'password1234',
  'P@ssw0rd2026!',
  'adminadmin123',
  'Administrator1!',
  'changeme-changeme',
  'Letmein Letmein',
  'Welcome to the1'.slice(0, 7).repeat(2),
  'correct horse battery staple',
  'Summer2026!!!!',
  'pawl-admin-password',
  '123456789012',
  '098765432109',
  'abcdefghijkl',
  'qwertyuiopas',
  '1qaz2wsx3edc',
  'aaaaaaaaaaaa',
  'abababababab',
])('%s is weak', (password) => {
  expect(isWeakPassword(password)).toBe(true)
})

test.each([
  'chosen by the operator',
  'another password',
  'a chosen new password',
  'žluťoučký kůň 📱',
  'a:b:c:d:e:f:g:h',
  '8f2b6c0d9e1a',
  '840275916384',
  'tr0ub4dor&three',
])('%s is not', (password) => {
  expect(isWeakPassword(password)).toBe(false)
})
