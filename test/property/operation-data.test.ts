// Operation data: what was composed reads back to the same values, whatever the values are (cloud §5).
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { composeOperationData, isOperationDataTemplate, parseOperationData } from '../../src/domain/template/operation-data.ts'
import { listPlaceholders } from '../../src/domain/template/template.ts'

const text = fc
  .array(fc.oneof(fc.constantFrom('*', '\\', '\n', 'n', '$', '{', '}', '${a}', 'A', ',', ' '), fc.string({ unit: 'grapheme' })))
  .map((parts) => parts.join(''))
  .filter((value) => !/[^\n -\u{10FFFF}]|[\u202A-\u202E\u2066-\u2069]|\\$/u.test(value))
const letters = fc.array(fc.constantFrom('A', 'I', 'Q', 'D', 'R', 'N', 'T'), { minLength: 1, maxLength: 5 })

const compose = (template: string, parameters: Record<string, string>): string => {
  const composed = composeOperationData(template, parameters)
  return 'data' in composed ? composed.data : `refused: ${JSON.stringify(composed.violations)}`
}

/** As the SDKs for Android, iOS and JavaScript split: at every asterisk, but for those behind a backslash. */
function splitAsPhone(data: string): string[] {
  const fields: string[] = []
  let isContinued = false
  for (const part of data.split('*')) {
    if (isContinued) fields.push(`${(fields.pop() ?? '').slice(0, -1)}*${part}`)
    else fields.push(part)
    isContinued = part.endsWith('\\')
  }
  return fields
}

describe('composed operation data', () => {
  test('is split by a phone into its fields, or refused', () => {
    const any = fc.array(fc.constantFrom('\\', '*', 'a', '\n'), { maxLength: 4 }).map((parts) => parts.join(''))
    fc.assert(
      fc.property(letters, fc.array(fc.tuple(any, any), { minLength: 5, maxLength: 5 }), (order, values) => {
        const template = `A0${order.map((letter, index) => `*${letter}\${p${index}}\${q${index}}`).join('')}`
        const parameters = values.flatMap(([p, q], index) => [[`p${index}`, p] as const, [`q${index}`, q] as const])
        const composed = composeOperationData(template, Object.fromEntries(parameters))
        const isLegible = order.every((_, index) => index === order.length - 1 || !values[index]?.join('').endsWith('\\'))
        expect('data' in composed).toBe(isLegible)
        if (!('data' in composed)) return
        const escaped = order.map((letter, index) => {
          const value = values[index]?.join('') ?? ''
          return letter + value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
        })
        expect(splitAsPhone(composed.data)).toEqual(['A0', ...escaped])
      }),
    )
  })

  test('reads back to the fields it was made of', () => {
    fc.assert(
      fc.property(letters, fc.array(text, { minLength: 5, maxLength: 5 }), fc.nat({ max: 99 }), (order, values, number) => {
        fc.pre(number !== 1)
        const template = `A${number}${order.map((letter, index) => `*${letter}\${p${index}}`).join('')}`
        expect(isOperationDataTemplate(template)).toBe(true)
        const data = compose(template, Object.fromEntries(values.map((value, index) => [`p${index}`, value])))
        expect(parseOperationData(data)).toEqual({
          templateNumber: number,
          fields: order.map((letter, index) => ({ letter, value: values[index] })),
        })
      }),
    )
  })

  test('of a payment reads back to amount, account, reference and note', () => {
    const amount = fc
      .tuple(fc.bigInt({ min: 0n, max: 10n ** 40n }), fc.option(fc.stringMatching(/^\d{1,18}$/)))
      .map(([whole, fraction]) => (fraction === null ? `${whole}` : `${whole}.${fraction}`))
    const currency = fc.stringMatching(/^[A-Z]{3}$/)
    const iban = fc.stringMatching(/^[A-Z]{2}\d{2}[A-Z0-9]{11,30}(,[A-Z]{6}[A-Z0-9]{2})?$/)
    const template = 'A1*A${amount}${currency}*I${iban}*R${reference}**N${note}'
    fc.assert(
      fc.property(fc.record({ amount, currency, iban, reference: text, note: text }), (parameters) => {
        const { amount: value, currency: code, ...rest } = parameters
        expect(parseOperationData(compose(template, parameters))?.fields).toEqual([
          { letter: 'A', value: value + code },
          { letter: 'I', value: rest.iban },
          { letter: 'R', value: rest.reference },
          undefined,
          { letter: 'N', value: rest.note },
        ])
      }),
    )
  })

  test('is one text for one set of values: two different texts never give the same data', () => {
    fc.assert(
      fc.property(text, text, text, text, (a, b, c, d) => {
        fc.pre(a !== c || b !== d)
        const template = 'A0*T${a}*N${b}'
        expect(compose(template, { a, b })).not.toBe(compose(template, { a: c, b: d }))
      }),
    )
  })

  test('never throws, whatever template and parameters are, and holds no control characters', () => {
    const any = fc.oneof(text, fc.string({ unit: 'binary' }))
    const names = fc.oneof(any, fc.constantFrom('a', '__proto__', 'constructor'))
    const templates = fc.tuple(fc.constantFrom('A0*', 'A1*', ''), any).map(([header, rest]) => header + rest)
    fc.assert(
      fc.property(templates, fc.dictionary(names, any), (template, parameters) => {
        parseOperationData(template)
        const composed = composeOperationData(template, parameters)
        if ('violations' in composed) expect(composed.violations.length).toBeGreaterThan(0)
        else if (isOperationDataTemplate(template)) expect(composed.data).not.toMatch(/[^ -\u{10FFFF}]/u)
      }),
    )
  })
})

