// GET /admin/applications/{id}: settings, versions, and what a mobile app needs (cloud §10).
import { Type } from '@sinclair/typebox'
import { readSdkConfiguration } from '../../../../domain/application/application.ts'
import { ObjectResponse, ok, withExample } from '../../../../http/types.ts'
import { cloudEndpoint } from '../../endpoint.ts'
import { Identifier } from '../../fields.ts'
import { baseUrlOf } from '../base-url.ts'
import { Detail, OfApplication, readApplicationDetail } from './application.ts'

const ApplicationDetailWithKeys = ObjectResponse(
  Type.Composite([
    Detail,
    Type.Object({
      serviceBaseUrl: Type.String({ examples: ['https://phones.bank.example'] }),
      masterServerPublicKey: Type.String({ description: 'Base64 of the point on `qrSignatureCurve` that verifies QR codes' }),
      appKey: Type.String({ description: 'Base64 of 16 bytes', examples: ['dVoIMqp0QyQh5zuHk0KKGQ=='] }),
      appSecret: Type.Optional(Type.String({ description: 'Base64 of 16 bytes; for administrators only' })),
      mobileSdkConfig: Type.Optional(
        Type.String({ description: 'Base64; all that an SDK of protocol 4.0 needs of a version; for administrators only' }),
      ),
    }),
  ]),
)

export const applicationDetail = cloudEndpoint({
  method: 'GET',
  path: '/admin/applications/:id',
  operationId: 'readApplication',
  summary: 'Settings and versions of an application, and what a mobile app needs of it',
  description: 'Keys are those of `version`, by default of `default`, else of the oldest version that is switched on.',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin', 'read-only'],
  params: OfApplication,
  query: Type.Object({ version: Type.Optional(withExample(Identifier, 'default')) }),
  response: ApplicationDetailWithKeys,
  invalidAs: 'ADMINISTRATION_REFUSED',
  async handle({ params: { id }, query: { version }, parts, caller, origin }) {
    const detail = await readApplicationDetail(parts.db, id)
    const { appSecret, mobileSdkConfig, ...publicValues } = await readSdkConfiguration(parts, id, version)
    const secretValues = caller.role === 'admin' && { appSecret, mobileSdkConfig }
    return ok({ ...detail, serviceBaseUrl: baseUrlOf(parts, origin), ...publicValues, ...secretValues })
  },
})
