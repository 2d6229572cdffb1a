// /admin/apps/{name}/certificates and /domains: what the mobile utility publishes for an application. Spec: utility §4.
import { Type } from '@sinclair/typebox'
import { requireApplication } from '../../../domain/application/application.ts'
import {
  pinFingerprint,
  pinLive,
  pinPem,
  readLive,
  requireDomainName,
  requireFingerprint,
} from '../../../domain/pinning/certificate.ts'
import { Ok } from '../../../http/types.ts'
import { toBase64 } from '../../../lib/base64.ts'
import { notFound } from '../../../lib/errors.ts'
import { toPem } from '../../../lib/pem.ts'
import {
  deleteExpiredCertificates,
  deletePinnedCertificate,
  deletePinnedDomain,
  listPinnedCertificates,
  type PinnedCertificateRow,
} from '../../../storage/pinning.ts'
import { type Audited, cloudEndpoint } from '../endpoint.ts'
import { Identifier, Seconds, toSeconds } from '../fields.ts'

const OfApp = Type.Object({ name: Identifier })
const Force = Type.Optional(Type.Boolean({ description: 'pins a certificate for other names too' }))
const Pem = Type.String({
  pattern: '^[^\\u0000]{1,65536}$',
  description: 'must be a certificate in PEM, at most 65536 characters',
})
const Port = Type.Integer({ minimum: 1, maximum: 65_535, default: 443, description: 'must be a port' })

const members = {
  /** Base64 of SHA-256 over the DER bytes. */
  fingerprint: Type.String(),
  expires: Seconds,
  isExpired: Type.Boolean(),
  source: Type.String({ enum: ['pem', 'fetch', 'fingerprint'] }),
  created: Seconds,
  /** Missing where only the fingerprint is known. */
  pem: Type.Optional(Type.String()),
}

/** A pinned certificate as administrators see it. */
export const PinnedCertificate = Type.Object(members)
const PinnedOfDomain = Type.Object({ name: Type.String(), ...members })

/** The same of a row; `now` in milliseconds. */
export const toCertificate = (row: PinnedCertificateRow, now: number) => ({
  fingerprint: toBase64(row.fingerprint),
  expires: toSeconds(row.expiresAt),
  isExpired: row.expiresAt.getTime() < now,
  source: row.source,
  created: toSeconds(row.createdAt),
  ...(row.certificate !== null && { pem: toPem(row.certificate) }),
})

const audited: Audited<unknown, unknown, { readonly name: string }, unknown> = {
  target: ({ params: { name } }) => `certificates of ${name}`,
  view: async ({ params: { name }, parts }) =>
    (await listPinnedCertificates(parts.db, name)).map(({ domain, fingerprint, expiresAt }) => ({
      domain,
      fingerprint: toBase64(fingerprint),
      expires: toSeconds(expiresAt),
    })),
}

export const certificatePem = cloudEndpoint({
  method: 'POST',
  path: '/admin/apps/:name/certificates/pem',
  summary: 'Pins a certificate from a PEM file',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfApp,
  body: Type.Object({ domain: Identifier, pem: Pem, force: Force }),
  response: PinnedOfDomain,
  async handle({ params, body: { domain, pem, force = false }, parts, afterCommit }) {
    await requireApplication(parts.db, params.name)
    const row = await pinPem(parts, { applicationId: params.name, domain }, pem, force)
    afterCommit(() => parts.pinning.forget(params.name))
    return { name: row.domain, ...toCertificate(row, parts.platform.now()) }
  },
  audited,
})

export const certificateFingerprint = cloudEndpoint({
  method: 'POST',
  path: '/admin/apps/:name/certificates/fingerprint',
  summary: 'Pins a certificate by its fingerprint',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfApp,
  body: Type.Object({ domain: Identifier, fingerprint: Identifier, expires: Seconds }),
  response: PinnedOfDomain,
  async handle({ params, body: { domain, fingerprint, expires }, parts, afterCommit }) {
    await requireApplication(parts.db, params.name)
    const row = await pinFingerprint(parts, { applicationId: params.name, domain }, fingerprint, new Date(expires * 1000))
    afterCommit(() => parts.pinning.forget(params.name))
    return { name: row.domain, ...toCertificate(row, parts.platform.now()) }
  },
  audited,
})

export const certificateAuto = cloudEndpoint({
  method: 'POST',
  path: '/admin/apps/:name/certificates/auto',
  summary: 'Pins the certificate that a server shows',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfApp,
  body: Type.Object({ domain: Identifier, port: Port, force: Force }),
  response: Type.Object({
    name: Type.String(),
    ...members,
    isChainTrusted: Type.Boolean(),
    /** Why the chain or the name does not verify with the public roots. */
    chainProblem: Type.Optional(Type.String()),
  }),
  // A connection to somewhere else has no place in a transaction.
  async prepare({ params, body: { domain, port, force = false }, parts }) {
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
  audited,
})

export const certificateRemove = cloudEndpoint({
  method: 'DELETE',
  path: '/admin/apps/:name/certificates',
  summary: 'Removes a pinned certificate',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfApp,
  query: Type.Object({ domain: Identifier, fingerprint: Identifier }),
  response: Ok,
  async handle({ params: { name }, query, parts, afterCommit }) {
    const [domain, fingerprint] = [requireDomainName(query.domain), requireFingerprint(query.fingerprint)]
    if (!(await deletePinnedCertificate(parts.db, name, domain, fingerprint)))
      throw notFound(`such certificate of ${domain} in ${name}`)
    afterCommit(() => parts.pinning.forget(name))
    return { status: 'OK' as const }
  },
  audited,
})

export const domainRemove = cloudEndpoint({
  method: 'DELETE',
  path: '/admin/apps/:name/domains',
  summary: 'Removes a domain with its certificates',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfApp,
  query: Type.Object({ domain: Identifier }),
  response: Ok,
  async handle({ params: { name }, query, parts, afterCommit }) {
    const domain = requireDomainName(query.domain)
    if (!(await deletePinnedDomain(parts.db, name, domain))) throw notFound(`domain ${domain} in ${name}`)
    afterCommit(() => parts.pinning.forget(name))
    return { status: 'OK' as const }
  },
  audited,
})

export const expiredRemove = cloudEndpoint({
  method: 'DELETE',
  path: '/admin/certificates/expired',
  summary: 'Removes certificates that have ended',
  errors: [],
  roles: ['admin'],
  response: Type.Object({ status: Type.Literal('OK'), removed: Type.Integer() }),
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
