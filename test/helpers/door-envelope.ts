// Makes envelopes that a phone sends to endpoints of the bank, and the bank's calls of the doors for envelopes (cloud §13).
import type { HttpReply } from '../../phone/http.ts'
import { sendJson } from '../../phone/http.ts'
import { encryptionHeader, prepareSigned, seal } from '../../phone/v3/channel.ts'
import { bytesOf, type PhoneVersion } from '../../phone/v3/crypto.ts'
import type { EnvelopeOptions, PhoneScope, SignOptions } from '../../phone/v3/state.ts'
import type { VirtualPhone } from '../../phone/v3/virtual-phone.ts'
import { prepareV4Signed, sealV4, v4EncryptionHeader } from '../../phone/v4/channel.ts'
import type { V4EnvelopeOptions } from '../../phone/v4/state.ts'
import { type Bank, basicAuthorization } from './bank.ts'
import { createCaller, PHONE_ADDRESS, RESOURCE } from './door.ts'
import { PHONE_VERSIONS, TESTED_ALGORITHMS } from './phone-versions.ts'
import { expectOk } from './world.ts'
import { type PhoneV4, startWorldV4, type WorldV4 } from './world-v4.ts'

export type AnyPhone = VirtualPhone | PhoneV4

/** What phones are tested with: a version of protocol 3, or an algorithm of 4.0. */
export const VERSIONS = [...PHONE_VERSIONS, ...TESTED_ALGORITHMS]
export type Version = (typeof VERSIONS)[number]
export const isThree = (version: Version): version is PhoneVersion => version.startsWith('3.')

/** Opens a world with two callers: a back end of the bank, and its first tier, which may open envelopes of phones that are not bound. */
export async function startEnvelopeWorld(): Promise<{ readonly v4: WorldV4; readonly bank: Bank; readonly tier: Bank }> {
  const v4 = await startWorldV4()
  const bank = await createCaller(v4.world.bank, 'web-tier', 'verification', v4.world.applicationId)
  const tier = await createCaller(v4.world.bank, 'first-tier', 'integration', v4.world.applicationId)
  expectOk(await v4.world.bank.call('PATCH', '/admin/users/first-tier', { rights: ['envelopes:application'] }))
  return { v4, bank, tier }
}

/** An envelope, with the body of the bank's call. */
export interface SentEnvelope {
  readonly body: Readonly<Record<string, unknown>>
  /** Opens the answer as the phone does; throws when it is wrong. */
  readonly open: (answer: unknown) => string
}

const isV4 = (phone: AnyPhone): phone is PhoneV4 => 'algorithm' in phone.options

/** Encrypts a text for the bank, with the generic label of a scope. */
export async function sealForBank(
  phone: AnyPhone,
  plaintext: string,
  { scope = 'activation', ...options }: { readonly scope?: PhoneScope } & EnvelopeOptions & V4EnvelopeOptions = {},
): Promise<SentEnvelope> {
  const sealed = await sealWith(phone, `/pa/generic/${scope}`, scope, plaintext, options)
  const headers = isV4(phone) ? v4EncryptionHeader(phone, scope) : encryptionHeader(phone, scope)
  return toDoor(sealed, { scope: scope.toUpperCase(), encryption: Object.values(headers)[0] })
}

/** Encrypts `{}` for the bank under a label of a pawl endpoint. */
export async function sealUnderLabel(phone: AnyPhone, label: string): Promise<SentEnvelope> {
  const headers = isV4(phone) ? v4EncryptionHeader(phone, 'activation') : encryptionHeader(phone, 'activation')
  return toDoor(await sealWith(phone, label, 'activation', '{}', {}), {
    scope: 'ACTIVATION',
    encryption: Object.values(headers)[0],
  })
}

/** Signs and encrypts a text for the bank: the code covers the plaintext. The counter of the phone moves. */
export async function signForBank(
  phone: AnyPhone,
  plaintext: string,
  options: SignOptions & EnvelopeOptions & V4EnvelopeOptions = {},
): Promise<SentEnvelope> {
  const sealed = await sealWith(phone, '/pa/generic/activation', 'activation', plaintext, options)
  const request = { path: '/bank', resourceId: RESOURCE, body: bytesOf(plaintext), ...options }
  const { headers } = isV4(phone) ? prepareV4Signed(phone, request) : prepareSigned(phone, request)
  const authorization = headers['X-PowerAuth-Authorization'] ?? headers['X-Svc-Authorization']
  return toDoor(sealed, { scope: 'ACTIVATION', authorization, code: { method: 'POST', resourceId: RESOURCE } })
}

interface Sealed {
  readonly envelope: Readonly<Record<string, string | number>>
  readonly open: (answer: unknown) => Uint8Array
}

const sealWith = (
  phone: AnyPhone,
  label: string,
  scope: PhoneScope,
  plaintext: string,
  options: EnvelopeOptions & V4EnvelopeOptions,
): Promise<Sealed> =>
  isV4(phone) ? sealV4(phone, label, scope, bytesOf(plaintext), options) : seal(phone, label, scope, bytesOf(plaintext), options)

const toDoor = ({ envelope, open }: Sealed, more: Readonly<Record<string, unknown>>): SentEnvelope => ({
  body: { ...more, envelope, client: { address: PHONE_ADDRESS } },
  open: (answer) => Buffer.from(open(answer)).toString('utf8'),
})

/** Calls a door of `/encryption`. */
export const callEncryption = (bank: Bank, door: 'open' | 'seal', body: unknown, key?: string): Promise<HttpReply> =>
  sendJson(bank.url, 'POST', `/encryption/${door}`, body, {
    ...basicAuthorization(bank.credential),
    ...(key !== undefined && { 'Idempotency-Key': key }),
  })

export interface OpenedAnswer extends Readonly<Record<string, unknown>> {
  readonly isOpened: boolean
  readonly plaintext?: string
  readonly sealTicket?: string
  readonly verdict?: Readonly<Record<string, unknown>>
}

/** Has an envelope opened; returns the answer, and throws when it is an error. */
export const openAt = async (bank: Bank, { body }: SentEnvelope, more: object = {}, key?: string): Promise<OpenedAnswer> =>
  expectOk(await callEncryption(bank, 'open', { ...body, ...more }, key)).json as OpenedAnswer

export const textOf = ({ plaintext }: OpenedAnswer): string | undefined =>
  plaintext === undefined ? undefined : Buffer.from(plaintext, 'base64').toString('utf8')

/** Has a text sealed as the answer to an envelope. */
export const sealAt = (bank: Bank, sealTicket: unknown, text: string): Promise<HttpReply> =>
  callEncryption(bank, 'seal', { sealTicket, plaintext: Buffer.from(text).toString('base64') })
