// Which URLs name a database, and the hosts they name.
import { expect, test } from 'vitest'
import { parseDatabaseUrl } from './database-url.ts'

test('one host', () => {
  expect(parseDatabaseUrl('postgres://pawl:se,cret@db:5433/pawl?sslmode=verify-full')).toEqual({
    urls: ['postgres://pawl:se,cret@db:5433/pawl?sslmode=verify-full'],
    mustWrite: false,
    location: 'postgres://db:5433/pawl',
  })
})

test('several hosts have user, password, database and TLS settings in common, and one of them has to take writes', () => {
  expect(parseDatabaseUrl('postgresql://pawl:secret@h1:5432,[::1]:5433,h3/pawl?sslmode=verify-full')).toEqual({
    urls: ['h1:5432', '[::1]:5433', 'h3'].map((host) => `postgresql://pawl:secret@${host}/pawl?sslmode=verify-full`),
    mustWrite: true,
    location: 'postgresql://h1:5432,[::1]:5433,h3/pawl',
  })
})

test.each([
  ['read-write', true],
  ['primary', true],
  ['any', false],
])('target_session_attrs=%s is for pawl, not for the server', (target, mustWrite) => {
  expect(parseDatabaseUrl(`postgres://pawl@db/pawl?target_session_attrs=${target}&sslmode=require`)).toMatchObject({
    urls: ['postgres://pawl@db/pawl?sslmode=require'],
    mustWrite,
  })
})

test.each([
  'mysql://db/pawl',
  'postgres://h1:port/pawl',
  'postgres://h1,h2:port/pawl',
  'postgres://h1,,h2/pawl',
  'postgres://h1,/pawl',
  'postgres://h1,h2/pawl?target_session_attrs=read-only',
  'postgres://h1/pawl?target_session_attrs=prefer-standby',
])('%s names no database that pawl can use', (text) => {
  expect(parseDatabaseUrl(text)).toBeUndefined()
})
