// Serves the mobile utility API, which a mobile app calls when it starts. It needs no credentials, and signs its answers. GET /app/init answers the
// pinned certificates of an application, signed over the caller's challenge. GET /app/init/public-key answers the key that verifies the signature.
// Spec: utility §1, §2.
import { Type } from '@sinclair/typebox'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { OneOf } from '../../http/types.ts'
import { type PinnedApplication, type Pinning, signPinningAnswer, verifyVersion } from '../../domain/pinning/pinning.ts'
import { type DomainParts, unlessAltered } from '../../domain/secrets/secrets.ts'
import { renderErrorsWith, renderUnknownPathsWith } from '../../http/errors.ts'
import { parseAcceptLanguage } from '../../http/language.ts'
import { describeErrors, type ErrorDescription, type Operation } from '../../http/operation.ts'
import { compileParser, refuseMalformedQuery } from '../../http/validation.ts'
import { toBase64 } from '../../lib/base64.ts'
import { utf8 } from '../../lib/bytes.ts'
import { PawlError, requestRefused } from '../../lib/errors.ts'
import { IDENTIFIER } from '../../lib/identifier.ts'
import type { MobilePlatform } from '../../storage/database/schema.ts'
import { rendering, SIGNATURE_HEADER, type Signers, type UtilityErrors } from './error-renderer.ts'

export const utilityApi =
  (parts: Pick<DomainParts, 'platform' | 'events'> & { readonly pinning: Pinning }, { render, signers }: UtilityErrors) =>
  async (app: FastifyInstance) => {
    renderErrorsWith(app, parts.events, render)
    renderUnknownPathsWith(app, render)
    mountInit(app, parts, signers)
    mountInitPublicKey(app, parts)
  }

const OfApplication = Type.Object({ appName: Type.String({ minLength: 1, ...IDENTIFIER, examples: ['my-app'] }) })
const parseApplication = compileParser(OfApplication)

const Seconds = Type.Integer({ description: 'seconds since 1970-01-01 UTC' })

const InitAnswer = Type.Object({
  timestamp: Seconds,
  fingerprints: Type.Array(
    Type.Object({
      name: Type.String({ examples: ['api.bank.example'] }),
      fingerprint: Type.String({ description: 'Base64 of SHA-256 of the certificate' }),
      expires: Seconds,
    }),
  ),
  verifyVersionResult: Type.Optional(
    Type.Object({
      update: Type.String({ enum: ['NOT_REQUIRED', 'SUGGESTED', 'FORCED'] }),
      message: Type.Optional(Type.String()),
    }),
  ),
})

/** The members in which an app describes itself, except the name of its application. */
const AppVersion = Type.Object({
  appVersion: Type.Optional(
    Type.String({
      pattern: '^\\d{1,9}\\.\\d{1,9}\\.\\d{1,9}([-+ ][^]{0,200})?$',
      description: 'must be MAJOR.MINOR.PATCH',
      examples: ['1.4.0'],
    }),
  ),
  osVersion: Type.Optional(
    Type.String({
      pattern: '^\\d{1,9}(\\.\\d{1,9}){0,3}([-+ ][^]{0,200})?$',
      description: 'must be a version like 17.4.1 or 34',
      examples: ['17.4.1'],
    }),
  ),
  platform: Type.Optional(OneOf<MobilePlatform>(['ANDROID', 'IOS'])),
})
const parseApp = compileParser(AppVersion)

/** Mounts GET /app/init (utility §1). It adds the signer of each request to `signers`, so that later errors of the request are signed, too. */
function mountInit(
  app: FastifyInstance,
  { platform, pinning }: Pick<DomainParts, 'platform'> & { readonly pinning: Pinning },
  signers: Signers,
): void {
  app.get('/init', async (request, reply) => {
    // The challenge is checked before the look-up, so that a caller without a challenge does not learn which names exist.
    const challenge = readChallenge(request)
    const application = await pinning.find(parseAppName(request))
    const privateKey = application && unlessAltered(application.openPrivateKey)
    if (application === undefined || privateKey === undefined) throw new PawlError('PINNING_APPLICATION_UNKNOWN')
    const sign = (body: Uint8Array): string => signPinningAnswer(privateKey, challenge, body)
    signers.set(request, sign)
    const answer = compose(application, platform.now(), request)
    const serialize = reply.compileSerializationSchema(InitAnswer) as (value: unknown) => string
    // Serialized once, because the signed bytes must be the sent ones. Node sends a text in one write with its headers.
    const body = serialize(answer)
    return reply
      .headers({ [SIGNATURE_HEADER]: sign(utf8(body)), 'content-type': 'application/json' })
      .serializer(() => body)
      .send(body)
  })
}

/** The name of the application in the query. Throws REQUEST_INVALID when it is missing, repeated, or not a name. */
function parseAppName(request: FastifyRequest): string {
  refuseMalformedQuery(request.raw.url ?? '')
  return parseApplication(request.query).appName
}

