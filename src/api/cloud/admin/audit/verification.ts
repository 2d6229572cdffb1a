// GET /admin/audit/verification: whether the audit logs are as they were written (cloud §7).
import { Type } from '@sinclair/typebox'
import { cloudEndpoint } from '../../endpoint.ts'

export const auditVerification = cloudEndpoint({
  method: 'GET',
  path: '/admin/audit/verification',
  operationId: 'verifyAudit',
  summary: 'Verifies the seals of the audit log',
  errors: [],
  roles: ['admin', 'read-only'],
  response: Type.Object({
    isIntact: Type.Boolean(),
    chains: Type.Array(
      Type.Object({
        chain: Type.String(),
        isIntact: Type.Boolean(),
        sealed: Type.Integer(),
        unsealed: Type.Integer(),
        startPosition: Type.Integer(),
        headPosition: Type.Integer(),
        headSeal: Type.String(),
        fault: Type.Optional(
          Type.Object({
            problem: Type.String(),
            position: Type.Optional(Type.Integer()),
            sequence: Type.Optional(Type.Integer()),
          }),
        ),
      }),
    ),
  }),
  async handle({ parts }) {
    const { isIntact, chains } = await parts.verifyAudit()
    return { isIntact, chains: [...chains] }
  },
})
