// How a phone's request is served: headers, the checks in the endpoint's order, what may be used once, the handler, the seal.
import type { TSchema } from '@sinclair/typebox'
import { compileParser, type Parser } from '../http/validation.ts'
import { parseJson, refuseUnstorable } from '../http/raw-body.ts'
import { utf8 } from '../lib/bytes.ts'
import { type ErrorCode, PawlError } from '../lib/errors.ts'
import type { AuthorizationHeader, Envelope, EnvelopeContext, OpenedEnvelope, Protocol } from '../protocol/protocol.ts'
import type { ActivationRow } from '../storage/activations.ts'
import { type UniqueValue, useUniqueValues } from '../storage/unique-values.ts'
import { authenticateByCode } from './authenticate-code.ts'
import { authenticateByToken } from './authenticate-token.ts'
import { type AnyEndpoint, type Bearer, type Call, type Client, defaultRefusals, type Refusals, type Step } from './endpoint.ts'
import { type ProtocolHeaders, readProtocolHeaders } from './headers.ts'
import { openRequest } from './open-envelope.ts'
import type { ChannelParts } from './parts.ts'
import type { Effect } from './settle-attempt.ts'

/** A request as it came over HTTP. */
export interface DeviceRequest {
  readonly method: string
  readonly headers: Record<string, string | string[] | undefined>
  readonly contentType: string | undefined
  /** Raw bytes, empty when there is no body. */
  readonly body: Uint8Array
  /** Raw query string without its question mark. */
  readonly query: string | undefined
  /** Address of the caller, behind trusted proxies the one they name. */
  readonly ip: string
}

/** The answer: for an encrypted endpoint the envelope around what `serialize` makes of the handler's value. */
export type Serve = (request: DeviceRequest, serialize: (value: unknown) => string) => Promise<unknown>

/** Compiles the schemas of an endpoint once and returns the function that serves it in the first of the generations that reads its headers. */
export function createPipeline<P extends ChannelParts>(
  parts: P,
  protocols: readonly Protocol[],
  endpoint: AnyEndpoint<P>,
): Serve {
  const refusals = { ...defaultRefusals, ...endpoint.refusals }
  const parsers = {
    request: endpoint.request && compileParser(endpoint.request as TSchema),
    nested: endpoint.nested && compileParser(endpoint.nested.request as TSchema),
  }
  return async (request, serialize) => {
    const state = begin({ parts, protocols, endpoint, refusals, parsers }, request)
    for (const step of endpoint.order) await steps[step](state)
    if (!(await useUniqueValues(parts.db, state.uniqueValues))) throw usedMeanwhile(state)
    const answer = await handle(state)
    if (state.opened === undefined) return answer
    return seal(parts, state.opened, utf8(serialize(answer)))
  }
}

interface Fixed<P extends ChannelParts> {
  readonly parts: P
  readonly protocols: readonly Protocol[]
  readonly endpoint: AnyEndpoint<P>
  readonly refusals: Refusals
  readonly parsers: { readonly request: Parser<TSchema> | undefined; readonly nested: Parser<TSchema> | undefined }
}

interface State extends Fixed<ChannelParts> {
  readonly protocol: Protocol
  /** Another one where a code of an older generation covers an envelope of a newer. */
  readonly envelopeProtocol: Protocol
  readonly request: DeviceRequest
  readonly headers: ProtocolHeaders
  readonly authorization: AuthorizationHeader | undefined
  context: EnvelopeContext | undefined
  envelope: Envelope | undefined
  opened: OpenedEnvelope | undefined
  nested: OpenedEnvelope | undefined
  nestedRequest: unknown
  parsed: unknown
  activation: ActivationRow | undefined
  bearer: Bearer | undefined
  uniqueValues: UniqueValue[]
  usesToken: boolean
}

function begin<P extends ChannelParts>(fixed: Fixed<P>, request: DeviceRequest): State {
  const { endpoint, refusals, parts } = fixed
  const headers = readProtocolHeaders(request.headers)
  if (endpoint.order.some((step) => step === 'envelope' || step === 'validate')) refuseContentType(request)
  const isSigned = endpoint.authenticate !== undefined || endpoint.token !== undefined
  const readsHeaders = isSigned || endpoint.encrypt !== undefined
  if (readsHeaders && headers.isMalformed)
    throw new PawlError(isSigned ? refusals.headerMalformed : 'ENCRYPTION_FAILED', {
      detail: 'protocol headers contradict each other',
    })
  const { schemes } = headers
  const { protocol, envelopeProtocol } = selectProtocols(fixed.protocols, headers, endpoint.encrypt?.hasOwnHeader === true)
  refuseLongBody(request, bodyBytesMaxOf(endpoint, parts.settings))
  const value = readsHeaders ? headers.authorization : undefined
  if (endpoint.authenticate && value === undefined)
    throw new PawlError(refusals.headerMissing, { detail: 'no authorization header' })
  const authorization = value === undefined ? undefined : protocol.parseAuthorizationHeader(value, schemes)
  if (value !== undefined && authorization === undefined) {
    throw new PawlError(isSigned ? refusals.headerMalformed : 'ENCRYPTION_FAILED', {
      detail: 'malformed authorization header',
    })
  }
  return {
    ...(fixed as unknown as Fixed<ChannelParts>),
    request,
    headers,
    protocol,
    envelopeProtocol,
    authorization,
    context: undefined,
    envelope: undefined,
    opened: undefined,
    nested: undefined,
    nestedRequest: undefined,
    parsed: undefined,
    activation: undefined,
    bearer: undefined,
    uniqueValues: [],
    usesToken: false,
  }
}

