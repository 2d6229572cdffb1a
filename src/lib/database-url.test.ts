// Tests which URLs name a database, and the hosts that they name.
import { expect, test } from 'vitest'
import { findTlsProblem, parseDatabaseUrl } from './database-url.ts'

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
    urls: ['postgres://pawl@db/pawl?sslmode=verify-full'],
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

test.each(['prefer', 'require', 'verify-ca'])(
  'sslmode=%s is what node-postgres takes it for, unless libpq is to be followed',
  (mode) => {
    expect(parseDatabaseUrl(`postgres://db/pawl?a=b&sslmode=${mode}&sslcert=c`)?.urls).toEqual([
      'postgres://db/pawl?a=b&sslmode=verify-full&sslcert=c',
    ])
    const libpq = `postgres://db/pawl?sslmode=${mode}&uselibpqcompat=true`
    expect(parseDatabaseUrl(libpq)?.urls).toEqual([libpq])
  },
)

test.each([
  ['sslmode=banana', /^has an option sslmode that is none of disable, no-verify, prefer, require, verify-ca, verify-full$/],
  ['sslmode=', /^has an option sslmode that is none of/],
  ['sslmode=allow', /^has an option sslmode that is none of/],
  ['sslmode=Require', /^has an option sslmode that is none of/],
  ['sslmode=verify-full%20', /^has an option sslmode that is none of/],
  ['ssl=false', /^has an option ssl that is none of true, 1, 0, no-verify$/],
  ['sslnegotiation=tls', /^has an option sslnegotiation that is none of postgres, direct$/],
  ['SSLMODE=verify-full', /^has no option "SSLMODE"; TLS has sslmode, /],
  ['slmode=verify-full', /^has no option "slmode"/],
  ['ssl-mode=REQUIRED', /^has no option "ssl-mode"/],
  ['tls=true', /^has no option "tls"/],
  ['sslcrl=/crl.pem', /^has no option "sslcrl"/],
  ['sslmode=verify-full&sslmode=disable', /^has the option sslmode twice$/],
  ['sslmode=verify-ca&uselibpqcompat=true', /^has sslmode=verify-ca without sslrootcert/],
])('?%s would not give the TLS that it asks for', (options, problem) => {
  expect(findTlsProblem(`postgres://h1,h2/pawl?application_name=x&${options}`)).toMatch(problem)
})

test.each([
  '',
  'sslmode=disable',
  'sslmode=no-verify',
  'sslmode=verify-full&sslrootcert=/ca.pem&sslcert=/c.pem&sslkey=/k.pem',
  'sslmode=require&channel_binding=require&gssencmode=disable',
  'ssl=true&sslnegotiation=direct',
  'sslmode=verify-ca&uselibpqcompat=true&sslrootcert=/ca.pem',
  'target_session_attrs=read-write&options=-c%20search_path%3Dx',
])('?%s is as it should be', (options) => {
  expect(findTlsProblem(`postgres://h1,h2/pawl?${options}`)).toBeUndefined()
})
