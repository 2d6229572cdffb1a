// Envelopes of 4.0 (v4 §5): what the phone seals opens, one flipped bit does not, and no JSON value makes the parser throw.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { toBase64 } from '../../src/lib/base64.ts'
import type { EnvelopeContext } from '../../src/protocol/protocol.ts'
import { deriveAeadKeys, openAead, sealAead } from '../../src/protocol/v4/aead.ts'
import { parseEnvelope } from '../../src/protocol/v4/envelope.ts'
import { importKdfKey, importSharedInfo2Key } from '../../src/protocol/v4/key-schedule.ts'
import { sealV4Envelope } from '../../phone/v4/envelope.ts'

const TIMESTAMP = 1_735_689_600_000
const ACTIVATION_ID = 'a5a49895-c0cf-4d5b-bcd3-943413d2c688'
const KEY_ID = '52f54f6b-6fb6-4029-a840-76236dfd1c40'
const applicationSecret = toBase64(Buffer.alloc(16, 7))
const applicationKey = toBase64(Buffer.alloc(16, 3))
const keySharedInfo2 = Buffer.alloc(32, 9)
const secret = Buffer.alloc(32, 11)

function prepare(isActivationScope: boolean) {
  const context: EnvelopeContext = {
    version: '4.0',
    scope: isActivationScope ? 'ACTIVATION_SCOPE' : 'APPLICATION_SCOPE',
    sharedInfo1: '/pa/generic',
    applicationKey,
    activationId: isActivationScope ? ACTIVATION_ID : undefined,
  }
  const phone = {
    label: '/pa/generic',
    applicationKey,
    applicationSecret,
    temporaryKey: { id: KEY_ID, secret },
    ...(isActivationScope && { activationId: ACTIVATION_ID, keySharedInfo2 }),
  }
  const activationKeys = isActivationScope ? { keyE2eeSharedInfo2: () => importSharedInfo2Key(keySharedInfo2) } : undefined
  return { context, phone, keys: { applicationSecret, envelopeKey: importKdfKey(secret), activationKeys } }
}

const bytes = (maxLength: number) => fc.uint8Array({ maxLength })

