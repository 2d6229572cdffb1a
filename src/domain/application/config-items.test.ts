// Tests which of several configuration items with one key an activation reads (v4 §9.11).
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ConfigItemRow } from '../../storage/application/config-items.ts'
import { mergeConfigItems } from './config-items.ts'

const item = (key: string, value: unknown, scope: ConfigItemRow['scope']): ConfigItemRow => ({ key, value, scope })

describe('mergeConfigItems', () => {
  test('puts the activation above the scope ACTIVATION of its application, and that above APPLICATION', () => {
    const ofApplication = [
      item('c', 1, 'APPLICATION'),
      item('b', 1, 'APPLICATION'),
      item('a', 1, 'APPLICATION'),
      item('a', 2, 'ACTIVATION'),
      item('b', 2, 'ACTIVATION'),
    ]
    const ofActivation = [item('a', 3, 'ACTIVATION'), item('d', 3, 'ACTIVATION')]
    expect(mergeConfigItems(ofApplication, ofActivation)).toEqual([
      item('a', 3, 'ACTIVATION'),
      item('b', 2, 'ACTIVATION'),
      item('c', 1, 'APPLICATION'),
      item('d', 3, 'ACTIVATION'),
    ])
    expect(mergeConfigItems(ofApplication.toReversed(), ofActivation)).toEqual(mergeConfigItems(ofApplication, ofActivation))
    expect(mergeConfigItems([], [])).toEqual([])
  })

  test('has every key once, also names of members that every object has', () => {
    const items = fc.array(fc.tuple(fc.constantFrom('a', 'b', '__proto__', 'constructor'), fc.boolean()))
    fc.assert(
      fc.property(items, items, (some, own) => {
        const ofApplication = some.map(([key, isWide]) => item(key, 0, isWide ? 'APPLICATION' : 'ACTIVATION'))
        const merged = mergeConfigItems(
          ofApplication,
          own.map(([key]) => item(key, 1, 'ACTIVATION')),
        )
        const keys = new Set([...some, ...own].map(([key]) => key))
        expect(merged.map(({ key }) => key)).toEqual([...keys].toSorted())
        for (const { key, value } of merged) expect(value).toBe(own.some(([name]) => name === key) ? 1 : 0)
      }),
    )
  })
})
