// Tests that a form behind a question stays open when it was refused, and that no other form does.
import { expect, test } from 'vitest'
import type { Session } from '../domain/credential/session.ts'
import { guardedForm } from './elements.ts'
import { toText } from './markup.ts'
import { readForm } from './page.ts'

const session: Session = {
  sessionId: '',
  caller: { username: 'ann', role: 'admin', applicationId: null, rights: [] },
  formToken: '',
}

test.each([
  ['', false],
  ['action=remove&name=a', true],
  ['action=remove&name=b', false],
  ['action=block&name=a', false],
])('after the form %j was refused, the one that removes a is open: %s', (sent, isOpen) => {
  const call = { session, here: '/', form: readForm(sent) }
  const shown = toText(guardedForm(call, 'remove', 'Remove', { question: 'Really?', hidden: { name: 'a' } }))
  expect(shown.startsWith('<details class="guarded" open>')).toBe(isOpen)
})
