// GET /admin/applications/{id}/registrations: search with paging (cloud §10).
import { Type } from '@sinclair/typebox'
import { requireApplication } from '../../../../domain/application/application.ts'
import { listRegistrations } from '../../../../storage/activation/search.ts'
import { Cursor, cutPage, NextCursor, parseCursor } from '../../cursor.ts'
import { cloudEndpoint } from '../../endpoint.ts'
import { UserId } from '../../fields.ts'
import { ListedRegistration, OfApplication, State, toListed } from './registration.ts'

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
    cursor: Cursor,
  }),
  response: Type.Object({ registrations: Type.Array(ListedRegistration), nextCursor: NextCursor }),
  async handle({ params: { id }, query: { userId, state, protocolVersion, limit, cursor }, parts }) {
    await requireApplication(parts.db, id)
    const place = cursor === undefined ? undefined : parseCursor(cursor)
    const rows = await listRegistrations(parts.db, {
      applicationId: id,
      userId: userId ?? null,
      state: state ?? null,
      protocolVersion: protocolVersion ?? null,
      after: place ? { createdAt: place.createdAt, activationId: place.id } : null,
      at: new Date(parts.platform.now()),
      limit: limit + 1,
    })
    const { page, next } = cutPage(rows, limit, ({ createdAt, activationId }) => ({ createdAt, id: activationId }))
    return { registrations: page.map(toListed), ...next }
  },
})
