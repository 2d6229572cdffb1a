// Compiles each schema once, when it is first needed: most processes use few of the some 200 schemas. Values keep all their members: unknown members
// are ignored, wrong types are refused. In a query and a path a number and a boolean are the texts that JSON has for them.
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import type { Static, TSchema } from '@sinclair/typebox'
import type { FastifyInstance } from 'fastify'
import { PawlError, type Violation } from '../lib/errors.ts'

/** Returns the parsed value, or throws a PawlError REQUEST_INVALID with a violation for each wrong member. */
export type Parser<S extends TSchema> = (value: unknown) => Static<S>

/**
 * Makes the parser of a schema for bodies of strangers. A body may have thousands of wrong members. Therefore a refusal names only the first
 * one of a body with more than 64 values.
 */
export function compileParser<S extends TSchema>(schema: S): Parser<S> {
  let validate: ValidateFunction | undefined
  return (value) => {
    validate ??= strangers.compile(schema)
    if (validate(value)) return value as Static<S>
    const judge = countValues(value, VALUES_MAX) > VALUES_MAX ? validate : callers.compile(schema)
    judge(value)
    throw new PawlError('REQUEST_INVALID', {
      detail: 'the request does not match its schema',
      violations: toViolations(judge.errors),
    })
  }
}

/** Uses strict validation for every route. A refusal names every wrong member. */
export function useStrictValidation(app: FastifyInstance): void {
  app.setValidatorCompiler(({ schema, httpPart }) => {
    let validate: ValidateFunction | undefined
    return (value: unknown) => {
      validate ??= callers.compile(schema as TSchema) as ValidateFunction
      if (httpPart !== 'body') readTexts(schema as TSchema, value as Record<string, unknown>)
      // A missing body counts as an empty object: the schema then names the missing members.
      if (validate(value ?? {})) return { value }
      const violations = toViolations(validate.errors)
      return { error: new PawlError('REQUEST_INVALID', { detail: 'the request does not match its schema', violations }) }
    }
  })
}

/** Replaces texts by the numbers and booleans that they are, where the schema wants one. Other texts stay, and the schema refuses them. */
function readTexts({ properties }: TSchema, texts: Record<string, unknown>): void {
  for (const [name, { type }] of Object.entries((properties ?? {}) as Record<string, TSchema>)) {
    const text = texts[name]
    if (typeof text !== 'string') continue
    if (type === 'integer' && NUMBER.test(text)) texts[name] = Number(text)
    if (type === 'boolean' && BOOLEAN.test(text)) texts[name] = text === 'true'
  }
}

/** Numbers as a JSON body has them, and with leading zeros. JavaScript would also read hexadecimal digits, and white space as 0. */
const NUMBER = /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i
const BOOLEAN = /^(?:true|false)$/

/** Throws PawlError REQUEST_INVALID for a query string with a percent sign that encodes no character; otherwise it would be taken literally. */
export function refuseMalformedQuery(url: string): void {
  try {
    decodeURIComponent(url.slice(url.indexOf('?') + 1))
  } catch (cause) {
    const violations = [{ fieldName: 'query', hint: 'must be percent-encoded UTF-8' }]
    throw new PawlError('REQUEST_INVALID', { detail: 'malformed query string', violations, cause })
  }
}

/** Counts the values within a JSON value, itself included. The count ends soon after `max`. */
function countValues(value: unknown, max: number): number {
  if (typeof value !== 'object' || value === null) return 1
  let count = 1
  for (const member of Object.values(value)) {
    if (count > max) break
    count += countValues(member, max - count)
  }
  return count
}

/** The faults that AJV found, the first one of each member. */
function toViolations(errors: readonly ErrorObject[] | null | undefined): Violation[] {
  const byField = new Map<string, Violation>()
  for (const error of errors ?? []) {
    if (isOfChoice(error)) continue
    const missing = error.keyword === 'required' ? `.${String(error.params['missingProperty'])}` : ''
    // The path is a JSON pointer: in it `~1` stands for `/`, and `~0` for `~`.
    const path = error.instancePath.replaceAll('/', '.').replaceAll('~1', '/').replaceAll('~0', '~')
    const fieldName = `${path}${missing}`.slice(1) || 'body'
    if (!byField.has(fieldName))
      byField.set(fieldName, { fieldName, ...describeValue(fieldName, error), hint: describeHint(error) })
  }
  return [...byField.values()]
}

/**
 * Whether an error only says that a value is none of several alternatives, or not null. Such an error is left out, because another error names the
 * fault.
 */
const isOfChoice = ({ keyword, params }: ErrorObject): boolean =>
  keyword === 'anyOf' || (keyword === 'type' && params['type'] === 'null')

function describeValue(fieldName: string, error: ErrorObject): { invalidValue?: string } {
  if (error.keyword === 'required' || SECRET_FIELDS.test(fieldName)) return {}
  const { data } = error
  if (data === undefined || data === null || typeof data === 'object') return {}
  return { invalidValue: String(data).slice(0, VALUE_CHARACTERS_MAX) }
}

const describeForm = ({ parentSchema }: ErrorObject): string =>
  (parentSchema as { description?: string } | undefined)?.description ?? 'has the wrong form'

function describeHint(error: ErrorObject): string {
  switch (error.keyword) {
    case 'required':
      return 'must be present'
    case 'minLength':
      return error.params['limit'] === 1 ? 'must not be blank' : describeForm(error)
    case 'pattern':
    // A member whose name has the wrong form counts as an additional one.
    case 'additionalProperties':
      return describeForm(error)
    case 'const':
      return `must be ${String(error.params['allowedValue'])}`
    case 'enum':
      return `must be one of ${(error.params['allowedValues'] as unknown[]).join(', ')}`
    default:
      return error.message ?? 'is invalid'
  }
}

// Patterns count UTF-16 code units, as the limits of the contract do; AJV's `u` flag would count code points.
const options = {
  removeAdditional: false,
  useDefaults: true,
  strict: true,
  strictTypes: false,
  allowUnionTypes: true,
  verbose: true,
  unicodeRegExp: false,
} as const
const strangers = new Ajv({ ...options, coerceTypes: false, allErrors: false })
const callers = new Ajv({ ...options, coerceTypes: false, allErrors: true })
/** The object or list that has the validated value, and its name there. */
interface Place {
  readonly parentData: Record<string | number, unknown>
  readonly parentDataProperty: string | number
}

/** `lowerCase: true` replaces the text of a member by its lower case. The OpenAPI document does not show it. */
callers.addKeyword({
  keyword: 'lowerCase',
  type: 'string',
  metaSchema: { const: true },
  modifying: true,
  errors: false,
  validate(_isWanted: boolean, text: string, _schema: unknown, at: Place | undefined) {
    if (at !== undefined) at.parentData[at.parentDataProperty] = text.toLowerCase()
    return true
  },
})
// Values of these members are never repeated to the caller. A PEM text may hold a private key beside the certificate, and `basic` may be sent as
// text.
const SECRET_FIELDS = /(^|\.)(basic|otp|password|pem|privateKey|\w*secret)$/i
const VALUE_CHARACTERS_MAX = 128
const VALUES_MAX = 64
