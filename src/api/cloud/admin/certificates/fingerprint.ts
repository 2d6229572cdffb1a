// POST /admin/apps/{name}/certificates/fingerprint: pins a certificate by its fingerprint (utility §4).
import { Type } from '@sinclair/typebox'
import { requireApplication } from '../../../../domain/application/application.ts'
import { pinFingerprint } from '../../../../domain/pinning/certificate.ts'
import { auditedEndpoint } from '../../audited-endpoint.ts'
import { Identifier, Seconds } from '../../fields.ts'
import { auditedCertificates, OfApp, PinnedOfDomain, toCertificate } from './certificate.ts'

export const certificateFingerprint = auditedEndpoint({
  method: 'POST',
  path: '/admin/apps/:name/certificates/fingerprint',
  operationId: 'pinFingerprint',
  summary: 'Pins a certificate by its fingerprint',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfApp,
  body: Type.Object({ domain: Identifier, fingerprint: Identifier, expires: Seconds }),
  response: PinnedOfDomain,
  async handle({ params, body: { domain, fingerprint, expires }, tx, parts, afterCommit }) {
    await requireApplication(tx, params.name)
    const row = await pinFingerprint(
      { ...parts, db: tx },
      { applicationId: params.name, domain },
      fingerprint,
      new Date(expires * 1000),
    )
    afterCommit(() => parts.pinning.forget(params.name))
    return { name: row.domain, ...toCertificate(row, parts.platform.now()) }
  },
  audited: auditedCertificates,
})