describe('envelopes of 4.0', () => {
  test('what the phone seals opens, and the phone opens the answer', () => {
    fc.assert(
      fc.property(fc.boolean(), bytes(300), bytes(300), (isActivationScope, plaintext, answer) => {
        const { context, phone, keys } = prepare(isActivationScope)
        const { envelope, open } = sealV4Envelope(phone, plaintext, TIMESTAMP)
        const parsed = parseEnvelope(context, envelope)
        expect([parsed?.temporaryKeyId, parsed?.timestamp]).toEqual([KEY_ID, TIMESTAMP])
        const opened = parsed?.open(keys)
        expect([...(opened?.plaintext ?? [])]).toEqual([...plaintext])
        const sealed = opened?.seal(answer, { nonce: Buffer.alloc(16, 5), timestamp: TIMESTAMP + 1 })
        expect([...open(JSON.parse(JSON.stringify(sealed)))]).toEqual([...answer])
      }),
      { numRuns: 60 },
    )
  })

  test('one flipped bit in a byte string, another timestamp or another key id is refused', () => {
    const names = ['encryptedData', 'nonce', 'timestamp', 'temporaryKeyId']
    fc.assert(
      fc.property(fc.boolean(), bytes(100), fc.constantFrom(...names), fc.nat(), (isActivationScope, plaintext, name, where) => {
        const { context, phone, keys } = prepare(isActivationScope)
        const { envelope } = sealV4Envelope(phone, plaintext, TIMESTAMP)
        const changed = { ...envelope, [name]: name === 'temporaryKeyId' ? ACTIVATION_ID : flip(envelope[name], where) }
        expect(parseEnvelope(context, changed)?.open(keys)).toBeUndefined()
      }),
      { numRuns: 150 },
    )
  })

  test('another label, application key, secret, activation, scope or key is refused', () => {
    const { context, phone, keys } = prepare(true)
    const { envelope } = sealV4Envelope(phone, Buffer.from('{}'), TIMESTAMP)
    const open = (change: Partial<EnvelopeContext>, other: Partial<typeof keys> = {}) =>
      parseEnvelope({ ...context, ...change }, envelope)?.open({ ...keys, ...other }) !== undefined
    expect(open({})).toBe(true)
    expect(open({ sharedInfo1: '/pa/other' })).toBe(false)
    expect(open({ applicationKey: applicationSecret })).toBe(false)
    expect(open({ activationId: '2fb93e68-8622-4b8f-9014-80e561cc556d' })).toBe(false)
    expect(open({ scope: 'APPLICATION_SCOPE', activationId: undefined })).toBe(false)
    expect(open({}, { applicationSecret: toBase64(Buffer.alloc(16)) })).toBe(false)
    expect(open({}, { envelopeKey: importKdfKey(Buffer.alloc(32)) })).toBe(false)
    expect(open({}, { activationKeys: { keyE2eeSharedInfo2: () => importSharedInfo2Key(Buffer.alloc(32)) } })).toBe(false)
  })

  test('another version of the context is no envelope of 4.0', () => {
    const { context, phone } = prepare(false)
    const { envelope } = sealV4Envelope(phone, Buffer.from('{}'), TIMESTAMP)
    for (const version of ['3.3', '4', '4.1', '']) expect(parseEnvelope({ ...context, version }, envelope)).toBeUndefined()
  })

  test('a nonce with equal halves, or one that is not that of the sealed bytes, is refused', () => {
    const { context, phone } = prepare(false)
    const seal = (nonce: Uint8Array) => sealV4Envelope(phone, Buffer.from('{}'), TIMESTAMP, nonce).envelope
    const [half, other] = [Buffer.alloc(12, 1), Buffer.alloc(12, 2)]
    expect(parseEnvelope(context, seal(Buffer.concat([half, other])))).toBeDefined()
    expect(parseEnvelope(context, seal(Buffer.concat([half, half])))).toBeUndefined()
    const swapped = { ...seal(Buffer.concat([half, other])), nonce: toBase64(Buffer.concat([other, half])) }
    expect(parseEnvelope(context, swapped)).toBeUndefined()
  })

  test('a member that is missing, null or of a wrong form is refused; others are ignored', () => {
    const { context, phone } = prepare(false)
    const { envelope } = sealV4Envelope(phone, new Uint8Array(0), TIMESTAMP)
    expect(parseEnvelope(context, { ...envelope, unknown: 1, mac: null })).toBeDefined()
    for (const name of Object.keys(envelope)) {
      for (const value of [null, undefined, '', 'x', -1, 1.5, 2 ** 53, String(envelope[name]).slice(4), [], {}])
        expect(parseEnvelope(context, { ...envelope, [name]: value }), `${name} ${String(value)}`).toBeUndefined()
    }
    expect(parseEnvelope(context, { ...envelope, timestamp: String(TIMESTAMP) })).toBeUndefined()
  })

  test('the value that may be used once is another for another nonce or another key', () => {
    const { context, phone } = prepare(false)
    const valueOf = (id: string, fill: number) => {
      const temporaryKey = { id, secret }
      const nonce = Buffer.concat([Buffer.alloc(12, fill), Buffer.alloc(12, 99)])
      const { envelope } = sealV4Envelope({ ...phone, temporaryKey }, Buffer.from('{}'), TIMESTAMP, nonce)
      return toBase64(parseEnvelope(context, envelope)?.uniqueValue ?? new Uint8Array(0))
    }
    expect(valueOf(KEY_ID, 1)).toBe(valueOf(KEY_ID, 1))
    expect(new Set([valueOf(KEY_ID, 1), valueOf(KEY_ID, 2), valueOf(ACTIVATION_ID, 1)]).size).toBe(3)
  })

  test('arbitrary JSON never throws and never opens', () => {
    const member = fc.oneof(fc.jsonValue(), fc.base64String())
    const members = { encryptedData: member, nonce: member, timestamp: member, temporaryKeyId: member }
    const json = fc.oneof(fc.jsonValue(), fc.record(members, { requiredKeys: [] }))
    fc.assert(
      fc.property(fc.boolean(), json, (isActivationScope, value) => {
        const { context, keys } = prepare(isActivationScope)
        expect(parseEnvelope(context, value)?.open(keys)).toBeUndefined()
      }),
      { numRuns: 300 },
    )
  })
})

describe('the AEAD', () => {
  test('opens what it sealed, and nothing that was changed or cut', () => {
    fc.assert(
      fc.property(bytes(64), bytes(40), bytes(90), fc.nat(), (context, associatedData, plaintext, where) => {
        const keys = deriveAeadKeys(importKdfKey(secret), context)
        const sealed = Buffer.from(sealAead(keys, Buffer.alloc(12, 4), associatedData, plaintext))
        expect(sealed).toHaveLength(44 + plaintext.length)
        expect([...(openAead(keys, associatedData, sealed) ?? [])]).toEqual([...plaintext])
        expect(openAead(keys, associatedData, sealed.subarray(0, where % sealed.length))).toBeUndefined()
        expect(openAead(keys, Buffer.concat([associatedData, Buffer.of(0)]), sealed)).toBeUndefined()
        const other = deriveAeadKeys(importKdfKey(secret), Buffer.concat([context, Buffer.of(0)]))
        expect(openAead(other, associatedData, sealed)).toBeUndefined()
      }),
      { numRuns: 60 },
    )
  })
})

function flip(value: string | number | undefined, where: number): string | number {
  if (typeof value !== 'string') return (value ?? 0) + 1
  const changed = Buffer.from(value, 'base64')
  const index = where % changed.length
  changed.writeUInt8(changed.readUInt8(index) ^ (1 << (where % 8)), index)
  return toBase64(changed)
}
