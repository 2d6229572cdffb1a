// Tests texts in templates: they are escaped everywhere, and hidden characters are shown where a person reads.
import { describe, expect, test } from 'vitest'
import { html, toText, type Value } from './markup.ts'

const said = (value: Value): string => toText(html`<p>${value}</p>`)

test.each(['alice', 'Žofie 📱 ☎️', '<b>"&', 'two\nlines\tand a tab', '日本語', 'ελληνικά'])('%j stands as it is', (text) => {
  expect(said(text)).not.toMatch(/bdi|hidden-char/)
  expect(said(text)).toBe(`<p>${text.replaceAll(/[&<>"]/g, (char) => `&#${char.codePointAt(0)};`)}</p>`)
})

test.each([
  ['202e', 'U+202E'],
  ['202a', 'U+202A'],
  ['2066', 'U+2066'],
  ['200f', 'U+200F'],
  ['61c', 'U+061C'],
  ['200b', 'U+200B'],
  ['200d', 'U+200D'],
  ['feff', 'U+FEFF'],
  ['ad', 'U+00AD'],
  ['3164', 'U+3164'],
  ['115f', 'U+115F'],
  ['34f', 'U+034F'],
  ['2028', 'U+2028'],
  ['0', 'U+0000'],
  ['1b', 'U+001B'],
  ['7f', 'U+007F'],
  ['9b', 'U+009B'],
  ['e0041', 'U+E0041'],
])('the character %s is shown by its number, and the text stands by itself', (point, name) => {
  const char = String.fromCodePoint(Number.parseInt(point, 16))
  const mark = `<span class="hidden-char" title="${name}">\\u{${point}}</span>`
  expect(said(`<a${char}b${char}`)).toBe(`<p><bdi>&#60;a${mark}b${mark}</bdi></p>`)
})

test.each(['אליס', 'مريم', 'ޔޫޒަރ', 'x 𐤀', 'ﺍ'])('%s, which is written from the right, stands by itself', (text) => {
  expect(said(text)).toBe(`<p><bdi>${text}</bdi></p>`)
})

describe('where no element can stand', () => {
  const evil = 'a\u202Eb'

  test('titles, choices and what is read aloud have the number alone', () => {
    expect(toText(html`<title>${evil} · pawl</title>`)).toBe('<title>a\\u{202e}b · pawl</title>')
    expect(toText(html`<option value="${evil}">${evil}</option>`)).toBe('<option value="a\u202Eb">a\\u{202e}b</option>')
    expect(toText(html`<td title="of ${evil}"></td>`)).toBe('<td title="of a\\u{202e}b"></td>')
    expect(toText(html` aria-label="${evil}"`)).toBe(' aria-label="a\\u{202e}b"')
  })

  test('what is sent or followed stays as it is', () => {
    expect(toText(html`<input name="x" value="${evil}">`)).toBe('<input name="x" value="a\u202Eb">')
    expect(toText(html`<textarea id="${'x'}" rows="${2}">${evil}</textarea>`)).toBe(
      '<textarea id="x" rows="2">a\u202Eb</textarea>',
    )
    expect(toText(html`<a href="/x?${evil}">${evil}</a>`)).toMatch(/^<a href="\/x\?a\u202Eb"><bdi>a<span/)
    expect(toText(html` hx-get="${evil}"`)).toBe(' hx-get="a\u202Eb"')
  })

  test('behind them texts are marked again, also in lists', () => {
    expect(toText(html`<textarea>${evil}</textarea><p>${[evil, evil]}</p>`).match(/<bdi>/g)).toHaveLength(2)
    expect(toText(html`<option>${'x'}</option>${evil}`)).toContain('<bdi>')
  })
})
