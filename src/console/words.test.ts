// Tests the words for names of the contract: no name is replaced by another, and texts of people stay unchanged.
import { expect, test } from 'vitest'
import { sayAction, sayCount, sayEvent, sayReason, sayState } from './words.ts'

test.each([
  ['UNEXPECTED_OPERATION', 'Unexpected operation'],
  ['MISTAKE', 'Mistake'],
  ['MAX_FAILED_ATTEMPTS', 'Too many wrong codes'],
  ['signature_does_not_match', 'Wrong code'],
  ['not_known_yet', 'Not known yet'],
  ['Lost on the train', 'Lost on the train'],
  ['mistake', 'mistake'],
  ['A', 'A'],
  ['<b>BAD_REASON</b>', '<b>BAD_REASON</b>'],
  ['constructor', 'constructor'],
])('the reason %s is said as %s', (reason, said) => expect(sayReason(reason)).toBe(said))

test('one is one', () => {
  expect([0, 1, 2].map((count) => sayCount(count, 'message'))).toEqual(['0 messages', '1 message', '2 messages'])
})

test('states and events are words', () => {
  expect(sayState('PENDING_COMMIT')).toBe('Pending commit')
  expect(sayEvent('operation_approved')).toBe('Operation approved')
  expect(sayEvent('signature_ok')).toBe('Right code')
})

test.each([
  ['PUT /admin/applications/{id}/config/{key}', 'Set'],
  ['POST /admin/users', 'Created'],
  ['DELETE /admin/webhooks/{id}', 'Removed'],
  ['PATCH /admin/applications/{id}', 'Changed'],
  ['POST /admin/users/{name}/password', 'New password of'],
  ['console sign-in', 'Signed in:'],
  ['user erase', 'User erase'],
  ['toString', 'Tostring'],
])('the action %s is said as %s, before its target', (action, said) => expect(sayAction(action)).toBe(said))
