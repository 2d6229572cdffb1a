// DELETE /admin/apps/{name}/domains: takes a domain with its pins away (utility §4).
import { Type } from '@sinclair/typebox'
import { Ok } from '../../../../http/types.ts'
import { notFound } from '../../../../lib/errors.ts'
import { deletePinnedDomain } from '../../../../storage/pinning.ts'
import { auditedEndpoint } from '../../audited-endpoint.ts'
import { Identifier } from '../../fields.ts'
import { auditedCertificates, OfApp } from '../certificates/certificate.ts'

export const domainRemove = auditedEndpoint({
  method: 'DELETE',
  path: '/admin/apps/:name/domains',
  operationId: 'removeDomain',
  summary: 'Removes a domain with its certificates',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfApp,
  query: Type.Object({ domain: Identifier }),
  response: Ok,
  async handle({ params: { name }, query: { domain }, tx, parts, afterCommit }) {
    if (!(await deletePinnedDomain(tx, name, domain))) throw notFound(`domain ${domain} in ${name}`)
    afterCommit(() => parts.pinning.forget(name))
    return { status: 'OK' as const }
  },
  audited: auditedCertificates,
})