/** The generation that reads the first of the headers decides for all; the first generation where none does. */
function selectProtocols(
  protocols: readonly Protocol[],
  { authorization, token, encryption, schemes }: ProtocolHeaders,
  hasOwnHeader: boolean,
): { protocol: Protocol; envelopeProtocol: Protocol } {
  const [first, second] = protocols
  const only = required(first, 'protocol')
  if (hasOwnHeader) return { protocol: only, envelopeProtocol: required(second, 'second protocol') }
  if (second === undefined) return { protocol: only, envelopeProtocol: only }
  const reads = (candidate: Protocol): boolean => {
    if (authorization !== undefined) return candidate.parseAuthorizationHeader(authorization, schemes) !== undefined
    if (token !== undefined) return candidate.parseTokenHeader(token, schemes) !== undefined
    return encryption !== undefined && candidate.parseEncryptionHeader(encryption, schemes) !== undefined
  }
  const protocol = protocols.find(reads) ?? only
  return { protocol, envelopeProtocol: protocol }
}

const steps: Record<Step, (state: State) => Promise<void>> = {
  /** The announced factors are refused before anything is computed; counter and failures stay (v3 §10.5). */
  async factors({ endpoint, parts, authorization, refusals, parsed }) {
    const allowed = required(endpoint.authenticate, 'authenticate').factors
    const header = required(authorization, 'authorization')
    const factors = typeof allowed === 'function' ? await allowed(parts, header, parsed) : allowed
    if (!factors.includes(header.factors))
      throw new PawlError(refusals.factors, { detail: `factors ${header.factors} are not allowed here` })
  },

  /** Parses the envelope against its context (v3 §5.3, §6.5). */
  async envelope(state) {
    const { envelopeProtocol, endpoint, request, refusals } = state
    if (request.body.length === 0) throw new PawlError(refusals.envelope, { detail: 'no body' })
    state.context = findContext(state)
    let json: unknown
    try {
      json = parseJson(request.body)
    } catch (error) {
      // Where the code covers these very bytes it is checked first: only its owner learns what is wrong with them. Not where the
      // factors depend on what cannot be read.
      const { order } = endpoint
      const dependsOnRequest = order.includes('validate') && order.indexOf('validate') < order.indexOf('factors')
      if (endpoint.authenticate?.covers === 'body' && !dependsOnRequest) {
        await steps.factors(state)
        await steps.authenticate(state)
      }
      throw error
    }
    state.envelope = envelopeProtocol.parseEnvelope(state.context, json)
    if (state.envelope === undefined) throw new PawlError(refusals.envelope, { detail: 'the envelope is not well-formed' })
  },

  async open(state) {
    const { parts, envelopeProtocol, endpoint, refusals } = state
    const context = required(state.context, 'context')
    const { leavesStateToCode = false, isUpgradeSeen = false } = required(endpoint.encrypt, 'encrypt')
    const isStateChecked = !leavesStateToCode
    // A code is refused for a version that is switched off, a token is not.
    const isVersionChecked = isStateChecked || endpoint.token !== undefined
    const envelope = required(state.envelope, 'envelope')
    const request = { context, envelope, isStateChecked, isVersionChecked, isUpgradeSeen }
    const opened = await openRequest(parts, envelopeProtocol, request)
    if (opened === undefined) throw new PawlError(refusals.open, { detail: 'the envelope does not open' })
    state.opened = opened.envelope
    state.activation ??= opened.activation
    state.uniqueValues.push(...opened.uniqueValues)
  },

  /** The second layer of activation/create: same version, application key and temporary key (v3 §8.3). */
  async 'open-nested'(state) {
    const { parts, protocol, endpoint, refusals } = state
    const { sharedInfo1, pick, isAnyKeyAccepted = false } = required(endpoint.nested, 'nested')
    const context = { ...required(state.context, 'context'), sharedInfo1 }
    const envelope = protocol.parseEnvelope(context, pick(state.parsed))
    if (envelope === undefined) throw new PawlError(refusals.nested, { detail: 'the nested envelope is not well-formed' })
    const isKeyRight = isAnyKeyAccepted || envelope.temporaryKeyId === state.envelope?.temporaryKeyId
    const opened = isKeyRight
      ? await openRequest(parts, protocol, {
          context,
          envelope,
          isStateChecked: true,
          isVersionChecked: true,
          isUpgradeSeen: false,
        })
      : undefined
    if (opened === undefined) throw new PawlError(refusals.open, { detail: 'the nested envelope does not open' })
    state.nested = opened.envelope
    state.uniqueValues.push(...opened.uniqueValues)
    const json = parseOr(refusals.plaintext, () => parseJson(opened.envelope.plaintext))
    state.nestedRequest = parseOr(refusals.nested, () =>
      required(state.parsers.nested, 'nested')(refuseUnstorable(json, opened.envelope.plaintext)),
    )
  },

  async validate(state) {
    const { opened, request, refusals, parsers } = state
    const parse = required(parsers.request, 'request')
    // An empty plaintext stands for no members; an empty body lacks them all.
    const bytes = opened?.plaintext ?? request.body
    const parseBytes = () => (opened ? parseOr(refusals.plaintext, () => parseJson(bytes)) : parseJson(bytes))
    const json = bytes.length === 0 ? {} : parseBytes()
    state.parsed = parseOr(refusals.request, () => parse(refuseUnstorable(json, bytes)))
  },

  async authenticate(state) {
    const { parts, protocol, endpoint, request, opened } = state
    const {
      resourceId,
      covers,
      auditAs,
      isPendingAccepted = false,
      isUpgradeSeen = false,
    } = required(endpoint.authenticate, 'authenticate')
    const header = required(state.authorization, 'authorization')
    // A body that could not be read has nothing to show.
    const shown = state.parsed === undefined ? undefined : auditAs?.(state.parsed)
    const attempt = {
      header,
      method: request.method,
      resourceId,
      bodies: covers === 'plaintext' ? [required(opened, 'opened').plaintext] : protocol.coveredBodies(request),
      isConfidential: endpoint.encrypt !== undefined,
      auditBody: shown === undefined ? undefined : utf8(JSON.stringify(shown)),
      isPendingAccepted,
      isUpgradeSeen,
      ip: request.ip,
    }
    const verdict = await authenticateByCode(parts, protocol, attempt, effectOf(state, header))
    if (!verdict.valid) throw new PawlError(verdict.effect ?? 'AUTHENTICATION_CODE_INVALID', { detail: verdict.reason })
    if (verdict.effect) throw new PawlError(verdict.effect, { detail: 'the code was right, what it asks for was refused' })
    state.activation = verdict.activation
    state.bearer = verdict.activation
  },

  /** A token header and, when the request is encrypted, the same activation in both headers. */
  async token(state) {
    const { parts, protocol, endpoint, headers, refusals, context } = state
    if (headers.token === undefined) throw new PawlError(refusals.headerMissing, { detail: 'no token header' })
    const header = protocol.parseTokenHeader(headers.token, headers.schemes)
    const { factors: allowed, isRepeatable = false } = required(endpoint.token, 'token')
    const verdict =
      header && (await authenticateByToken(parts, protocol, header, { resourceId: `/${endpoint.path}`, isRepeatable }))
    const isSame = endpoint.encrypt === undefined || verdict?.bearer.activationId === context?.activationId
    const isRight = verdict !== undefined && (allowed as readonly string[]).includes(verdict.factors) && isSame
    if (!isRight) throw new PawlError('AUTHENTICATION_CODE_INVALID', { detail: 'the token header is not accepted' })
    state.usesToken = true
    state.bearer = verdict.bearer
    if (verdict.uniqueValue) state.uniqueValues.push(verdict.uniqueValue)
  },
}

