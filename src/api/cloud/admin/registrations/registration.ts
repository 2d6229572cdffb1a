// What the endpoints of registrations share: the schemas, and a registration in a list (v3 §8.5, cloud §10).
import { type Static, Type } from '@sinclair/typebox'
import { findRegistration } from '../../../../storage/activation/find.ts'
import type { ListedRegistrationRow } from '../../../../storage/activation/search.ts'
import type { ActivationState, CommitPhase } from '../../../../storage/schema.ts'
import type { Audited } from '../../audited-endpoint.ts'
import { Identifier } from '../../fields.ts'
import { named } from '../../../../http/types.ts'

/** Of the path. */
export const OfApplication = Type.Object({ id: Identifier })

export const Phase = Type.Unsafe<CommitPhase>(Type.String({ enum: ['ON_COMMIT', 'ON_KEY_EXCHANGE'] }))

export const State = Type.Unsafe<ActivationState>(
  Type.String({ enum: ['CREATED', 'PENDING_COMMIT', 'ACTIVE', 'BLOCKED', 'REMOVED'] }),
)

export const Time = Type.Integer({ description: 'milliseconds since 1970-01-01 UTC' })

/** A registration in a list. */
export const ListedRegistration = named(
  'ListedRegistration',
  Type.Object({
    activationId: Type.String(),
    userId: Type.String(),
    state: State,
    name: Type.Optional(Type.String()),
    platform: Type.Optional(Type.String()),
    deviceInfo: Type.Optional(Type.String()),
    /** Generation, from the key exchange on: 3 or 4. */
    protocolVersion: Type.Optional(Type.Integer()),
    /** Of the key agreement, in protocol 4. */
    algorithm: Type.Optional(Type.String()),
    timestampCreated: Time,
    timestampLastUsed: Type.Optional(Time),
  }),
)

/** How changes of a registration are recorded. */
export const auditedRegistration: Audited<{ readonly userId: string }, unknown, { readonly id: string }, unknown> = {
  target: ({ params: { id }, body: { userId } }) => `registration of ${userId} in ${id}`,
  view: async ({ params: { id }, body: { userId }, tx, parts }) => {
    const row = await findRegistration(tx, id, userId, new Date(parts.platform.now()))
    return row && { activationId: row.activationId, state: row.state }
  },
}

export const toListed = (row: ListedRegistrationRow): Static<typeof ListedRegistration> => ({
  activationId: row.activationId,
  userId: row.userId,
  state: row.state,
  ...(row.name !== null && { name: row.name }),
  ...(row.platform !== null && { platform: row.platform }),
  ...(row.deviceInfo !== null && { deviceInfo: row.deviceInfo }),
  ...(row.protocolVersion !== null && { protocolVersion: row.protocolVersion }),
  ...(row.algorithm !== null && { algorithm: row.algorithm }),
  timestampCreated: row.createdAt.getTime(),
  ...(row.lastUsedAt !== null && { timestampLastUsed: row.lastUsedAt.getTime() }),
})