/**
 * The challenge as received. Its length is that of its text, not of bytes that the text may encode. Throws CHALLENGE_INSUFFICIENT, and
 * REQUEST_INVALID for several challenges.
 *
 * `&` ends the challenge in the signed text, so no challenge may contain it. Otherwise somebody between app and server could send the challenge of
 * an app with `&` and a text behind it. The signature would also be one over the app's challenge and a body that begins with that text. An app that
 * reads JSON leniently, for example with comments, would take that text for pawl's.
 */
function readChallenge(request: FastifyRequest): string {
  const [challenge = '', ...others] = request.raw.headersDistinct[CHALLENGE_HEADER] ?? []
  if (others.length > 0) throw requestRefused('X-Cert-Pinning-Challenge', 'must be sent once')
  if (!/^[\x20-\x25\x27-\x7e]{16,1024}$/.test(challenge)) throw new PawlError('CHALLENGE_INSUFFICIENT')
  return challenge
}

function compose({ certificates, rules, texts }: PinnedApplication, now: number, request: FastifyRequest) {
  const { appVersion, osVersion, platform } = parseApp(request.query)
  const isVersionAsked = appVersion !== undefined && osVersion !== undefined && platform !== undefined
  return {
    timestamp: toSeconds(now),
    fingerprints: certificates
      .filter(({ expiresAt }) => expiresAt.getTime() >= now)
      .map(({ domain, fingerprint, expiresAt }) => ({
        name: domain,
        fingerprint: toBase64(fingerprint),
        expires: toSeconds(expiresAt.getTime()),
      })),
    ...(isVersionAsked && {
      verifyVersionResult: verifyVersion(rules, texts, { appVersion, osVersion, platform }, languagesOf(request)),
    }),
  }
}

const languagesOf = ({ headers }: FastifyRequest): readonly string[] => parseAcceptLanguage(headers['accept-language'])

const toSeconds = (milliseconds: number): number => Math.floor(milliseconds / 1000)

const CHALLENGE_HEADER = 'x-cert-pinning-challenge'

const PublicKey = Type.Object({ publicKey: Type.String({ description: 'Base64 of a point of P-256, 65 bytes' }) })

/** Mounts GET /app/init/public-key, for people who build the app (utility §2). An app that downloads its key is not safer than without one. */
function mountInitPublicKey(app: FastifyInstance, { pinning }: { readonly pinning: Pinning }): void {
  app.get('/init/public-key', { schema: { response: { 200: PublicKey } } }, async (request, reply) => {
    const application = await pinning.find(parseAppName(request))
    if (application === undefined) throw new PawlError('PINNING_APPLICATION_UNKNOWN')
    void reply.header('cache-control', 'public, max-age=300')
    return { publicKey: toBase64(application.publicKey) }
  })
}

/** Describes one operation for each endpoint (utility §1 to §3). */
export const describeUtilityApi = (): readonly Operation[] => [
  {
    method: 'GET',
    path: '/app/init',
    operationId: 'readInit',
    tag,
    summary: 'Pinned certificates of an application, signed',
    description:
      '`X-Cert-Pinning-Signature` is ECDSA with SHA-256 over the challenge, `&` and the body as sent. Errors are signed too once the ' +
      'application is known. `verifyVersionResult` comes when `appVersion`, `osVersion` and `platform` are all sent.',
    security: [],
    headers: Challenge,
    query: Type.Composite([OfApplication, AppVersion]),
    answers: [
      {
        status: 200,
        description: 'done',
        schema: InitAnswer,
        headers: { 'X-Cert-Pinning-Signature': 'Base64 of the signature' },
      },
      ...describeErrors(errorsOfUtility, ['CHALLENGE_INSUFFICIENT', ...ERRORS]),
    ],
  },
  {
    method: 'GET',
    path: '/app/init/public-key',
    operationId: 'readInitPublicKey',
    tag,
    summary: 'The key that verifies the signature',
    description: 'For people who build the app: an app that downloads its key gains nothing.',
    security: [],
    query: OfApplication,
    answers: [{ status: 200, description: 'done', schema: PublicKey }, ...describeErrors(errorsOfUtility, ERRORS)],
  },
]

const tag = 'Mobile utility API'

// The schema does not limit the length, because a header of fewer than 16 bytes is refused with 403 and not as a malformed request.
const Challenge = Type.Object({
  'X-Cert-Pinning-Challenge': Type.String({
    description: '16 to 1024 printable ASCII characters without `&`, random for each request',
    examples: ['r5LrB4bDyoGVEA3U8UeOSQ=='],
  }),
})

const ERRORS = ['REQUEST_INVALID', 'PINNING_APPLICATION_UNKNOWN', 'UNAVAILABLE', 'INTERNAL'] as const

const errorsOfUtility: ErrorDescription = {
  rendering,
  schema: Type.Object(
    {
      id: Type.String({ format: 'uuid', description: 'names the request in the log' }),
      code: Type.String(),
      message: Type.String(),
    },
    { title: 'ErrorOfUtility' },
  ),
  example: ({ code, message }) => ({ id: '3f2504e0-4f89-41d3-9a0c-0305e82c3301', code, message }),
}