/** What the endpoint adds to the check's transaction, bound to this request. */
function effectOf(state: State, { factors }: AuthorizationHeader): Effect<ErrorCode | undefined> | undefined {
  const { endpoint, parts, parsed, request } = state
  const { settle } = endpoint
  if (settle === undefined) return undefined
  return (tx, outcome) => settle({ tx, ...outcome, factors, request: parsed, client: clientOf(request), parts })
}

function clientOf({ ip, headers }: DeviceRequest): Client {
  return { ip, userAgent: headers['user-agent']?.toString(), acceptLanguage: headers['accept-language']?.toString() }
}

/** Version, key and activation come from the authorization header, else from the encryption header (v3 §5.3). */
function findContext({ endpoint, envelopeProtocol, headers, authorization, refusals }: State): EnvelopeContext {
  const { scope, sharedInfo1, hasOwnHeader = false } = required(endpoint.encrypt, 'encrypt')
  const code: ErrorCode = endpoint.authenticate ? refusals.envelope : 'ENCRYPTION_FAILED'
  const { encryption, schemes } = headers
  const own = encryption === undefined ? undefined : envelopeProtocol.parseEncryptionHeader(encryption, schemes)
  const header = hasOwnHeader ? own : (authorization ?? own)
  if (header === undefined) throw new PawlError(code, { detail: 'no encryption context' })
  if ((scope === 'ACTIVATION_SCOPE') !== (header.activationId !== undefined))
    throw new PawlError(code, { detail: 'wrong encryption scope' })
  if (authorization !== undefined && authorization.applicationKey !== header.applicationKey)
    throw new PawlError(code, { detail: 'the headers name different application keys' })
  return { version: header.version, scope, sharedInfo1, applicationKey: header.applicationKey, activationId: header.activationId }
}