describe('composeOperationData', () => {
  const payment = 'A1*A${amount}${currency}*I${iban}'
  const good = { amount: '1492.50', currency: 'EUR', iban: 'DE89370400440532013000' }

  test('fills the shipped payment', () => {
    expect(composeOperationData(payment, { ...good, more: 'kept elsewhere' })).toEqual({
      data: 'A1*A1492.50EUR*IDE89370400440532013000',
    })
  })

  test('escapes backslash, asterisk and line break, and nothing twice', () => {
    expect(compose('A0*R${a}', { a: 'x*y\\n\nz${a}' })).toBe('A0*Rx\\*y\\\\n\\nz${a}')
  })

  test('names every placeholder without parameter once', () => {
    expect(composeOperationData('A0*R${a}${b}*N${a}', { b: '1' })).toEqual({
      violations: [{ fieldName: 'parameters.a', hint: 'must be present, the template needs it' }],
    })
  })

  test.each(['__proto__', 'constructor', 'toString'])('takes nothing from the prototype for ${%s}', (name) => {
    expect(composeOperationData(`A0*R\${${name}}`, {})).toMatchObject({ violations: [{ fieldName: `parameters.${name}` }] })
  })

  test.each(['\u0000', '\t', '\u000b', '\r', '\u001f'])(
    'refuses %j also in a parameter that no placeholder uses',
    (character) => {
      expect(composeOperationData('A2', { other: `a${character}` })).toMatchObject({
        violations: [{ fieldName: 'parameters.other', hint: expect.stringContaining('control characters') }],
      })
    },
  )

  // An amount behind one of them is read backwards, or with what follows it in another order.
  test.each('\u202A\u202B\u202C\u202D\u202E\u2066\u2067\u2068\u2069'.split(''))(
    'refuses %j, which changes the direction of text, in any parameter and in the template',
    (character) => {
      const hint = expect.stringContaining('direction of text')
      for (const template of ['A2', 'A0*T${other}']) {
        expect(composeOperationData(template, { other: `a${character}b` })).toMatchObject({
          violations: [{ fieldName: 'parameters.other', hint }],
        })
      }
      expect(isOperationDataTemplate(`A0*Ta${character}b`)).toBe(false)
      expect(composeOperationData(`A0*Ta${character}b`, {})).toEqual({ violations: [{ fieldName: 'template', hint }] })
    },
  )

  test('takes the marks that text from right to left needs', () => {
    expect(composeOperationData('A0*T${other}', { other: '\u200E\u05D0\u200F\u061C' })).toEqual({
      data: 'A0*T\u200E\u05D0\u200F\u061C',
    })
  })

  test.each([
    [payment, { amount: '1492' }],
    [payment, { amount: '0.000000000000000001', currency: 'BTC' }],
    [payment, { iban: 'CZ2730300000001165254011,GIBACZPX' }],
    ['A1*A${amount}${currency}*Q${iban}', { iban: '19-2000145399/0800' }],
    [`${payment}*D\${date}`, { date: '20280229' }],
    [`${payment}*R\${r}*D\${date}*N\${n}`, { r: '/VS1', date: '20251231', n: '' }],
    [`${payment}***N\${n}`, { n: 'x' }],
    [`${payment}*\${rest}`, { rest: '' }],
    [`${payment}*D\${date}*T\${t}`, { date: '20180425', t: 'hello world' }],
  ])('%s takes %j', (template, parameters) => {
    expect(composeOperationData(template, { ...good, ...parameters })).toHaveProperty('data')
  })

  test.each([
    [payment, { amount: '1,5' }, ['amount', 'currency']],
    [payment, { amount: '' }, ['amount', 'currency']],
    [payment, { amount: '-5' }, ['amount', 'currency']],
    [payment, { amount: '1e3' }, ['amount', 'currency']],
    [payment, { amount: '5.' }, ['amount', 'currency']],
    [payment, { amount: '.5' }, ['amount', 'currency']],
    [payment, { amount: '٣' }, ['amount', 'currency']],
    [payment, { currency: 'eur' }, ['amount', 'currency']],
    [payment, { currency: 'EURO' }, ['amount', 'currency']],
    [payment, { currency: '' }, ['amount', 'currency']],
    [payment, { iban: '' }, ['iban']],
    [payment, { iban: 'DE89 3704' }, ['iban']],
    [payment, { iban: 'de89' }, ['iban']],
    [payment, { iban: 'DE89*DE90' }, ['iban']],
    [payment, { iban: 'DE89,A,B' }, ['iban']],
    [payment, { iban: 'D'.repeat(35) }, ['iban']],
    ['A1*A${amount}${currency}*Q${iban}', { iban: ' ' }, ['iban']],
    [`${payment}*D\${date}`, { date: '20260229' }, ['date']],
    [`${payment}*D\${date}`, { date: '20261301' }, ['date']],
    [`${payment}*D\${date}`, { date: '2026-01-01' }, ['date']],
    [`${payment}*D\${date}`, { date: '' }, ['date']],
    [`${payment}*N\${n}*R\${r}`, { n: 'x', r: 'y' }, ['r']],
    [`${payment}*\${n}`, { n: 'Ax' }, ['n']],
  ])('%s refuses %j', (template, parameters, names) => {
    expect(composeOperationData(template, { ...good, ...parameters })).toEqual({
      violations: names.map((name) => ({
        fieldName: `parameters.${name}`,
        invalidValue: ({ ...good, ...parameters } as Record<string, string>)[name],
        hint: expect.any(String),
      })),
    })
  })

  test('refuses data that no approval could hold', () => {
    expect(compose('A0*N${a}', { a: 'x'.repeat(10_000 - 4) })).toHaveLength(10_000)
    expect(composeOperationData('A0*N${a}', { a: 'x'.repeat(10_000 - 3) })).toEqual({
      violations: [{ fieldName: 'parameters', hint: 'must give at most 10000 characters of data' }],
    })
  })

  test.each([
    ['A0*T${a}*N${b}', { a: '\\', b: 'x' }, ['a']],
    ['A0*T${a}*N${b}', { a: 'C:\\', b: '' }, ['a']],
    ['A0*T${a}*N${b}', { a: 'x\\\\', b: '\\' }, ['a']],
    ['A0*T${a}*', { a: 'x\\' }, ['a']],
    ['A0*T${a}**N${b}', { a: 'x\\', b: 'y' }, ['a']],
    ['A0*T${a}${b}*N', { a: 'x\\', b: '' }, ['a']],
    ['A0*R${a}*T${b}*N${a}', { a: '*\\', b: '\n\\' }, ['a', 'b']],
    ['A1*A${amount}EUR*Q${iban}*R${a}*N', { amount: '1', iban: '1/2', a: '\\' }, ['a']],
    ['A1*A1EUR*Q${iban}*N', { iban: '1\\' }, ['iban']],
    ['A0*T\\\\${a}*N', { a: '' }, []],
  ])('%s refuses %j, which phones would split elsewhere', (template, parameters, names) => {
    const fields = names.length === 0 ? ['template'] : names.map((name) => `parameters.${name}`)
    const composed = composeOperationData(template, parameters as Record<string, string>)
    expect('violations' in composed && composed.violations.map(({ fieldName }) => fieldName)).toEqual(fields)
    expect(JSON.stringify(composed)).toContain('backslash before another field')
  })

  test.each([
    ['A0*T${a}', { a: 'x\\' }],
    ['A0*T${a}*N${b}', { a: '\\x', b: '\\' }],
    ['A0*T${a}*N${b}', { a: 'x\\*', b: '*' }],
    ['A0*T${a}.*N', { a: '\\' }],
    ['A2', { other: '\\' }],
  ])('%s takes %j', (template, parameters) => {
    expect(composeOperationData(template, parameters as Record<string, string>)).toHaveProperty('data')
  })

  test('judges the fields of payments only', () => {
    expect(compose('A0*A${a}', { a: 'anything' })).toBe('A0*Aanything')
  })

  test('blames the template for what no parameter can mend', () => {
    expect(composeOperationData('A1*A100*IDE89', {})).toMatchObject({ violations: [{ fieldName: 'template' }] })
    expect(composeOperationData('A1', {})).toMatchObject({ violations: [{ fieldName: 'template' }] })
  })
})

