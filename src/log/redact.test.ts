// Tests the redaction of log fields: every secret is replaced at any place, and nothing else.
import { expect, test } from 'vitest'
import { redact } from './log.ts'

test('members of a secret name are censored at any depth, also in arrays', () => {
  const fields = {
    password: 'marked',
    a: { b: { c: { d: { tokenSecret: 'marked', left: 1 } } } },
    list: [{ otp: 'marked' }, { privateKey: { bytes: 'marked' } }, 'plain'],
    headers: { authorization: 'marked', host: 'h' },
  }
  const before = structuredClone(fields)
  expect(redact(fields)).toEqual({
    password: '[secret]',
    a: { b: { c: { d: { tokenSecret: '[secret]', left: 1 } } } },
    list: [{ otp: '[secret]' }, { privateKey: '[secret]' }, 'plain'],
    headers: { authorization: '[secret]', host: 'h' },
  })
  // The logged object is still in use elsewhere.
  expect(fields).toEqual(before)
})

test('what opens a login at an OpenID provider is censored, and the keys of an activation', () => {
  const login = { clientSecret: 'marked', identityAttributes: { codeVerifier: 'marked', method: 'oidc' } }
  expect(redact({ ...login, activationSecret: 'marked' })).toEqual({
    clientSecret: '[secret]',
    identityAttributes: { codeVerifier: '[secret]', method: 'oidc' },
    activationSecret: '[secret]',
  })
})

test('fields without a secret are the same object', () => {
  const fields = { activationId: 'a', from: null, nested: { list: [1, { x: 'y' }] } }
  expect(redact(fields)).toBe(fields)
})

test('a member that is null or undefined is censored as well, so that a line does not tell whether there was one', () => {
  expect(redact({ otp: null, secret: undefined })).toEqual({ otp: '[secret]', secret: '[secret]' })
})

test('errors, dates and objects without a prototype', () => {
  const [err, at] = [new Error('e'), new Date(0)]
  expect(redact({ err, at })).toEqual({ err, at })
  const bare = Object.assign(Object.create(null) as object, { password: 'marked' })
  expect(redact({ bare })).toEqual({ bare: { password: '[secret]' } })
})

test('fields that refer to themselves end', () => {
  const fields: Record<string, unknown> = { a: 1 }
  fields['self'] = fields
  expect(redact(fields)).toBe(fields)
})
