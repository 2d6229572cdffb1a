// Tests the content of a remembered phone, and how many phones are remembered.
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { createCaches } from '../../lib/memory.ts'
import type { ActivationRow } from '../activation/find.ts'
import { createRecentPhones } from './recent-phones.ts'
import type { VersionRow } from '../application/version.ts'

const version: VersionRow = {
  applicationKey: 'application key',
  name: 'default',
  applicationId: 'bank',
  applicationSecret: Buffer.from('sealed secret'),
  isSupported: true,
  minimumVersion: '3.1',
  algorithms: ['EC_P384'],
  isProtocol3Admitted: true,
  roles: ['ROLE'],
}
const active: ActivationRow = {
  activationId: 'phone',
  applicationId: 'bank',
  userId: 'José Ω',
  state: 'ACTIVE',
  blockExpiresAt: null,
  isBlockOver: false,
  protocolVersion: 3,
  algorithm: null,
  isConfirmationPending: false,
  isBiometryEnabled: null,
  masterSecret: Buffer.from('master secret'),
  ctrData: Buffer.from('counter'),
  counter: 7,
  failedAttempts: 2,
  maxFailedAttempts: 5,
  blocksInRow: 1,
  highestVersion: '3.3',
  name: 'Phone of "José"',
  rowVersion: 12,
  expiresAt: new Date(1_800_000_000_123),
  flags: 'VIP,ÚČET',
  blockedReason: null,
}
const waiting: ActivationRow = {
  ...active,
  state: 'BLOCKED',
  blockExpiresAt: new Date(1_800_000_000_456),
  isBlockOver: true,
  protocolVersion: 4,
  algorithm: 'EC_P384_ML_L3',
  isConfirmationPending: true,
  isBiometryEnabled: false,
  masterSecret: null,
  ctrData: null,
  highestVersion: null,
  name: null,
  flags: '',
  blockedReason: 'MAX_FAILED_ATTEMPTS',
}
const events = { counterWentBack: () => undefined }

test.each([
  ['active', active],
  ['waiting', waiting],
])('a phone that is %s is recalled as it was remembered, under its application key alone', (_, activation) => {
  const phones = createRecentPhones(events)
  phones.remember({ version, activation })
  const { applicationKey } = version
  expect(phones.recall({ applicationKey, activationId: 'phone' })).toStrictEqual({ version, activation })
  expect(phones.recall({ applicationKey: 'other', activationId: 'phone' })).toEqual({})
  expect(phones.recall({ applicationKey, activationId: 'other' })).toEqual({})
})

test('a phone has the version that its acceptance had, also when other phones have another', () => {
  const phones = createRecentPhones(events)
  const recallVersion = (activationId: string) => phones.recall({ applicationKey: version.applicationKey, activationId }).version
  const changed = { ...version, minimumVersion: '3.3' }
  phones.remember({ version, activation: active })
  phones.remember({ version: changed, activation: { ...active, activationId: 'second' } })
  phones.remember({ version: { ...changed, applicationSecret: Buffer.from('sealed secret') }, activation: waiting })
  expect([recallVersion('phone'), recallVersion('second')]).toEqual([changed, changed])
  expect(recallVersion('phone')).toBe(recallVersion('second'))
})

test('a phone is not recalled when more versions than are remembered came after its own, and not under another one', () => {
  const phones = createRecentPhones(events)
  phones.remember({ version, activation: active })
  for (let i = 0; i < 1_001; i += 1)
    phones.remember({ version: { ...version, applicationKey: String(i) }, activation: { ...active, activationId: String(i) } })
  const recallVersion = (applicationKey: string, activationId: string) => phones.recall({ applicationKey, activationId }).version
  expect(recallVersion(version.applicationKey, 'phone')).toBeUndefined()
  expect(recallVersion('1000', '1000')?.applicationKey).toBe('1000')
  phones.remember({ version, activation: active })
  expect(recallVersion(version.applicationKey, 'phone')).toEqual(version)
})

test('a phone is recalled again after its next acceptance, however often the version of another app changed', () => {
  const phones = createRecentPhones(events)
  phones.remember({ version, activation: active })
  for (let i = 0; i < 1_001; i += 1)
    phones.remember({ version: { ...version, applicationKey: 'other', minimumVersion: String(i) }, activation: waiting })
  phones.remember({ version, activation: active })
  expect(phones.recall({ applicationKey: version.applicationKey, activationId: 'phone' })).toEqual({
    version,
    activation: active,
  })
})

test('what was read takes the place of what was known, unless an acceptance took it meanwhile', () => {
  const phones = createRecentPhones(events)
  phones.remember({ version, activation: active })
  const known = phones.latest('phone')
  const activation = { ...active, name: 'renamed', rowVersion: 13 }
  const read = { version, activation: { ...activation, serverPrivateKey: Buffer.from('sealed key') } }
  expect(phones.renew(known, read)).toEqual(read)
  const { applicationKey } = version
  expect(phones.recall({ applicationKey, activationId: 'phone' })).toEqual({ version, activation })
  const accepted = { version, activation: { ...active, counter: 8, ctrData: Buffer.from('next'), rowVersion: 14 } }
  const asked = phones.latest('phone')
  phones.remember(accepted)
  phones.renew(asked, read)
  expect(phones.recall({ applicationKey, activationId: 'phone' })).toEqual(accepted)
})

test('the highest version of the protocol that was known stays, however often a row with a lower one is read', () => {
  const phones = createRecentPhones(events)
  phones.remember({ version, activation: { ...active, protocolVersion: 4, highestVersion: '4.0' } })
  const read = (highestVersion: string | null) =>
    phones.renew(phones.latest('phone'), {
      version,
      activation: { ...active, highestVersion, serverPrivateKey: Buffer.from('sealed key') },
    }).activation?.highestVersion
  expect([read('3.3'), read(null), read('4.1'), read('4.0')]).toEqual(['4.0', '4.0', '4.1', '4.1'])
})

// Lengths of the sealed KEY_MASTER_SECRET and CTR_DATA, and of the phone's name.
test.each([
  ['of protocol 3', [49, 49, 30], 100_000],
  ['of 4.0', [65, 65, 30], 100_000],
  // A phone with such a name is kept as an object on the heap, and at most a thousand are.
  ['with long names', [49, 49, 1_000], 1_000],
] as const)('of phones %s the newest are remembered', (_, [masterSecret, ctrData, name], count) => {
  const caches = createCaches()
  const phones = createRecentPhones(events, caches)
  const activation = {
    ...active,
    masterSecret: Buffer.alloc(masterSecret, 'm'),
    ctrData: Buffer.alloc(ctrData, 'c'),
    name: 'x'.repeat(name),
  }
  const ids = Array.from({ length: 101_000 }, () => randomUUID())
  for (const activationId of ids) phones.remember({ version, activation: { ...activation, activationId } })
  expect(caches.list()).toMatchObject([{ name: 'recent_phones', entries: 100_000, entriesMax: 100_000 }])
  const found = ids.map((activationId) => phones.latest(activationId) !== undefined)
  expect(found).toEqual(ids.map((_id, i) => i >= ids.length - count))
})
