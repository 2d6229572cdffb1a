// /admin/apps/{name}/certificates and /domains: pin certificates, which the mobile utility publishes for an application (utility §4).
import { type Static, Type } from '@sinclair/typebox'
import { requireApplication } from '../../../domain/application/application.ts'
import { pinFingerprint, pinLive, pinPem, readLive, requireFingerprint, warnOfName } from '../../../domain/pinning/certificate.ts'
import { named, OneOf } from '../../../http/types.ts'
import { toBase64 } from '../../../lib/base64.ts'
import { notFound } from '../../../lib/errors.ts'
import { toPem } from '../../../lib/pem.ts'
import {
  deleteExpiredCertificates,
  deletePinnedCertificate,
  deletePinnedDomain,
  listPinnedCertificates,
  type PinnedCertificateRow,
} from '../../../storage/pinning/pinning.ts'
import { type Audited, auditedEndpoint } from '../audited-endpoint.ts'
import { Identifier, OfName, Seconds, toSeconds } from '../fields.ts'

const Force = Type.Optional(Type.Boolean({ description: 'pins a certificate for other names too' }))

const certificateMembers = {
  fingerprint: Type.String({ description: 'Base64 of SHA-256 over the DER bytes' }),
  expires: Seconds,
  isExpired: Type.Boolean(),
  source: OneOf(['pem', 'fetch', 'fingerprint']),
  created: Seconds,
  pem: Type.Optional(Type.String({ description: 'absent where only the fingerprint is known' })),
  warning: Type.Optional(Type.String({ description: 'why apps do not find the pin under its name' })),
}

export const PinnedCertificate = Type.Object(certificateMembers)
export type PinnedCertificate = Static<typeof PinnedCertificate>

const PinnedOfDomain = named('PinnedCertificate', Type.Object({ name: Type.String(), ...certificateMembers }))

/** The PinnedCertificate of a row; `now` in milliseconds. */
export function toCertificate(row: PinnedCertificateRow, now: number) {
  const warning = warnOfName(row)
  return {
    fingerprint: toBase64(row.fingerprint),
    expires: toSeconds(row.expiresAt),
    isExpired: row.expiresAt.getTime() < now,
    source: row.source,
    created: toSeconds(row.createdAt),
    ...(row.certificate !== null && { pem: toPem(row.certificate) }),
    ...(warning !== undefined && { warning }),
  }
}

const auditedCertificates: Audited<{ readonly name: string }> = {
  target: ({ params: { name } }) => `certificates of ${name}`,
  view: async ({ params: { name }, parts }) =>
    (await listPinnedCertificates(parts.db, name)).map(({ domain, fingerprint, expiresAt }) => ({
      domain,
      fingerprint: toBase64(fingerprint),
      expires: toSeconds(expiresAt),
    })),
}

const Port = Type.Optional(Type.Integer({ minimum: 1, maximum: 65_535, default: 443, description: 'where it shows it' }))

const certificateAuto = auditedEndpoint({
  route: 'POST /admin/apps/:name/certificates/auto',
  operationId: 'pinLiveCertificate',
  summary: 'Pins the certificate that a server shows',
  params: OfName,
  body: Type.Object({ domain: Identifier, port: Port, force: Force }),
  response: Type.Object({
    name: Type.String(),
    ...certificateMembers,
    isChainTrusted: Type.Boolean(),
    chainProblem: Type.Optional(Type.String({ description: 'why the chain or the name does not verify with the public roots' })),
  }),
  // No transaction is open while pawl connects to another server.
  async prepare({ params, body: { domain, port = 443, force = false }, parts }) {
    await requireApplication(parts.db, params.name)
    return readLive(parts, domain, port, force)
  },
  async handle({ params, parts, afterCommit }, live) {
    await requireApplication(parts.db, params.name)
    const { chainProblem } = live
    const row = await pinLive(parts, params.name, live)
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

const Pem = Type.String({
  pattern: '^[^\\u0000]{1,65536}$',
  description: 'must be a certificate in PEM, at most 65536 characters',
})

const certificatePem = auditedEndpoint({
  route: 'POST /admin/apps/:name/certificates/pem',
  operationId: 'pinCertificate',
  summary: 'Pins a certificate from a PEM file',
  params: OfName,
  body: Type.Object({ domain: Identifier, pem: Pem, force: Force }),
  response: PinnedOfDomain,
  async handle({ params, body: { domain, pem, force = false }, parts, afterCommit }) {
    await requireApplication(parts.db, params.name)
    const row = await pinPem(parts, { applicationId: params.name, domain }, pem, force)
    afterCommit(() => parts.pinning.forget(params.name))
    return { name: row.domain, ...toCertificate(row, parts.platform.now()) }
  },
  audited: auditedCertificates,
})

const certificateFingerprint = auditedEndpoint({
  route: 'POST /admin/apps/:name/certificates/fingerprint',
  operationId: 'pinFingerprint',
  summary: 'Pins a certificate by its fingerprint',
  params: OfName,
  body: Type.Object({ domain: Identifier, fingerprint: Identifier, expires: Seconds }),
  response: PinnedOfDomain,
  async handle({ params, body: { domain, fingerprint, expires }, parts, afterCommit }) {
    await requireApplication(parts.db, params.name)
    const row = await pinFingerprint(parts, { applicationId: params.name, domain }, fingerprint, new Date(expires * 1000))
    afterCommit(() => parts.pinning.forget(params.name))
    return { name: row.domain, ...toCertificate(row, parts.platform.now()) }
  },
  audited: auditedCertificates,
})

const certificateRemove = auditedEndpoint({
  route: 'DELETE /admin/apps/:name/certificates',
  operationId: 'removeCertificate',
  summary: 'Removes a pinned certificate',
  params: OfName,
  query: Type.Object({ domain: Identifier, fingerprint: Identifier }),
  async handle({ params: { name }, query: { domain, ...query }, parts, afterCommit }) {
    const fingerprint = requireFingerprint(query.fingerprint)
    if (!(await deletePinnedCertificate(parts.db, name, domain, fingerprint)))
      throw notFound('certificate', `with this fingerprint for ${domain} in ${name}`)
    afterCommit(() => parts.pinning.forget(name))
  },
  audited: auditedCertificates,
})

const domainRemove = auditedEndpoint({
  route: 'DELETE /admin/apps/:name/domains',
  operationId: 'removeDomain',
  summary: 'Removes a domain with its certificates',
  params: OfName,
  query: Type.Object({ domain: Identifier }),
  async handle({ params: { name }, query: { domain }, parts, afterCommit }) {
    if (!(await deletePinnedDomain(parts.db, name, domain))) throw notFound('domain', `${domain} in ${name}`)
    afterCommit(() => parts.pinning.forget(name))
  },
  audited: auditedCertificates,
})

const expiredRemove = auditedEndpoint({
  route: 'DELETE /admin/certificates/expired',
  operationId: 'removeExpiredCertificates',
  summary: 'Removes certificates that have ended',
  errors: [],
  response: Type.Object({ status: Type.Literal('OK'), removed: Type.Integer({ description: 'pins that were removed' }) }),
  async handle({ parts, afterCommit }) {
    const removed = await deleteExpiredCertificates(parts.db, new Date(parts.platform.now()))
    afterCommit(() => parts.pinning.forget())
    return { status: 'OK' as const, removed }
  },
  audited: {
    target: () => 'expired certificates',
    view: async (_call, answer) => answer && { removed: answer.removed },
  },
})

export const certificateEndpoints = [
  certificateAuto,
  certificatePem,
  certificateFingerprint,
  certificateRemove,
  domainRemove,
  expiredRemove,
]
