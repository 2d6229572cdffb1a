// POST /admin/apps/{name}/certificates/auto: pins the certificate that a server shows (utility §4).
import { Type } from '@sinclair/typebox'
import { requireApplication } from '../../../../domain/application/application.ts'
import { pinLive, readLive } from '../../../../domain/pinning/certificate.ts'
import { auditedEndpoint } from '../../audited-endpoint.ts'
import { Identifier } from '../../fields.ts'
import { auditedCertificates, Force, certificateMembers, OfApp, toCertificate } from './certificate.ts'

const Port = Type.Integer({ minimum: 1, maximum: 65_535, default: 443, description: 'must be a port' })

export const certificateAuto = auditedEndpoint({
  method: 'POST',
  path: '/admin/apps/:name/certificates/auto',
  operationId: 'pinLiveCertificate',
  summary: 'Pins the certificate that a server shows',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfApp,
  body: Type.Object({ domain: Identifier, port: Port, force: Force }),
  response: Type.Object({
    name: Type.String(),
    ...certificateMembers,
    isChainTrusted: Type.Boolean(),
    /** Why the chain or the name does not verify with the public roots. */
    chainProblem: Type.Optional(Type.String()),
  }),
  // A connection to somewhere else has no place in a transaction.
  async prepare({ params, body: { domain, port, force = false }, parts }) {
    await requireApplication(parts.db, params.name)
    return readLive(parts, domain, port, force)
  },
  async handle({ params, tx, parts, afterCommit }, live) {
    await requireApplication(tx, params.name)
    const { chainProblem } = live
    const row = await pinLive({ ...parts, db: tx }, params.name, live)
    afterCommit(() => parts.pinning.forget(params.name))
    return {
      name: row.domain,
      ...toCertificate(row, parts.platform.now()),
      isChainTrusted: chainProblem === undefined,
      ...(chainProblem !== undefined && { chainProblem }),
    }
  },
  audited: auditedCertificates,
})
