// Tests forms: after a refusal the one that was sent has what was typed, stays open, and keeps the version of what it shows. No other form does.
import { expect, test } from 'vitest'
import type { Session } from '../domain/credential/session.ts'
import { actionForm, check, field, guardedForm, select } from './elements.ts'
import { toText } from './markup.ts'
import { readForm, versionOf } from './page.ts'
import { Refusal } from './api.ts'

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
  const call = { session, here: '/', form: readForm(sent), refusal: undefined }
  const shown = toText(guardedForm(call, 'remove', 'Remove', { question: 'Really?', hidden: { name: 'a' } }))
  expect(shown.startsWith('<details class="guarded" open>')).toBe(isOpen)
})

const REFUSAL = new Refusal(400, 'Request validation failed', [{ fieldName: 'name', hint: 'must be shorter' }])

test.each([
  ['', ['stored', 'b', true, false]],
  ['action=save&key=1&name=typed&kind=a', ['typed', 'a', false, true]],
  ['action=save&key=2&name=typed&kind=a', ['stored', 'b', true, false]],
  ['action=remove&key=1&name=typed&kind=a', ['stored', 'b', true, false]],
] as const)('after the form %j was refused, the one that saves 1 shows %j', (sent, [name, kind, isOn, isFaulty]) => {
  const call = { session, here: '/', form: readForm(sent), refusal: sent === '' ? undefined : REFUSAL }
  const choices = [
    ['a', 'A'],
    ['b', 'B'],
  ] as const
  const shown = toText(
    actionForm(call, 'save', 'Save', {
      hidden: { key: '1' },
      fields: (own) => [
        field(own, 'name', 'Name', { value: 'stored' }),
        select(own, 'kind', 'Kind', choices, { value: 'b' }),
        check(own, 'isOn', 'On', true),
      ],
    }),
  )
  expect(shown).toContain(`id="name" name="name" type="text" value="${name}"`)
  expect(shown).toContain(`<option value="${kind}" selected>`)
  expect(shown.includes(' checked')).toBe(isOn)
  expect(shown.includes('aria-invalid')).toBe(isFaulty)
})

test('a form that was sent keeps the version of what it showed', () => {
  const seenIn = (sent: string): string | undefined => {
    const call = { session, here: '/', form: readForm(sent), refusal: undefined }
    return /name="seen" value="([^"]*)"/.exec(toText(actionForm(call, 'save', 'Save', { seen: ['stored'] })))?.[1]
  }
  expect(seenIn('')).toBe(versionOf(['stored']))
  expect(seenIn('action=save&seen=earlier')).toBe('earlier')
  expect(seenIn('action=other&seen=earlier')).toBe(versionOf(['stored']))
})
