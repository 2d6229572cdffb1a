// Makes and reads tickets of envelopes that were opened for the bank (cloud §13.2). A ticket has all values for sealing the one answer. Any process
// can read it, but only for the caller that had the envelope opened. No row is stored for it.
//
//   ticket = form ‖ ticket id (16) ‖ nonce (12) ‖ ciphertext ‖ tag (16), as base64url
//
// The key of a ticket is HMAC-SHA-256(key of the installation, "ticket" ‖ ticket id). Answer hashes and nonces come from the same key.
import type { KeyObject } from 'node:crypto'
import { aesGcmOpen, aesGcmSeal } from '../../crypto/aes.ts'
import { hmac, sha256 } from '../../crypto/hash.ts'
import { parseBase64Url, toBase64Url } from '../../lib/base64.ts'
import { asBuffer, concat, concatWithSizes, splitBySizes, u64, utf8 } from '../../lib/bytes.ts'
import type { Platform } from '../../lib/platform.ts'
import { encodeTexts } from './row-mac.ts'

/** The content of a ticket. */
interface SealTicket {
  /** The id of the envelope, 16 bytes. Every opening of one envelope gives the same id. */
  readonly ticketId: Uint8Array
  /** The generation of the protocol, for example `v3`. */
  readonly generation: string
  readonly scope: string
  /** The answer keys that the protocol has exported. */
  readonly answerKeys: Uint8Array
  /** Milliseconds since 1970 by the clock of the database, also `expiresAt`. */
  readonly openedAt: number
  readonly expiresAt: number
}

/** The credential and the application that may use a ticket. */
interface TicketHolder {
  readonly username: string
  readonly applicationId: string
}

/** The id of an envelope's ticket, 16 bytes: a hash of its generation, its label and its identity. */
export const ticketIdOf = (generation: string, label: string, identity: Uint8Array): Uint8Array =>
  sha256(concatWithSizes(utf8(generation), utf8(label), identity)).subarray(0, TICKET_ID_BYTES)

/** Seals a ticket for its holder. */
export function issueTicket(
  key: KeyObject,
  { randomBytes }: Pick<Platform, 'randomBytes'>,
  holder: TicketHolder,
  { ticketId, generation, scope, answerKeys, openedAt, expiresAt }: SealTicket,
): string {
  const header = concat(Uint8Array.of(FORM), ticketId)
  const nonce = randomBytes(NONCE_BYTES)
  const content = concatWithSizes(utf8(generation), utf8(scope), u64(openedAt), u64(expiresAt), answerKeys)
  return toBase64Url(concat(header, nonce, aesGcmSeal(ticketKey(key, ticketId), nonce, content, bindTo(header, holder))))
}

/** Reads a ticket of its holder, even an expired one; undefined for any other text. */
export function readTicket(key: KeyObject, holder: TicketHolder, text: string): SealTicket | undefined {
  const bytes = parseBase64Url(text)
  if (bytes?.[0] !== FORM || bytes.length < HEADER_BYTES + NONCE_BYTES) return undefined
  const header = bytes.subarray(0, HEADER_BYTES)
  const ticketId = header.subarray(1)
  const nonce = bytes.subarray(HEADER_BYTES, HEADER_BYTES + NONCE_BYTES)
  const sealed = bytes.subarray(HEADER_BYTES + NONCE_BYTES)
  const content = aesGcmOpen(ticketKey(key, ticketId), nonce, sealed, bindTo(header, holder))
  if (content === undefined) return undefined
  const [generation, scope, openedAt, expiresAt, answerKeys] = splitBySizes(asBuffer(content))
  if (!generation || !scope || !openedAt || !expiresAt || !answerKeys) throw new TypeError('a genuine ticket lacks a part')
  return {
    ticketId,
    generation: generation.toString(),
    scope: scope.toString(),
    answerKeys,
    openedAt: Number(openedAt.readBigUInt64BE()),
    expiresAt: Number(expiresAt.readBigUInt64BE()),
  }
}

/** The hash that identifies an answer under a ticket: HMAC-SHA-256, 32 bytes. */
export const hashAnswer = (key: KeyObject, ticketId: Uint8Array, plaintext: Uint8Array): Uint8Array =>
  hmac(key, concatWithSizes(utf8('answer'), ticketId, plaintext))

/** The nonce of an answer, 16 bytes. The same answer always gets the same nonce under a ticket, every other answer another one. */
export const deriveAnswerNonce = (key: KeyObject, ticketId: Uint8Array, answerHash: Uint8Array): Uint8Array =>
  hmac(key, concatWithSizes(utf8('nonce'), ticketId, answerHash)).subarray(0, 16)

const ticketKey = (key: KeyObject, ticketId: Uint8Array): Uint8Array => hmac(key, concatWithSizes(utf8('ticket'), ticketId))

const bindTo = (header: Uint8Array, { username, applicationId }: TicketHolder): Uint8Array =>
  encodeTexts(header, [applicationId, username])

const FORM = 0x01
const TICKET_ID_BYTES = 16
const HEADER_BYTES = 1 + TICKET_ID_BYTES
const NONCE_BYTES = 12
