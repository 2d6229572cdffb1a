// POST /admin/apps/{name}/certificates/pem: pins a certificate from a PEM file (utility §4).
import { Type } from '@sinclair/typebox'
import { requireApplication } from '../../../../domain/application/application.ts'
import { pinPem } from '../../../../domain/pinning/certificate.ts'
import { auditedEndpoint } from '../../audited-endpoint.ts'
import { Identifier } from '../../fields.ts'
import { auditedCertificates, Force, OfApp, PinnedOfDomain, toCertificate } from './certificate.ts'

const Pem = Type.String({
  pattern: '^[^\\u0000]{1,65536}$',
  description: 'must be a certificate in PEM, at most 65536 characters',
})

export const certificatePem = auditedEndpoint({
  method: 'POST',
  path: '/admin/apps/:name/certificates/pem',
  operationId: 'pinCertificate',
  summary: 'Pins a certificate from a PEM file',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfApp,
  body: Type.Object({ domain: Identifier, pem: Pem, force: Force }),
  response: PinnedOfDomain,
  async handle({ params, body: { domain, pem, force = false }, tx, parts, afterCommit }) {
    await requireApplication(tx, params.name)
    const row = await pinPem({ ...parts, db: tx }, { applicationId: params.name, domain }, pem, force)
    afterCommit(() => parts.pinning.forget(params.name))
    return { name: row.domain, ...toCertificate(row, parts.platform.now()) }
  },
  audited: auditedCertificates,
})
