// Tests that times and bytes are read as a database with pawl's settings writes them, and that other forms are errors.
import { describe, expect, test } from 'vitest'
import { parseBytea, parseTime } from './session-settings.ts'

describe('a time', () => {
  test.each([
    ['2026-11-27 10:34:51.123+00', '2026-11-27T10:34:51.123Z'],
    ['2026-11-27 10:34:51.123456+05:45', '2026-11-27T04:49:51.123Z'],
    ['0099-01-01 00:00:00+00', '0099-01-01T00:00:00.000Z'],
    ['12026-01-01 00:00:00+00', '+012026-01-01T00:00:00.000Z'],
    ['0044-03-15 12:00:00+00 BC', '-000043-03-15T12:00:00.000Z'],
  ])('is read: %s', (text, iso) => {
    expect(parseTime(text).toISOString()).toBe(iso)
  })

  // The same moment in other date styles, and texts that are no moment.
  test.each([
    '27.11.2026 10:34:51.123 UTC',
    '11/27/2026 10:34:51.123 UTC',
    'Fri Nov 27 10:34:51.123 2026 UTC',
    '27/11/2026 10:34:51 CET',
    '',
    'NULL',
    'epoch',
    '1795775691',
  ])('that is written otherwise is an error: %j', (text) => {
    expect(() => parseTime(text)).toThrow(`the database gave a time that cannot be read: ${text}`)
  })

  // node-postgres reads infinity as a number, and every answer with the time would then fail.
  test.each([
    ['infinity', '9999-12-31T23:59:59.999Z'],
    ['-infinity', '0001-01-01T00:00:00.000Z'],
    ['294276-12-31 23:59:59.999999+00', '9999-12-31T23:59:59.999Z'],
    ['275760-10-01 00:00:00+00', '9999-12-31T23:59:59.999Z'],
  ])('that somebody set to %s is one beyond all others', (text, iso) => {
    expect(parseTime(text).toISOString()).toBe(iso)
  })
})

describe('bytes', () => {
  test.each([
    [String.raw`\x`, ''],
    [String.raw`\x00ff`, '00ff'],
  ])('are read: %s', (text, hex) => {
    expect(parseBytea(text).toString('hex')).toBe(hex)
  })

  test.each(['', 'abc', String.raw`\000\377`, '00ff'])('that are written otherwise are an error: %j', (text) => {
    expect(() => parseBytea(text)).toThrow('the database gave bytes that cannot be read')
  })
})
