// What the endpoints of pinned certificates share: what the mobile utility publishes for an application (utility §4).
import { Type } from '@sinclair/typebox'
import { warnOfName } from '../../../../domain/pinning/certificate.ts'
import { toBase64 } from '../../../../lib/base64.ts'
import { toPem } from '../../../../lib/pem.ts'
import { listPinnedCertificates, type PinnedCertificateRow } from '../../../../storage/pinning.ts'
import type { Audited } from '../../audited-endpoint.ts'
import { Identifier, Seconds, toSeconds } from '../../fields.ts'
import { named } from '../../../../http/types.ts'

/** Of the path. */
export const OfApp = Type.Object({ name: Identifier })

/** Of the requests that bring a certificate. */
export const Force = Type.Optional(Type.Boolean({ description: 'pins a certificate for other names too' }))

/** Of a pinned certificate. */
export const certificateMembers = {
  /** Base64 of SHA-256 over the DER bytes. */
  fingerprint: Type.String(),
  expires: Seconds,
  isExpired: Type.Boolean(),
  source: Type.String({ enum: ['pem', 'fetch', 'fingerprint'] }),
  created: Seconds,
  /** Missing where only the fingerprint is known. */
  pem: Type.Optional(Type.String()),
  warning: Type.Optional(Type.String({ description: 'why apps do not find the pin under its name' })),
}

/** A pinned certificate as administrators see it. */
export const PinnedCertificate = Type.Object(certificateMembers)

/** The same with the name of its domain. */
export const PinnedOfDomain = named('PinnedCertificate', Type.Object({ name: Type.String(), ...certificateMembers }))

/** The same of a row; `now` in milliseconds. */
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

/** How changes of the pins of an app are recorded. */
export const auditedCertificates: Audited<unknown, unknown, { readonly name: string }, unknown> = {
  target: ({ params: { name } }) => `certificates of ${name}`,
  view: async ({ params: { name }, tx }) =>
    (await listPinnedCertificates(tx, name)).map(({ domain, fingerprint, expiresAt }) => ({
      domain,
      fingerprint: toBase64(fingerprint),
      expires: toSeconds(expiresAt),
    })),
}
