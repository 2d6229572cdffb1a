// Tests secrets at rest: a sealed value opens only in its own place.
import { randomBytes } from 'node:crypto'
import { describe, expect, test, vi } from 'vitest'
import { generateKeyPair } from '../../crypto/key.ts'
import { generateMlDsaKeyPair } from '../../crypto/mldsa.ts'
import { createCaches } from '../../lib/memory.ts'
import { keyIdOf } from '../../lib/sealed-value.ts'
import { createRecordKeys, type Place, SealedRecordError } from './record-keys.ts'

const platform = { randomBytes: (length: number) => randomBytes(length) }
const masterKey = randomBytes(32)
const keys = createRecordKeys([masterKey], platform)
const place: Place = { table: 'token', column: 'token_secret', row: 'a' }
const secret = randomBytes(16)

describe('a sealed record', () => {
  test('opens in its place, also in another process with the same master key', () => {
    const sealed = keys.seal(place, secret)
    expect(keys.open(place, sealed)).toEqual(secret)
    expect(createRecordKeys([masterKey], platform).open(place, sealed)).toEqual(secret)
  })

  test('does not contain the plaintext and differs each time', () => {
    const sealed = Buffer.from(keys.seal(place, secret))
    expect(sealed.includes(secret)).toBe(false)
    expect(sealed.equals(keys.seal(place, secret))).toBe(false)
  })

  test.each([
    ['table', { ...place, table: 'activation' }],
    ['column', { ...place, column: 'other' }],
    ['row', { ...place, row: 'b' }],
  ])('does not open in another %s', (_name, other) => {
    expect(() => keys.open(other, keys.seal(place, secret))).toThrow(SealedRecordError)
  })

  test('does not open under another master key', () => {
    expect(() => createRecordKeys([randomBytes(32)], platform).open(place, keys.seal(place, secret))).toThrow(SealedRecordError)
  })

  test('does not open when any bit was changed', () => {
    const sealed = Buffer.from(keys.seal(place, secret))
    for (let bit = 0; bit < sealed.length * 8; bit += 1) {
      const altered = Buffer.from(sealed)
      altered[bit >> 3] = (altered[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      expect(() => keys.open(place, altered)).toThrow(SealedRecordError)
    }
  })

  test('does not open when it was cut', () => {
    const sealed = keys.seal(place, secret)
    for (const length of [0, 1, 5, 16, 17, 33, sealed.length - 1]) {
      expect(() => keys.open(place, sealed.subarray(0, length))).toThrow(SealedRecordError)
    }
  })
})

describe('of several master keys', () => {
  const [older, newer] = [randomBytes(32), randomBytes(32)] as const

  test('the first seals and all open; a record names its own', () => {
    const before = createRecordKeys([older], platform)
    const prepared = createRecordKeys([older, newer], platform)
    const activated = createRecordKeys([newer, older], platform)
    const after = createRecordKeys([newer], platform)
    expect(prepared.keyIds).toEqual([...before.keyIds, ...after.keyIds])
    expect(activated.keyIds).toEqual([...after.keyIds, ...before.keyIds])
    for (const sealer of [before, prepared, activated, after]) {
      const sealed = sealer.seal(place, secret)
      expect(keyIdOf(sealed)).toBe(sealer.keyIds[0])
      expect(prepared.open(place, sealed)).toEqual(secret)
      expect(activated.open(place, sealed)).toEqual(secret)
    }
    expect(() => after.open(place, before.seal(place, secret))).toThrow(SealedRecordError)
    expect(() => before.open(place, activated.seal(place, secret))).toThrow(SealedRecordError)
  })

  test('a record does not open under another of them than it names', () => {
    const both = createRecordKeys([newer, older], platform)
    const sealed = Buffer.from(both.seal(place, secret))
    sealed.write(both.keyIds[1] ?? '', 1, 'hex')
    expect(() => both.open(place, sealed)).toThrow(SealedRecordError)
  })

  test('one that is given twice is one', () => {
    expect(createRecordKeys([newer, newer, older, newer], platform).keyIds).toHaveLength(2)
  })
})

describe('a master key that is not given', () => {
  const told: { keyId: string; record: string }[] = []
  const others = createRecordKeys([randomBytes(32)], platform, { onMissingKey: (fields) => told.push(fields) })
  const isAltered = (sealed: Uint8Array, row: string): boolean => {
    try {
      others.open({ ...place, row }, sealed)
    } catch (error) {
      if (error instanceof SealedRecordError) return error.isAltered
    }
    throw new Error('it was opened, or failed otherwise')
  }

  test('is told once, with the first record that names it', () => {
    for (const row of ['a', 'b', 'c']) expect(isAltered(keys.seal({ ...place, row }, secret), row)).toBe(false)
    expect(told).toEqual([{ keyId: keys.keyIds[0], record: 'token.token_secret of a' }])
  })

  test('is named by no record that was cut', () => {
    const sealed = keys.seal(place, secret)
    for (const length of [1, 4, 5, 32]) expect(isAltered(sealed.subarray(0, length), 'a')).toBe(true)
  })

  test('is told for a hundred ids at the most', () => {
    for (let i = 0; i < 200; i += 1) isAltered(createRecordKeys([randomBytes(32)], platform).seal(place, secret), 'a')
    expect(told).toHaveLength(100)
  })
})

test('the error names the place and no byte of the record', () => {
  const sealed = keys.seal(place, secret)
  const describeError = () => keys.open({ ...place, row: 'b' }, sealed)
  expect(describeError).toThrow('cannot open the sealed record token.token_secret of b')
})

test('a cached value is built once for the same bytes and again for new ones', () => {
  const build = (plaintext: Uint8Array) => ({ plaintext })
  const sealed = keys.seal(place, secret)
  const first = keys.openCached(place, sealed, build)
  expect(keys.openCached(place, Buffer.from(sealed), build)).toBe(first)
  const other = randomBytes(16)
  expect(keys.openCached(place, keys.seal(place, other), build).plaintext).toEqual(other)
})

test('a cached value is found by a copy of the bytes, which keeps nothing of the memory that they were read into', () => {
  const sealed = keys.seal({ ...place, row: 'copied' }, secret)
  const read = Buffer.concat([sealed, Buffer.alloc(1000)]).subarray(0, sealed.length)
  const first = keys.openCached({ ...place, row: 'copied' }, read, (plaintext) => ({ plaintext }))
  read.fill(0)
  expect(keys.openCached({ ...place, row: 'copied' }, sealed, (plaintext) => ({ plaintext }))).toBe(first)
})

test('bytes are built once for the same sealed ones and again for new ones, and who gets them may overwrite them', () => {
  const own = createRecordKeys([masterKey], platform)
  const build = vi.fn((plaintext: Uint8Array) => Buffer.concat([plaintext, plaintext]))
  const expected = Buffer.concat([secret, secret])
  const sealed = own.seal(place, secret)
  for (let i = 0; i < 3; i += 1) {
    const bytes = own.openCached(place, Buffer.from(sealed), build, { areBytes: true })
    expect(Buffer.from(bytes)).toEqual(expected)
    bytes.fill(0)
  }
  expect(build).toHaveBeenCalledTimes(1)
  const other = randomBytes(16)
  const sealedOther = own.seal(place, other)
  expect(Buffer.from(own.openCached(place, sealedOther, build, { areBytes: true }))).toEqual(Buffer.concat([other, other]))
  expect(Buffer.from(own.openCached(place, sealed, build, { areBytes: true }))).toEqual(expected)
  expect(build).toHaveBeenCalledTimes(3)
})

test('bytes are not taken for those of an altered, a cut or a longer record, or of another row', () => {
  const own = createRecordKeys([masterKey], platform)
  const build = (plaintext: Uint8Array) => Buffer.from(plaintext)
  const sealed = own.seal(place, secret)
  own.openCached(place, sealed, build, { areBytes: true })
  const altered = Buffer.from(sealed)
  altered[20] = (altered[20] ?? 0) ^ 1
  for (const other of [altered, sealed.subarray(0, -1), sealed.subarray(0, 0), Buffer.concat([sealed, secret.subarray(0, 1)])])
    expect(() => own.openCached(place, other, build, { areBytes: true })).toThrow(SealedRecordError)
  expect(() => own.openCached({ ...place, row: 'b' }, sealed, build, { areBytes: true })).toThrow(SealedRecordError)
})

test('what was built in one form is not taken for what another one needs', () => {
  const build = (plaintext: Uint8Array) => ({ plaintext })
  const sealed = keys.seal(place, secret)
  const made = keys.openCached(place, sealed, build, { form: 'made' })
  expect(keys.openCached(place, Buffer.from(sealed), build, { form: 'made' })).toBe(made)
  expect(keys.openCached(place, sealed, build)).not.toBe(made)
  expect(keys.openCached(place, keys.seal(place, secret), build, { form: 'made' })).not.toBe(made)
})

test('what was built is let go of soon after its end, the rest is kept', () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  try {
    const caches = createCaches()
    const own = createRecordKeys([masterKey], platform, { caches })
    let now = 1_000
    const stop = caches.startForgetting(() => now)
    const build = (plaintext: Uint8Array) => ({ plaintext })
    const ending = own.seal(place, secret)
    own.openCached(place, ending, build, { until: 2_000 })
    const other = own.seal({ ...place, row: 'b' }, secret)
    own.openCached({ ...place, row: 'b' }, other, build, { until: 2_001 })
    own.openCached({ ...place, row: 'c' }, own.seal({ ...place, row: 'c' }, secret), build)
    const entries = () => caches.list().find(({ name }) => name === 'opened_records')?.entries
    vi.advanceTimersByTime(5_000)
    expect(entries()).toBe(3)
    now = 2_000
    vi.advanceTimersByTime(5_000)
    expect(entries()).toBe(2)
    expect(own.openCached(place, ending, build)).toEqual({ plaintext: secret })
    stop()
    now = 9_000
    vi.advanceTimersByTime(5_000)
    expect(entries()).toBe(3)
  } finally {
    vi.useRealTimers()
  }
})

test.each([
  ['P-256', generateKeyPair('P-256').privateKey, 1_500, 2_000],
  ['ML-DSA-65', generateMlDsaKeyPair('ML-DSA-65').privateKey, 400, 500],
  ['ML-DSA-87', generateMlDsaKeyPair('ML-DSA-87').privateKey, 300, 400],
])('of keys of %s as many are kept as 16 MiB hold', (_, key, least, most) => {
  const caches = createCaches()
  const own = createRecordKeys([masterKey], platform, { caches })
  for (let i = 0; i < 5_000; i += 1) {
    const at = { ...place, row: String(i) }
    own.openCached(at, own.seal(at, secret), () => ({ key }))
  }
  const entries = caches.list().find(({ name }) => name === 'opened_records')?.entries
  expect(entries).toBeGreaterThan(least)
  expect(entries).toBeLessThan(most)
})
