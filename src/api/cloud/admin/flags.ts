// PUT /admin/activations/{id}/flags: replaces the flags of an activation. The contract does not have this endpoint (cloud §10).
import { Type } from '@sinclair/typebox'
import { notFound } from '../../../lib/errors.ts'
import { findActivationFlags, setActivationFlags } from '../../../storage/activation/change.ts'
import { auditedEndpoint } from '../audited-endpoint.ts'
import { Flags, OfMadeId } from '../fields.ts'

const FlagsBody = Type.Object({ flags: Flags })

export const activationFlags = auditedEndpoint({
  route: 'PUT /admin/activations/:id/flags',
  operationId: 'replaceFlags',
  summary: 'Replaces the flags of an activation',
  params: OfMadeId,
  body: FlagsBody,
  response: FlagsBody,
  async handle({ params: { id }, body: { flags }, parts, caller }) {
    const isStored = await setActivationFlags(parts.db, id, flags, new Date(parts.platform.now()), caller.username)
    if (!isStored) throw notFound('activation', `${id} that is live`)
    return { flags }
  },
  audited: {
    target: ({ params: { id } }) => `activation ${id}`,
    view: async ({ params: { id }, parts }) => ({ flags: await findActivationFlags(parts.db, id) }),
  },
})
