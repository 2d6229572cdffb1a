// No template that is accepted yields an operation outside of what published SDKs read (mobile-token §6).
import { Value } from '@sinclair/typebox/value'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { renderOperationForm } from '../../src/domain/operation/form.ts'
import { OperationUi } from '../../src/domain/template/ui.ts'
import { parseTemplate } from '../../src/domain/template/parser.ts'

const text = fc.constantFrom('', 'H', '${a}', 'x ${b} ${a}', '${missing}')
/** Anything that stands where something else should. */
const stray = fc.constantFrom<unknown>(undefined, null, '', '${a}', 0, 1.5, true, [], ['x'], {}, { x: [1] })
/** Nearly always the value that belongs there, so that some templates are accepted. */
const mostly = (value: fc.Arbitrary<unknown>) => fc.oneof({ weight: 30, arbitrary: value }, { weight: 1, arbitrary: stray })
const word = (...words: string[]) => mostly(fc.constantFrom(...words))
const seconds = mostly(fc.oneof(fc.nat(), fc.double()))
const flag = mostly(fc.boolean())

const element = fc.record(
  {
    type: word('LIST_ITEM', 'LISTITEM', 'ALERT', 'BUTTON'),
    style: word('INFO', 'WARNING', 'DANGER'),
    text: mostly(text),
    action: word('LINK', 'MAIL', 'PHONE'),
    actionSettings: mostly(text),
  },
  { requiredKeys: ['type'] },
)
const controls = fc.record(
  {
    flip: flag,
    axis: word('HORIZONTAL', 'VERTICAL'),
    decline: mostly(fc.record({ type: word('BACK', 'REJECT') })),
    approve: mostly(fc.record({ type: word('SLIDER', 'BUTTON'), counter: seconds }, { requiredKeys: ['type'] })),
  },
  { requiredKeys: [] },
)
const screen = fc.record(
  {
    type: word('WARNING', 'INFO', 'QR_SCAN'),
    heading: mostly(text),
    message: mostly(text),
    items: mostly(fc.array(mostly(text), { maxLength: 3 })),
    approvalType: word('SLIDER'),
    backButton: flag,
    elements: mostly(fc.array(mostly(element), { maxLength: 3 })),
    controls: mostly(controls),
  },
  { requiredKeys: ['type'] },
)
const party = fc.record(
  { logoUrl: mostly(text), name: mostly(text), description: mostly(text), websiteUrl: mostly(text) },
  { requiredKeys: ['logoUrl', 'name', 'description'] },
)
const attribute = fc.oneof(
  fc.record({ type: word('NOTE'), id: mostly(text), label: mostly(text), note: mostly(text) }),
  fc.record({ type: word('PARTY_INFO'), id: text, label: text, partyInfo: mostly(party) }),
  fc.record({ type: word('ALERT'), id: text, label: text, message: text, alertType: word('INFO', 'ERROR') }),
  fc.record({ id: text, x: stray, label: text, type: word('HEADING') }, { requiredKeys: ['id', 'label', 'type'] }),
)
const payloads = {
  REVIEW: fc.record({ attributes: mostly(fc.array(mostly(attribute), { maxLength: 3 })) }),
  MERCHANT_REDIRECT: fc.record({ redirectText: mostly(text), redirectUrl: mostly(text), countdown: seconds }),
  GENERIC: fc.dictionary(fc.constantFrom('a', 'b'), stray),
}
const postScreen = fc.oneof(
  ...Object.entries(payloads).map(([type, payload]) =>
    fc.record({ type: word(type), heading: mostly(text), message: mostly(text), payload: mostly(payload) }),
  ),
)
const ui = fc.record(
  {
    flipButtons: flag,
    blockApprovalOnCall: flag,
    preApprovalScreen: mostly(screen),
    preApprovalScreens: mostly(fc.array(mostly(screen), { maxLength: 3 })),
    postApprovalScreen: mostly(postScreen),
    templates: mostly(fc.constant({ list: { header: '${a}' } })),
    other: stray,
  },
  { requiredKeys: [] },
)
const parameter = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('"},"flipButtons":[', '5', 'https://a', '${a}'))

const templateWith = (own: unknown) => ({
  templateName: 'n',
  operationType: 'o',
  dataTemplate: 'A0',
  signatureType: ['possession'],
  maxFailureCount: 1,
  expiration: 60,
  texts: { en: { title: 'T', message: 'M', ui: own } },
})

describe('the ui of an operation', () => {
  test('is within the schema whenever its template is accepted, whatever the parameters are', () => {
    const seen = { accepted: 0, refused: 0 }
    fc.assert(
      fc.property(ui, parameter, parameter, fc.boolean(), (own, a, b, hasProximityCheck) => {
        const parsed = parseTemplate(templateWith(own))
        if ('violations' in parsed) {
          seen.refused += 1
          expect(parsed.violations.every(({ fieldName }) => fieldName.startsWith('texts.en.ui'))).toBe(true)
          return
        }
        seen.accepted += 1
        const { en } = parsed.template.texts
        if (en === undefined) throw new TypeError('no texts')
        for (const listElementType of ['LIST_ITEM', 'LISTITEM'] as const) {
          const form = renderOperationForm({
            texts: en,
            locale: 'en',
            parameters: { a, b },
            riskFlags: 'XFC',
            hasProximityCheck,
            listElementType,
          })
          expect(form.leftOut).toEqual([])
          const sent: unknown = JSON.parse(JSON.stringify(form.ui ?? {}))
          expect([...Value.Errors(OperationUi, sent)]).toEqual([])
          const other = listElementType === 'LISTITEM' ? '"type":"LIST_ITEM"' : '"type":"LISTITEM"'
          expect(JSON.stringify((form.ui ?? {})['preApprovalScreens'] ?? [])).not.toContain(other)
        }
      }),
      { numRuns: 2000 },
    )
    // Neither side of the property is empty.
    expect(Math.min(seen.accepted, seen.refused)).toBeGreaterThan(200)
  })

  test('of a template that was stored before it was checked is within the schema as well', () => {
    fc.assert(
      fc.property(ui, parameter, (own, a) => {
        const texts = { title: 'T', message: 'M', attributes: [], ui: JSON.parse(JSON.stringify(own)) as Record<string, unknown> }
        const form = renderOperationForm({ texts, locale: 'en', parameters: { a }, riskFlags: '', hasProximityCheck: true })
        expect(Value.Check(OperationUi, JSON.parse(JSON.stringify(form.ui ?? {})))).toBe(true)
      }),
      { numRuns: 1000 },
    )
  })

  test('of the risk flags is within the schema', () => {
    const texts = { title: 'T', message: 'M', attributes: [] }
    const { ui: derived } = renderOperationForm({
      texts,
      locale: 'cs',
      parameters: {},
      riskFlags: 'XFC',
      hasProximityCheck: false,
    })
    expect(Value.Check(OperationUi, derived)).toBe(true)
  })
})
