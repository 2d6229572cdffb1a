// Tests to which traces shared work belongs when only some of its requests are recorded.
import { expect, test } from 'vitest'
import { currentScope, type RequestScope, runForAll, runInScope, type Span } from './trace.ts'

const scopeOf = (id: string, isRecorded: boolean): RequestScope => {
  const span: Span = { traceId: id, isRecorded, headers: () => ({}), startChild: () => span, end: () => undefined }
  return { id, span }
}
const [recorded, left, none] = [scopeOf('recorded', true), scopeOf('left out', false), undefined]

test.each([
  ['of one that is recorded', [recorded], 'recorded'],
  ['of one that is recorded among others', [left, none, recorded], 'recorded'],
  ['of one that is left out', [left], 'left out'],
  ['of nobody', [none], undefined],
])('work %s is none of the request that began the loop', (_, scopes, id) => {
  const began = scopeOf('began the loop', true)
  expect(runInScope(began, () => runForAll(scopes, () => currentScope()?.id))).toBe(id)
})
