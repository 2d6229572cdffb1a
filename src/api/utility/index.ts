// Serves the mobile utility API, which a mobile app calls when it starts. It needs no credentials, and signs its answers.
import { Type } from '@sinclair/typebox'
import type { FastifyInstance } from 'fastify'
import type { Pinning } from '../../domain/pinning/pinning.ts'
import type { DomainParts } from '../../domain/secrets/secrets.ts'
import { renderErrorsWith, renderUnknownPathsWith } from '../../http/errors.ts'
import { describeErrors, type ErrorDescription, type Operation } from '../../http/operation.ts'
import { rendering, type UtilityErrors } from './error-renderer.ts'
import { AppVersion, InitAnswer, mountInit, mountInitPublicKey, OfApplication, PublicKey } from './init.ts'

export const utilityApi =
  (parts: Pick<DomainParts, 'platform' | 'events'> & { readonly pinning: Pinning }, { render, signers }: UtilityErrors) =>
  async (app: FastifyInstance) => {
    renderErrorsWith(app, parts.events, render)
    renderUnknownPathsWith(app, render)
    mountInit(app, parts, signers)
    mountInitPublicKey(app, parts)
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
    description: '16 to 1024 printable ASCII characters, random for each request',
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
