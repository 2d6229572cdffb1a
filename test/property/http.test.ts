// Bodies and header spellings: arbitrary input never throws anything but a refusal, and what is valid comes through unchanged.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readProtocolHeaders } from '../../src/channel/stages/receive.ts'
import { parseJson, refuseUnstorable } from '../../src/http/raw-body.ts'
import { PawlError } from '../../src/lib/errors.ts'

const refusedOrParsed = (bytes: Uint8Array): unknown => {
  try {
    return parseJson(bytes)
  } catch (error) {
    expect(error).toBeInstanceOf(PawlError)
    expect((error as PawlError).code).toBe('REQUEST_INVALID')
    return undefined
  }
}

describe('JSON bodies', () => {
  test('what JSON.stringify makes of a value comes back equal', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value)
        fc.pre(!/"(__proto__|constructor)"/.test(text))
        expect(parseJson(Buffer.from(text))).toEqual(JSON.parse(text))
      }),
    )
  })

  test('arbitrary bytes are parsed or refused, nothing else', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => void refusedOrParsed(bytes)))
  })

  test.each([
    ['a byte order mark', Buffer.from('\uFEFF{}')],
    ['bytes that are not UTF-8', Buffer.from([0x22, 0xff, 0x22])],
    ['a cut character', Buffer.from([0x22, 0xc3, 0x22])],
    ['__proto__', Buffer.from('{"__proto__":{"admin":true}}')],
    ['an escaped __proto__', Buffer.from('{"\\u005f_proto__":{"admin":true}}')],
    ['constructor.prototype', Buffer.from('{"constructor":{"prototype":{"admin":true}}}')],
    ['nothing', Buffer.alloc(0)],
    ['two values', Buffer.from('{}{}')],
    ['65 levels', Buffer.from(`${'['.repeat(65)}${']'.repeat(65)}`)],
    ['100,000 levels', Buffer.from('['.repeat(100_000))],
  ])('%s is refused', (_name, bytes) => {
    expect(() => parseJson(bytes)).toThrow(PawlError)
  })
})

test('64 levels and brackets in strings are no depth', () => {
  expect(parseJson(Buffer.from(`${'['.repeat(64)}${']'.repeat(64)}`))).toBeInstanceOf(Array)
  expect(parseJson(Buffer.from(`"${'['.repeat(100)}\\"${'{'.repeat(100)}"`))).toHaveLength(201)
})

describe('text that cannot be stored', () => {
  test.each([
    ['a value', '{"a":"\\u0000"}', 'a'],
    ['a name', '{"\\u0000":1}', 'body'],
    ['a value deep inside', '[{"a":[{"b":"x\\u0000"}]}]', '0.a.0.b'],
    ['half of a surrogate pair', '{"userId":"a\\ud800"}', 'userId'],
    ['the other half in capitals', '{"userId":"\\uDFFFa"}', 'userId'],
    ['a name deep inside', '{"a":[{"b":1,"\\u0000":1}]}', 'a.0'],
    ['a text alone', '"\\u0000"', 'body'],
  ])('in %s is refused and the member is named', (_name, text, fieldName) => {
    const refuse = () => refuseUnstorable(parseJson(Buffer.from(text)), Buffer.from(text))
    expect(refuse).toThrow(expect.objectContaining({ violations: [{ fieldName, hint: 'must be Unicode text without U+0000' }] }))
  })
})

describe('the search for such text', () => {
  const anyText = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('\0', 'a\ud800', '\udfffa', '😀', '\\u0000', '\\ud800'))
  const anyValue = fc.letrec((tie) => ({
    value: fc.oneof({ maxDepth: 3 }, anyText, fc.integer(), tie('list'), tie('object')),
    list: fc.array(tie('value'), { maxLength: 4 }),
    object: fc.dictionary(anyText, tie('value'), { maxKeys: 4, noNullPrototype: true }),
  })).value
  /** Every character as an escape. */
  const escapeAll = (text: string): string =>
    text.replace(/"(?:[^"\\]|\\.)*"/g, (quoted) => {
      const codes = Array.from({ length: JSON.parse(quoted).length }, (_, i) => JSON.parse(quoted).charCodeAt(i) as number)
      return `"${codes.map((code) => `\\u${code.toString(16).padStart(4, '0')}`).join('')}"`
    })

  test('finds it wherever it is, in either spelling of the rest, and nothing else', () => {
    fc.assert(
      fc.property(anyValue, (value) => {
        const text = JSON.stringify(value)
        const isStorable = !/\0/.test(allTexts(value)) && allTexts(value).isWellFormed()
        for (const spelling of [text, escapeAll(text)]) {
          const refuse = () => refuseUnstorable(JSON.parse(spelling), Buffer.from(spelling))
          if (isStorable) expect(refuse()).toEqual(value)
          else expect(refuse).toThrow(PawlError)
        }
      }),
    )
  })

  test('walks nothing where no escape stands for it', () => {
    const walked = new Proxy({}, { ownKeys: () => expect.unreachable('the value was walked') })
    expect(refuseUnstorable(walked, Buffer.from('{"a":"\\n\\u00e9\\u2028","b":[[],{}]}'))).toBe(walked)
    expect(() => refuseUnstorable(walked, Buffer.from('{"a":"\\u0000"}'))).toThrow('the value was walked')
  })
})

/** All names and texts in a value, apart from each other. */
const allTexts = (value: unknown): string => {
  if (typeof value === 'string') return `${value}|`
  if (typeof value !== 'object' || value === null) return ''
  return Object.entries(value)
    .map(([name, member]) => `${name}|${allTexts(member)}`)
    .join('')
}

describe('protocol headers', () => {
  const value = fc.string({ maxLength: 20 })
  const name = fc.constantFrom('authorization', 'token', 'encryption')

  test('one spelling alone is read whatever its value and chooses the dialect', () => {
    fc.assert(
      fc.property(name, value, fc.constantFrom('svc', 'powerauth'), (header, text, dialect) => {
        const read = readProtocolHeaders({ [`x-${dialect}-${header}`]: text })
        expect(read).toMatchObject({ dialect, [header]: text, isMalformed: false })
      }),
    )
  })

  test('both spellings of one header are malformed exactly when their values differ', () => {
    fc.assert(
      fc.property(name, value, value, (header, svc, powerAuth) => {
        const read = readProtocolHeaders({ [`x-svc-${header}`]: svc, [`x-powerauth-${header}`]: powerAuth })
        expect(read.isMalformed).toBe(svc !== powerAuth)
      }),
    )
  })

  test('two headers in different spellings are malformed', () => {
    const read = readProtocolHeaders({ 'x-svc-token': 'a', 'x-powerauth-encryption': 'b' })
    expect(read).toMatchObject({ dialect: 'powerauth', isMalformed: true })
  })

  test('without any header the dialect is that of the published SDKs', () => {
    expect(readProtocolHeaders({})).toMatchObject({ dialect: 'powerauth', isMalformed: false, authorization: undefined })
  })
})
