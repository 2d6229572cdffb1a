// PUT /admin/users/{name}/allowed-addresses: where a credential may be used from (cloud §2.2).
import { Type } from '@sinclair/typebox'
import { Ok } from '../../../../http/types.ts'
import { auditedEndpoint } from '../../audited-endpoint.ts'
import { AllowedAddresses, auditedUser, OfUser, requireRanges } from './user.ts'

export const userAllowedAddresses = auditedEndpoint({
  method: 'PUT',
  path: '/admin/users/:name/allowed-addresses',
  operationId: 'replaceAllowedAddresses',
  summary: 'Says which addresses a credential may be used from',
  description:
    'Addresses and CIDR ranges in place of those there were; none: from anywhere. From elsewhere the right password is a wrong one.',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfUser,
  body: Type.Object({ allowedAddresses: AllowedAddresses }),
  response: Ok,
  async handle({ params: { name }, body: { allowedAddresses }, tx, parts, afterCommit }) {
    requireRanges(allowedAddresses)
    await parts.credentials.restrict(tx, name, allowedAddresses)
    afterCommit(parts.credentials.forget)
    return { status: 'OK' as const }
  },
  audited: auditedUser,
})
