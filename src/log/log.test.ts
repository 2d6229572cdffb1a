// Tests the levels of the log, and its redaction.
import { expect, test } from 'vitest'
import { createLog } from './log.ts'
import type { Log, LogLevel } from './log.ts'

function writeLog(level: LogLevel, write: (log: Log) => void): string {
  const lines: string[] = []
  write(createLog(level, { write: (line) => void lines.push(line) }))
  return lines.join('')
}

test('a line is one JSON object with time, level and text', () => {
  const line = JSON.parse(writeLog('info', (log) => log.info({ activationId: 'a' }, 'created')))
  expect(line).toEqual({ level: 'info', time: expect.stringMatching(/^\d{4}-.*Z$/), activationId: 'a', msg: 'created' })
})

test('lines below the level are not written, and silent writes nothing', () => {
  expect(writeLog('warn', (log) => log.info('quiet'))).toBe('')
  expect(writeLog('silent', (log) => log.fatal('quiet'))).toBe('')
})

test('credentials in headers and secret members are redacted at the levels where they occur', () => {
  const headers = {
    authorization: 'Basic marked',
    'x-powerauth-authorization': 'PowerAuth marked',
    'x-svc-token': 'Svc marked',
    'x-powerauth-encryption': 'readable',
  }
  const text = writeLog('info', (log) =>
    log.info(
      { headers, req: { headers }, password: 'marked', config: { masterKey: 'marked' }, a: { b: { tokenSecret: 'marked' } } },
      'seen',
    ),
  )
  expect(text).not.toContain('marked')
  expect(text).toContain('readable')
  expect(text.match(/\[secret\]/g)).toHaveLength(9)
})
