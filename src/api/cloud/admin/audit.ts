// /admin/audit: shows the changes of administrators and the events of an application's phones, and verifies the audit logs (cloud §7, §10).
import { type Static, Type } from '@sinclair/typebox'
import { requireApplication } from '../../../domain/application/application.ts'
import { readAuditLog } from '../../../domain/audit/audit.ts'
import { listAdminEvents } from '../../../storage/credential/admin-events.ts'
import { withExample } from '../../../http/types.ts'
import { requestRefused } from '../../../lib/errors.ts'
import { adminRead } from '../endpoint.ts'
import { cutPage, Identifier, MadeId, OfId, OptionalTime, PageLimit, Time, UserId } from '../fields.ts'

/** Throws REQUEST_INVALID for a range that ends before it begins: an empty list would say that nothing happened. */
function refuseReversed({ timestampFrom = 0, timestampTo = Infinity }: { timestampFrom?: number; timestampTo?: number }): void {
  if (timestampFrom > timestampTo) throw requestRefused('timestampFrom', 'must not be after timestampTo', String(timestampFrom))
}

const NextPage = Type.Optional(Type.Integer({ description: 'leads to the next page; absent on the last one' }))

const AdminEvent = Type.Object({
  id: Type.Integer({ description: 'counts up' }),
  timestamp: Time,
  username: Type.String(),
  action: Type.String(),
  target: Type.String(),
  before: Type.Optional(Type.Unknown()),
  after: Type.Optional(Type.Unknown()),
})
export type AdminEvent = Static<typeof AdminEvent>

const AdminEvents = Type.Object({ items: Type.Array(AdminEvent), next: NextPage })
export type AdminEvents = Static<typeof AdminEvents>

const DeviceEvent = Type.Object({
  activationId: Type.String(),
  eventType: Type.String(),
  eventData: Type.String(),
  verifiedBy: Type.Optional(Type.String()),
  timestamp: Time,
})
export type DeviceEvent = Static<typeof DeviceEvent>

const DeviceEvents = Type.Object({ items: Type.Array(DeviceEvent), next: NextPage })
export type DeviceEvents = Static<typeof DeviceEvents>

const adminAudit = adminRead({
  route: 'GET /admin/audit',
  operationId: 'listAdminEvents',
  summary: 'What administrators changed',
  description: 'The newest first.',
  query: Type.Object({
    username: Type.Optional(withExample(Identifier, 'admin')),
    action: Type.Optional(withExample(Identifier, 'POST /admin/users')),
    timestampFrom: OptionalTime,
    timestampTo: OptionalTime,
    before: Type.Optional(
      Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: '`next` of the page before' }),
    ),
    limit: PageLimit(1_000, 1_000),
  }),
  response: AdminEvents,
  async handle({ query, parts }) {
    refuseReversed(query)
    const { username, action, timestampFrom, timestampTo, before, limit } = query
    const from = timestampFrom === undefined ? undefined : new Date(timestampFrom)
    const to = timestampTo === undefined ? undefined : new Date(timestampTo)
    const events = await listAdminEvents(parts.db, { username, action, from, to, beforeSequence: before, limit: limit + 1 })
    const { page, last } = cutPage(events, limit)
    return {
      items: page.map(({ sequence, occurredAt, ...event }) => ({ id: sequence, timestamp: occurredAt.getTime(), ...event })),
      ...(last && { next: last.sequence }),
    }
  },
})

const applicationAudit = adminRead({
  route: 'GET /admin/applications/:id/audit',
  operationId: 'listDeviceEvents',
  summary: 'What the phones of a user did, and which back end had it checked',
  description:
    'The rows of `GET /audit/log` with `verifiedBy`, the user name of the credential that called a door, made or changed a registration or an ' +
    'operation, or removed a token. The newest first, from the beginning on where no `timestampFrom` is given. There may be more than `limit`: all that share ' +
    'the millisecond of the last one.',
  errors: ['ADMINISTRATION_REFUSED', 'AUDIT_REFUSED'],
  params: OfId,
  query: Type.Object({
    userId: UserId,
    activationId: Type.Optional(MadeId),
    onlyVerified: Type.Optional(Type.Boolean({ description: 'only the rows of what a back end had verified' })),
    timestampFrom: OptionalTime,
    timestampTo: OptionalTime,
    before: OptionalTime,
    limit: PageLimit(1_000, 1_000),
  }),
  response: DeviceEvents,
  async handle({ params: { id }, query, parts }) {
    refuseReversed(query)
    await requireApplication(parts.db, id)
    const { userId, activationId, onlyVerified: isVerified, timestampFrom = 0, before, limit } = query
    const { items, next } = await readAuditLog(parts, {
      applicationId: id,
      userId,
      activationId,
      isVerified,
      limit,
      from: new Date(timestampFrom),
      to: new Date(query.timestampTo ?? parts.platform.now()),
      before: before === undefined ? null : new Date(before),
    })
    return {
      items: items.map(({ verifiedBy, occurredAt, ...item }) => ({
        ...item,
        ...(verifiedBy !== null && { verifiedBy }),
        timestamp: occurredAt.getTime(),
      })),
      ...(next !== undefined && { next: next.getTime() }),
    }
  },
})

const Chain = Type.Object({
  chain: Type.String(),
  isIntact: Type.Boolean(),
  sealed: Type.Integer({ description: 'rows whose seal is right; up to the fault where there is one' }),
  unsealed: Type.Integer({ description: 'rows that wait for their seal' }),
  startPosition: Type.Integer({ description: 'how many rows retention has removed' }),
  headPosition: Type.Integer({ description: 'of the last row that is sealed, counted from the first one ever' }),
  headSeal: Type.String({
    description:
      'of that row, in hexadecimal; noted elsewhere, position and seal tell later whether the log was cut or written anew',
  }),
  fault: Type.Optional(
    Type.Object({
      problem: Type.String(),
      position: Type.Optional(Type.Integer({ description: 'in the chain' })),
      sequence: Type.Optional(Type.Integer({ description: 'of the row, in its table' })),
    }),
  ),
})
export type Chain = Static<typeof Chain>

const auditVerification = adminRead({
  route: 'GET /admin/audit/verification',
  operationId: 'verifyAudit',
  summary: 'Verifies the seals of the audit log',
  response: Type.Object({ isIntact: Type.Boolean(), chains: Type.Array(Chain) }),
  async handle({ parts }) {
    const { isIntact, chains } = await parts.verifyAudit()
    return { isIntact, chains: [...chains] }
  },
})

export const auditEndpoints = [adminAudit, applicationAudit, auditVerification]
