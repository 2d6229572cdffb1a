// Reads an envelope from headers and body, without opening it.
import { parseJson } from '../../http/raw-body.ts'
import { type ErrorCode, PawlError } from '../../lib/errors.ts'
import type { EncryptionHeader, Envelope, EnvelopeContext, Protocol, Scope } from '../../protocol/protocol.ts'
import { refusalOr } from './parse.ts'
import { readAnyAuthorization, type Received } from './receive.ts'

/** Scope and label of an endpoint's envelopes. */
export interface EnvelopePlace {
  readonly scope: Scope
  /** The label of the endpoint without version (v3 §6.1). */
  readonly sharedInfo1: string
}

/** The parsed encryption header; undefined without one, and for one that this generation cannot parse. */
export function readEncryption({ headers }: Received, protocol: Protocol): EncryptionHeader | undefined {
  return headers.encryption === undefined ? undefined : protocol.parseEncryptionHeader(headers.encryption, headers.schemes)
}

/** Version, application key and activation of the header (v3 §5.3). Refuses a request without header, and a header of the other scope. */
export function findContext(
  header: EncryptionHeader | undefined,
  { scope, sharedInfo1 }: EnvelopePlace,
  code: ErrorCode,
): EnvelopeContext {
  if (header === undefined) throw new PawlError(code, { detail: 'no encryption context' })
  const { version, applicationKey, activationId } = header
  if ((scope === 'ACTIVATION_SCOPE') !== (activationId !== undefined))
    throw new PawlError(code, { detail: 'wrong encryption scope' })
  return { version, scope, sharedInfo1, applicationKey, activationId }
}

/**
 * Reads the body as an envelope (v3 §6.5, v4 §5.2). Throws `code` for an empty body and a malformed envelope, REQUEST_INVALID for a body that
 * is not JSON.
 */
export function readEnvelope(protocol: Protocol, context: EnvelopeContext, body: Uint8Array, code: ErrorCode): Envelope {
  if (body.length === 0) throw new PawlError(code, { detail: 'no body' })
  return parseEnvelope(protocol, context, parseJson(body), code)
}

/**
 * Reads the envelope of a request without a code, with the context from its authorization or encryption header. Throws `malformed` for a malformed
 * authorization header, and otherwise the errors of findContext and readEnvelope.
 */
export function readUnsignedEnvelope(
  received: Received,
  place: EnvelopePlace,
  code: ErrorCode,
  malformed = code,
): { readonly context: EnvelopeContext; readonly envelope: Envelope } {
  const { protocol, request } = received
  const header = readAnyAuthorization(received, malformed) ?? readEncryption(received, protocol)
  const context = findContext(header, place, code)
  return { context, envelope: readEnvelope(protocol, context, request.body, code) }
}

/**
 * Reads an envelope that a code covers. For bytes that are not JSON it returns the error instead of throwing it. The caller throws it after the check
 * of the code, because only the owner of the activation may learn the fault.
 */
export function readSignedEnvelope(
  protocol: Protocol,
  context: EnvelopeContext,
  body: Uint8Array,
  code: ErrorCode,
): Envelope | PawlError {
  if (body.length === 0) throw new PawlError(code, { detail: 'no body' })
  const json = refusalOr(() => parseJson(body))
  return json instanceof PawlError ? json : parseEnvelope(protocol, context, json, code)
}

/** Parses a JSON value as an envelope. Refuses a malformed one. */
export function parseEnvelope(protocol: Protocol, context: EnvelopeContext, json: unknown, code: ErrorCode): Envelope {
  const envelope = protocol.parseEnvelope(context, json)
  if (envelope === undefined) throw new PawlError(code, { detail: 'the envelope is not well-formed' })
  return envelope
}
