// Times that people type, against what Date.parse makes of them.
import { describe, expect, test } from 'vitest'
import { parseSeconds, parseTime } from '../../cli/time.ts'

describe('a time that people write', () => {
  test.each([
    ['2027-01-31', '2027-01-31T00:00:00.000Z'],
    ['2028-02-29', '2028-02-29T00:00:00.000Z'],
    ['2027-01-31T12:00Z', '2027-01-31T12:00:00.000Z'],
    ['2027-01-31 12:00:59Z', '2027-01-31T12:00:59.000Z'],
    ['2027-01-31T12:00:00.5+01:30', '2027-01-31T10:30:00.500Z'],
    ['2027-01-31 12:00:00+00', '2027-01-31T12:00:00.000Z'],
    ['2027-01-31 12:00:00.123456+01', '2027-01-31T11:00:00.124Z'],
    ['2027-01-31T12:00:00.123000Z', '2027-01-31T12:00:00.123Z'],
    ['2027-12-31T23:30:00-02:00', '2028-01-01T01:30:00.000Z'],
    ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
  ])('%s is %s', (text, time) => {
    expect(parseTime(text)).toBe(Date.parse(time))
  })

  // Date.parse reads all but the last five as times.
  test.each([
    '2027-02-30',
    '2027-02-29T00:00:00Z',
    '2026-11-31T12:00:00+01:00',
    '12.11.2027',
    '05/06/2027',
    '2027-1-5',
    'foo 1',
    'tomorrow 5',
    '-1',
    '2027',
    '2027-01-31T12:00:00',
    '2027-01-31 12:00',
    '+012027-01-01',
    '2027-13-01',
    '2027-01-31T12:00.5Z',
    '2027-01-31+01',
    '2027-01-31T25:00:00Z',
    '2027-01-31T12:00:00+99:99',
    '31.12.2027',
    '',
  ])('%s is none', (text) => {
    expect(parseTime(text)).toBeUndefined()
  })
})

test('the end of a certificate is taken as openssl prints it', () => {
  const seconds = Date.UTC(2027, 0, 31, 12) / 1000
  for (const text of ['notAfter=Jan 31 12:00:00 2027 GMT', 'Jan 31 12:00:00 2027 GMT', String(seconds)])
    expect(parseSeconds(text)).toBe(seconds)
  for (const text of ['notAfter=Feb 30 12:00:00 2027 GMT', 'notAfter=2027-01-31', 'notBefore=Jan 31 12:00:00 2027 GMT'])
    expect(() => parseSeconds(text)).toThrow('is no time')
})
