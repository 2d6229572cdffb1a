// Parses the JSON of a body or of a plaintext, and checks it against its schema.
import type { TSchema } from '@sinclair/typebox'
import { parseJson, refuseUnstorable } from '../../http/raw-body.ts'
import type { Parser } from '../../http/validation.ts'
import { type ErrorCode, PawlError } from '../../lib/errors.ts'

/** Parses the body by the schema; an empty body has no members. Throws REQUEST_INVALID if it is not JSON or does not match. */
export const parseBody = <S extends TSchema>(parse: Parser<S>, body: Uint8Array): ReturnType<Parser<S>> =>
  parse(refuseUnstorable(body.length === 0 ? {} : parseJson(body), body))

/** The parsed body of a decision: the id of the operation, and the whole request or the reason why the rest is malformed (REQUEST_INVALID). */
interface ParsedDecision<Request> {
  readonly operationId: string
  readonly input: Request | PawlError
}

/** Parses the body of a decision. Throws REQUEST_INVALID if it is not JSON, and `unnamed` if it names no operation. */
export function parseDecision<S extends TSchema>(
  parseName: (value: unknown) => { readonly requestObject: { readonly id: string } },
  parse: Parser<S>,
  body: Uint8Array,
  unnamed: ErrorCode,
): ParsedDecision<ReturnType<Parser<S>>> {
  const json = body.length === 0 ? {} : parseJson(body)
  const name = refusing(unnamed, () => refuseUnstorable(parseName(json).requestObject.id))
  return { operationId: name.toLowerCase(), input: refusalOr(() => parse(refuseUnstorable(json, body))) }
}

/**
 * Parses the plaintext by the schema; an empty plaintext has no members. Throws `plaintext` if it is not JSON, and `request` if it does not
 * match.
 */
export function parsePlaintext<S extends TSchema>(
  parse: Parser<S>,
  bytes: Uint8Array,
  { plaintext, request = 'REQUEST_INVALID' }: { readonly plaintext: ErrorCode; readonly request?: ErrorCode },
): ReturnType<Parser<S>> {
  const json = bytes.length === 0 ? {} : refusing(plaintext, () => parseJson(bytes))
  return refusing(request, () => parse(refuseUnstorable(json, bytes)))
}

/** The result of `work`, or the refusal that it throws. For input that is read early and refused later. */
export function refusalOr<T>(work: () => T): T | PawlError {
  try {
    return work()
  } catch (error) {
    if (error instanceof PawlError) return error
    throw error
  }
}

/** Gives a failed parse the endpoint's error code. The fault itself stays for the log and, if the API shows them, for the violations. */
function refusing<T>(code: ErrorCode, parse: () => T): T {
  try {
    return parse()
  } catch (error) {
    if (!(error instanceof PawlError) || error.code !== 'REQUEST_INVALID' || code === 'REQUEST_INVALID') throw error
    throw new PawlError(code, { detail: error.message, cause: error })
  }
}
