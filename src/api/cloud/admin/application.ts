// /admin/application: creates an application and reads what its mobile app needs. Spec: cloud §10.
import { Type } from '@sinclair/typebox'
import { createApplication, readMobileConfiguration } from '../../../domain/application/application.ts'
import { ObjectResponse, ok, withExample } from '../../../http/types.ts'
import { cloudEndpoint } from '../endpoint.ts'
import { Identifier } from '../fields.ts'
import { baseUrlOf } from './base-url.ts'
import { viewApplication } from './applications.ts'

const ApplicationConfiguration = ObjectResponse(
  Type.Object({
    serviceBaseUrl: Type.String({ examples: ['https://phones.bank.example'] }),
    masterServerPublicKey: Type.String({
      description: 'Base64 of the point that verifies QR codes: of P-256, 65 bytes, or of P-384, 97 bytes',
    }),
    qrSignatureCurve: Type.Optional(
      Type.Literal('P-384', {
        description: 'the curve of the key where it is not P-256: the application does not admit protocol 3',
      }),
    ),
    appKey: Type.String({ description: 'Base64 of 16 bytes', examples: ['dVoIMqp0QyQh5zuHk0KKGQ=='] }),
    appSecret: Type.String({ description: 'Base64 of 16 bytes', examples: ['Q0P6F8pPaQr8vFzH6MDh1g=='] }),
  }),
)

export const applicationCreate = cloudEndpoint({
  method: 'POST',
  path: '/admin/application',
  summary: 'Creates an application',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  body: Type.Object({ id: Identifier }),
  response: ApplicationConfiguration,
  invalidAs: 'ADMINISTRATION_REFUSED',
  async handle({ body: { id }, parts, origin }) {
    await createApplication(parts, id)
    return ok({ serviceBaseUrl: baseUrlOf(parts, origin), ...(await readMobileConfiguration(parts, id)) })
  },
  audited: {
    target: ({ body: { id } }) => `application ${id}`,
    view: ({ body: { id }, parts }) => viewApplication(parts.db, id),
  },
})

export const applicationRead = cloudEndpoint({
  method: 'GET',
  path: '/admin/application',
  summary: 'What a mobile app needs of its application',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  query: Type.Object({ id: Identifier, version: Type.Optional(withExample(Identifier, 'default')) }),
  response: ApplicationConfiguration,
  invalidAs: 'ADMINISTRATION_REFUSED',
  async handle({ query: { id, version }, parts, origin }) {
    return ok({ serviceBaseUrl: baseUrlOf(parts, origin), ...(await readMobileConfiguration(parts, id, version)) })
  },
})
