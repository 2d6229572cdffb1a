// GET /audit/log: lists the events of the devices of a user. Spec: cloud §7.
import { Type } from '@sinclair/typebox'
import { auditRefused, readAuditLog } from '../../domain/audit/audit.ts'
import { findApplicationOf, refuseWithoutApplication } from './application-of.ts'
import { cloudEndpoint } from './endpoint.ts'
import { PageLimit, Time, UserId } from './fields.ts'

const AnyTime = Type.Unknown({ description: 'milliseconds since 1970-01-01 UTC', examples: ['1767225600000'] })

export const auditLog = cloudEndpoint({
  route: 'GET /audit/log',
  operationId: 'readAuditLog',
  summary: 'What happened to the device of a user',
  description:
    'The newest first, of the last 30 days where no `timestampFrom` is given. There may be more than `limit`: all that share the millisecond of ' +
    'the last one.',
  errors: ['AUDIT_REFUSED'],
  roles: ['admin', 'integration', 'read-only'],
  query: Type.Object({
    userId: UserId,
    // The handler parses times, because a wrong time has an error code of its own.
    timestampFrom: Type.Optional(AnyTime),
    timestampTo: Type.Optional(AnyTime),
    before: Type.Optional(AnyTime),
    limit: PageLimit(1_000, 1_000),
  }),
  response: Type.Object({
    items: Type.Array(
      Type.Object({ activationId: Type.String(), eventType: Type.String(), eventData: Type.String(), timestamp: Time }),
    ),
    next: Type.Optional(Type.Integer({ description: '`before` of the next page; absent on the last one' })),
  }),
  async handle(call) {
    const { userId, timestampFrom, timestampTo, before, limit } = call.query
    const now = call.parts.platform.now()
    const from = parseTime('timestampFrom', timestampFrom) ?? new Date(now - RANGE_MS)
    const to = parseTime('timestampTo', timestampTo) ?? new Date(now)
    if (from > to && timestampFrom === undefined)
      throw auditRefused('timestampTo', 'is over 30 days ago: give timestampFrom, too')
    if (from > to)
      throw auditRefused('timestampFrom', timestampTo === undefined ? 'is in the future' : 'must not be after timestampTo')
    const range = { from, to, before: parseTime('before', before) ?? null, limit }
    const applicationId = await findApplicationOf(call)
    // A credential without an application cannot see any user.
    if (!applicationId) throw await refuseWithoutApplication(call, 'AUDIT_REFUSED')
    const { items, next } = await readAuditLog(call.parts, { applicationId, userId, ...range })
    return {
      items: items.map(({ occurredAt, verifiedBy: _, ...item }) => ({ ...item, timestamp: occurredAt.getTime() })),
      ...(next !== undefined && { next: next.getTime() }),
    }
  },
})

/** Parses milliseconds since 1970. A time after the year 9999 is the end of that year. Throws AUDIT_REFUSED for anything else. */
function parseTime(name: string, value: unknown): Date | undefined {
  if (value === undefined) return undefined
  if (typeof value !== 'string' || !/^\d{1,19}$/.test(value))
    throw auditRefused(name, 'must be milliseconds since 1970-01-01 UTC')
  return new Date(Math.min(Number(value), TIME_MAX))
}

const TIME_MAX = 253_402_300_799_999
const RANGE_MS = 30 * 86_400_000