describe('a data template', () => {
  test.each(['A2', 'A0', 'A99*T', 'A0*R${a}*R${b}*R*R*R', 'A1*A1EUR*I${i}', 'A0*Rx\\*y\\\\z\\n', 'A0*R$5', 'A0*${a}'])(
    '%s is sound',
    (template) => {
      expect(isOperationDataTemplate(template)).toBe(true)
    },
  )

  test.each(
    [
      ['', 'B0', 'A', 'A100', 'A01', 'a0', 'A0R${a}', '${a}', 'A${n}*R'],
      ['A0*R${a', 'A0*R${}', 'A0*R${a b}', 'A0*R${a:-b}', 'A0*R${${a}}', 'A0*R${a*b}'],
      ['A0*R*R*R*R*R*R', 'A0*r', 'A0*1', 'A0*R\\', 'A0*R\\x', 'A0*R\\${a}', 'A0*R\n', 'A0*R\t', 'A1', 'A1*A${a}'],
      ['A0*R\\\\*N', 'A0*R${a}\\\\*N', 'A0*R\\\\*', 'A0*Ra\\\\\\\\*N'],
    ].flat(),
  )('%j is refused', (template) => {
    expect(isOperationDataTemplate(template)).toBe(false)
  })

  test('names its placeholders in order', () => {
    expect(listPlaceholders('A1*A${amount}${currency}*I${iban}')).toEqual(['amount', 'currency', 'iban'])
  })
})

test.each(['', 'A', 'B2', 'A2*', 'A0*x', 'A0*R\\', 'A0*R\\a', 'A0*R\u0001', 'A0*R*R*R*R*R*R', 'A100'])(
  '%j parses to what a phone makes of it',
  (data) => {
    expect(parseOperationData(data)).toEqual(data === 'A2*' ? { templateNumber: 2, fields: [undefined] } : undefined)
  },
)
