// /admin/audit: what administrators changed, and whether the audit logs are as they were written (cloud §7, §10).
import { Type } from '@sinclair/typebox'
import { requireApplication } from '../../../domain/application/application.ts'
import { readAuditLog } from '../../../domain/audit/audit.ts'
import { listAdminEvents } from '../../../storage/credential/admin-events.ts'
import { cloudEndpoint } from '../endpoint.ts'
import { Identifier, OfId, OptionalTime, UserId } from '../fields.ts'
import { cutPage, PageLimit } from '../paging.ts'

/** Without a limit as many items as there may be. */
const ITEMS_MAX = 1_000

/** GET /admin/audit: what administrators changed (cloud §7, §10). */
export const adminAudit = cloudEndpoint({
  method: 'GET',
  path: '/admin/audit',
  operationId: 'listAdminEvents',
  summary: 'What administrators changed',
  errors: [],
  roles: ['admin', 'read-only'],
  query: Type.Object({
    username: Type.Optional(Identifier),
    action: Type.Optional(Identifier),
    timestampFrom: OptionalTime,
    timestampTo: OptionalTime,
    /** The `next` of the page before. */
    before: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
    limit: PageLimit(ITEMS_MAX),
  }),
  // Newest first.
  response: Type.Object({
    items: Type.Array(
      Type.Object({
        id: Type.Integer(),
        timestamp: Type.Integer(),
        username: Type.String(),
        action: Type.String(),
        target: Type.String(),
        before: Type.Optional(Type.Unknown()),
        after: Type.Optional(Type.Unknown()),
      }),
    ),
    /** Leads to the next page; absent on the last one. */
    next: Type.Optional(Type.Integer()),
  }),
  async handle({ query: { username, action, timestampFrom, timestampTo, before, limit = ITEMS_MAX }, parts }) {
    const from = timestampFrom === undefined ? undefined : new Date(timestampFrom)
    const to = timestampTo === undefined ? undefined : new Date(timestampTo)
    const events = await listAdminEvents(parts.db, { username, action, from, to, beforeSequence: before, limit: limit + 1 })
    const { page, last } = cutPage(events, limit)
    return {
      items: page.map((event) => ({
        id: event.sequence,
        timestamp: event.occurredAt.getTime(),
        username: event.username,
        action: event.action,
        target: event.target,
        ...(event.before !== undefined && { before: event.before }),
        ...(event.after !== undefined && { after: event.after }),
      })),
      ...(last && { next: last.sequence }),
    }
  },
})

/** GET /admin/applications/{id}/audit: what the phones of a user did, and who had it checked (cloud §7, §10). */
export const applicationAudit = cloudEndpoint({
  method: 'GET',
  path: '/admin/applications/:id/audit',
  operationId: 'listDeviceEvents',
  summary: 'What the phones of a user did, and which back end had it checked',
  description:
    'The rows of `GET /audit/log` with `verifiedBy`, the user name of the credential that called `/verification`, or removed a token.',
  errors: ['ADMINISTRATION_REFUSED', 'AUDIT_REFUSED'],
  roles: ['admin', 'read-only'],
  params: OfId,
  query: Type.Object({
    userId: UserId,
    /** Only what happened to this one of the user's activations. */
    activationId: Type.Optional(Identifier),
    /** Only what a back end had verified: the rows with `verifiedBy`. */
    onlyVerified: Type.Optional(Type.Boolean()),
    timestampFrom: OptionalTime,
    timestampTo: OptionalTime,
    /** The `next` of the page before. */
    before: OptionalTime,
    limit: PageLimit(ITEMS_MAX),
  }),
  // Newest first.
  response: Type.Object({
    items: Type.Array(
      Type.Object({
        activationId: Type.String(),
        eventType: Type.String(),
        eventData: Type.String(),
        verifiedBy: Type.Optional(Type.String()),
        timestamp: Type.Integer(),
      }),
    ),
    /** Leads to the next page; absent on the last one. */
    next: Type.Optional(Type.Integer()),
  }),
  async handle({ params: { id }, query, parts }) {
    await requireApplication(parts.db, id)
    const { userId, activationId, onlyVerified, timestampFrom, timestampTo, before, limit = ITEMS_MAX } = query
    const toDate = (time: number | undefined, without: number): Date => new Date(time ?? without)
    const { items, next } = await readAuditLog(parts, {
      applicationId: id,
      userId,
      activationId,
      isVerified: onlyVerified,
      from: toDate(timestampFrom, 0),
      to: toDate(timestampTo, parts.platform.now()),
      before: before === undefined ? null : new Date(before),
      limit,
    })
    return {
      items: items.map(({ activationId, eventType, eventData, verifiedBy, occurredAt }) => ({
        activationId,
        eventType,
        eventData,
        ...(verifiedBy !== null && { verifiedBy }),
        timestamp: occurredAt.getTime(),
      })),
      ...(next !== undefined && { next: next.getTime() }),
    }
  },
})

/** GET /admin/audit/verification: whether the audit logs are as they were written (cloud §7). */
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
