// GET /admin/applications/{id}/registrations: search with paging (cloud §10).
import { Type } from '@sinclair/typebox'
import { requireApplication } from '../../../../domain/application/application.ts'
import { type ListedRegistrationRow, listRegistrations } from '../../../../storage/activation/search.ts'
import { cloudEndpoint } from '../../endpoint.ts'
import { UserId } from '../../fields.ts'
import { ListedRegistration, OfApplication, State, toListed } from './registration.ts'

// Time of creation and id of the last one shown. The time stays within what both databases and JavaScript can say.
const CURSOR = /^(\d{1,14})_([0-9a-f-]{36})$/

export const registrationsList = cloudEndpoint({
  method: 'GET',
  path: '/admin/applications/:id/registrations',
  operationId: 'listRegistrations',
  summary: 'Searches registrations of an application',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin', 'read-only'],
  params: OfApplication,
  query: Type.Object({
    userId: Type.Optional(UserId),
    state: Type.Optional(State),
    protocolVersion: Type.Optional(Type.Integer({ minimum: 3, maximum: 4 })),
    limit: Type.Integer({ minimum: 1, maximum: 100, default: 50 }),
    cursor: Type.Optional(
      Type.String({
        pattern: CURSOR.source,
        description: 'must be the nextCursor of an answer',
        examples: ['1767225600000_3f2504e0-4f89-41d3-9a0c-0305e82c3301'],
      }),
    ),
  }),
  /** `nextCursor` leads to the next page; absent on the last one. */
  response: Type.Object({ registrations: Type.Array(ListedRegistration), nextCursor: Type.Optional(Type.String()) }),
  async handle({ params: { id }, query: { userId, state, protocolVersion, limit, cursor }, parts }) {
    await requireApplication(parts.db, id)
    const rows = await listRegistrations(parts.db, {
      applicationId: id,
      userId: userId ?? null,
      state: state ?? null,
      protocolVersion: protocolVersion ?? null,
      after: cursor === undefined ? null : parseCursor(cursor),
      at: new Date(parts.platform.now()),
      limit: limit + 1,
    })
    const page = rows.slice(0, limit)
    const last = rows.length > limit ? page.at(-1) : undefined
    return {
      registrations: page.map(toListed),
      ...(last && { nextCursor: toCursor(last) }),
    }
  },
})

const toCursor = ({ createdAt, activationId }: ListedRegistrationRow): string => `${createdAt.getTime()}_${activationId}`

function parseCursor(cursor: string): { createdAt: Date; activationId: string } {
  const [, time = '', activationId = ''] = CURSOR.exec(cursor) ?? []
  return { createdAt: new Date(Number(time)), activationId }
}