/** One of the values was used by another request since it was looked at. */
const usedMeanwhile = ({ usesToken, refusals }: State): PawlError =>
  new PawlError(usesToken ? 'AUTHENTICATION_CODE_INVALID' : refusals.open, { detail: 'used meanwhile by another request' })

async function handle(state: State): Promise<unknown> {
  const { endpoint, parts, protocol, headers } = state
  const call = {
    request: state.parsed,
    nested: state.nestedRequest,
    protocol,
    dialect: headers.dialect,
    sealNested: (value: unknown) => seal(parts, required(state.nested, 'nested'), utf8(JSON.stringify(value))),
    get activation() {
      return required(state.activation, 'activation')
    },
    get authorization() {
      return required(state.authorization, 'authorization')
    },
    get bearer() {
      return required(state.bearer, 'bearer')
    },
    get client() {
      return clientOf(state.request)
    },
    get applicationKey() {
      return required(state.context ?? state.authorization, 'context').applicationKey
    },
    get version() {
      return required(state.context ?? state.authorization, 'context').version
    },
    parts,
  } satisfies Call<unknown, unknown, ChannelParts>
  return endpoint.handle(call)
}

const seal = (parts: ChannelParts, opened: OpenedEnvelope, plaintext: Uint8Array): Record<string, string | number> =>
  opened.seal(plaintext, { nonce: parts.platform.randomBytes(16), timestamp: parts.platform.now() })

/** Another content type than JSON is refused before anything is checked: no code covers it. None at all is taken for JSON. */
function refuseContentType({ contentType, body }: DeviceRequest): void {
  if (body.length === 0 || contentType === undefined || JSON_CONTENT_TYPE.test(contentType)) return
  const violations = [{ fieldName: 'Content-Type', hint: 'must be application/json' }]
  throw new PawlError('REQUEST_INVALID', { detail: 'wrong content type', violations })
}

/** How long a body may be: less where it is parsed, or a code is computed over it, before anything proves who sent it. */
function bodyBytesMaxOf<P extends ChannelParts>(
  { order, authenticate, parsedBytesMax = PARSED_BYTES_MAX }: AnyEndpoint<P>,
  { signedBodyBytesMax }: ChannelParts['settings'],
): number {
  const [first] = order.filter((step) => step !== 'factors')
  const parsed = first === 'envelope' || first === 'validate' ? parsedBytesMax : Number.POSITIVE_INFINITY
  return authenticate === undefined ? parsed : Math.min(parsed, signedBodyBytesMax)
}

function refuseLongBody({ body }: DeviceRequest, bodyBytesMax: number): void {
  if (body.length <= bodyBytesMax) return
  const violations = [{ fieldName: 'body', hint: `must have at most ${bodyBytesMax} bytes` }]
  throw new PawlError('REQUEST_INVALID', { detail: 'the body is too long', violations })
}

// The longest request that needs no more is an upgrade with the keys of ML-KEM-1024 and ML-DSA-87, some 8 KiB.
const PARSED_BYTES_MAX = 16 * 1024
const JSON_CONTENT_TYPE = /^application\/json\s*(;|$)/i

/** Gives a refused parse the endpoint's code; what was wrong stays for the log and, where the code shows them, the violations. */
function parseOr<T>(code: ErrorCode, parse: () => T): T {
  try {
    return parse()
  } catch (error) {
    if (!(error instanceof PawlError) || error.code !== 'REQUEST_INVALID' || code === 'REQUEST_INVALID') throw error
    throw new PawlError(code, { detail: error.message, cause: error })
  }
}

/** A step that needs what an earlier one provides: a mistake in an endpoint's declaration, never in a request. */
function required<T>(value: T | undefined, name: string): T {
  if (value === undefined) throw new TypeError(`the endpoint declares no ${name}`)
  return value
}
