// DELETE /admin/apps/{name}/certificates: takes a pin away (utility §4).
import { Type } from '@sinclair/typebox'
import { requireFingerprint } from '../../../../domain/pinning/certificate.ts'
import { Ok } from '../../../../http/types.ts'
import { notFound } from '../../../../lib/errors.ts'
import { deletePinnedCertificate } from '../../../../storage/pinning.ts'
import { auditedEndpoint } from '../../audited-endpoint.ts'
import { Identifier } from '../../fields.ts'
import { auditedCertificates, OfApp } from './certificate.ts'

export const certificateRemove = auditedEndpoint({
  method: 'DELETE',
  path: '/admin/apps/:name/certificates',
  operationId: 'removeCertificate',
  summary: 'Removes a pinned certificate',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfApp,
  query: Type.Object({ domain: Identifier, fingerprint: Identifier }),
  response: Ok,
  async handle({ params: { name }, query: { domain, ...query }, tx, parts, afterCommit }) {
    const fingerprint = requireFingerprint(query.fingerprint)
    if (!(await deletePinnedCertificate(tx, name, domain, fingerprint)))
      throw notFound(`such certificate of ${domain} in ${name}`)
    afterCommit(() => parts.pinning.forget(name))
    return { status: 'OK' as const }
  },
  audited: auditedCertificates,
})
