// Envelopes that a phone sends to the bank's own endpoints, and what the bank makes of them (cloud §13).
import type { HttpReply } from '../../phone/http.ts'
import { sendJson } from '../../phone/http.ts'
import { encryptionHeader, prepareSigned, seal } from '../../phone/v3/channel.ts'
import { bytesOf } from '../../phone/v3/crypto.ts'
import type { EnvelopeOptions, PhoneScope, SignOptions } from '../../phone/v3/state.ts'
import type { VirtualPhone } from '../../phone/v3/virtual-phone.ts'
import { prepareV4Signed, sealV4, v4EncryptionHeader } from '../../phone/v4/channel.ts'
import type { V4EnvelopeOptions } from '../../phone/v4/state.ts'
import { type Bank, basicAuthorization } from './bank.ts'
import { PHONE_ADDRESS, RESOURCE } from './door.ts'
import { expectOk } from './world.ts'
import type { PhoneV4 } from './world-v4.ts'

export type AnyPhone = VirtualPhone | PhoneV4

/** An envelope as a back end tells a door of it. */
export interface SentEnvelope {
  readonly body: Readonly<Record<string, unknown>>
  /** Opens the answer as the phone does; throws when something is wrong with it. */
  readonly open: (answer: unknown) => string
}

const isV4 = (phone: AnyPhone): phone is PhoneV4 => 'algorithm' in phone.options

/** What a phone encrypts for the bank with the generic label of a scope. */
export async function sealForBank(
  phone: AnyPhone,
  plaintext: string,
  { scope = 'activation', ...options }: { readonly scope?: PhoneScope } & EnvelopeOptions & V4EnvelopeOptions = {},
): Promise<SentEnvelope> {
  const sealed = await sealWith(phone, `/pa/generic/${scope}`, scope, plaintext, options)
  const headers = isV4(phone) ? v4EncryptionHeader(phone, scope) : encryptionHeader(phone, scope)
  return toDoor(sealed, { scope: scope.toUpperCase(), encryption: Object.values(headers)[0] })
}

/** The same under a label of pawl's own. */
export async function sealUnderLabel(phone: AnyPhone, label: string): Promise<SentEnvelope> {
  const headers = isV4(phone) ? v4EncryptionHeader(phone, 'activation') : encryptionHeader(phone, 'activation')
  return toDoor(await sealWith(phone, label, 'activation', '{}', {}), {
    scope: 'ACTIVATION',
    encryption: Object.values(headers)[0],
  })
}

/** Signed and encrypted: the code covers the plaintext. Preparing it moves the counter of the phone. */
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

/** Any call of `/encryption`. */
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

/** What the bank is answered; throws when it is an error. */
export const openAt = async (bank: Bank, { body }: SentEnvelope, more: object = {}, key?: string): Promise<OpenedAnswer> =>
  expectOk(await callEncryption(bank, 'open', { ...body, ...more }, key)).json as OpenedAnswer

export const textOf = ({ plaintext }: OpenedAnswer): string | undefined =>
  plaintext === undefined ? undefined : Buffer.from(plaintext, 'base64').toString('utf8')

/** Asks for the envelope of an answer. */
export const sealAt = (bank: Bank, sealTicket: unknown, text: string): Promise<HttpReply> =>
  callEncryption(bank, 'seal', { sealTicket, plaintext: Buffer.from(text).toString('base64') })
