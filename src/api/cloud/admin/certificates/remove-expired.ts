// DELETE /admin/certificates/expired: takes away pins of certificates that have ended (utility §4).
import { Type } from '@sinclair/typebox'
import { deleteExpiredCertificates } from '../../../../storage/pinning.ts'
import { auditedEndpoint } from '../../audited-endpoint.ts'

export const expiredRemove = auditedEndpoint({
  method: 'DELETE',
  path: '/admin/certificates/expired',
  operationId: 'removeExpiredCertificates',
  summary: 'Removes certificates that have ended',
  errors: [],
  roles: ['admin'],
  response: Type.Object({ status: Type.Literal('OK'), removed: Type.Integer() }),
  async handle({ tx, parts, afterCommit }) {
    const removed = await deleteExpiredCertificates(tx, new Date(parts.platform.now()))
    afterCommit(() => parts.pinning.forget())
    return { status: 'OK' as const, removed }
  },
  audited: {
    target: () => 'expired certificates',
    view: async (_call, answer) => answer && { removed: answer.removed },
  },
})
