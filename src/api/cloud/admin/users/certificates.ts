// PUT /admin/users/{name}/certificates: client certificates that stand for a credential (cloud §2.3).
import { Type } from '@sinclair/typebox'
import { Ok } from '../../../../http/types.ts'
import { auditedEndpoint } from '../../audited-endpoint.ts'
import { auditedUser, OfUser } from './user.ts'

// SHA-256 of nothing.
const EXAMPLE = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

export const userCertificates = auditedEndpoint({
  method: 'PUT',
  path: '/admin/users/:name/certificates',
  operationId: 'replaceClientCertificates',
  summary: 'Says which client certificates stand for a credential',
  description:
    'SHA-256 fingerprints in place of those there were. On a listener with TLS a caller with one of them needs no password. The password stays good.',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfUser,
  body: Type.Object({
    certificates: Type.Array(
      Type.String({ pattern: '^[0-9a-f]{64}$', description: 'must be 64 hexadecimal digits in lower case', examples: [EXAMPLE] }),
      { maxItems: 10, uniqueItems: true },
    ),
  }),
  response: Ok,
  async handle({ params: { name }, body: { certificates }, tx, parts, afterCommit }) {
    await parts.credentials.assignCertificates(tx, name, certificates)
    afterCommit(parts.credentials.forget)
    return { status: 'OK' as const }
  },
  audited: auditedUser,
})
