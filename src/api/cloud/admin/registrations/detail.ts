// GET /admin/applications/{id}/registrations/{activationId}: one registration with its history (cloud §10).
import { type Static, Type } from '@sinclair/typebox'
import { notFound } from '../../../../lib/errors.ts'
import { findRegistrationDetail, type RegistrationDetailRow } from '../../../../storage/activation/search.ts'
import { type HistoryRow, listActivationHistory } from '../../../../storage/activation/history.ts'
import { cloudEndpoint } from '../../endpoint.ts'
import { Identifier, PageLimit } from '../../fields.ts'
import { ListedRegistration, Phase, Time, toListed } from './registration.ts'
import { named } from '../../../../http/types.ts'

const HistoryEntry = Type.Object({
  /** Absent in the entry of the creation. */
  from: Type.Optional(Type.String()),
  to: Type.String(),
  reason: Type.Optional(Type.String()),
  externalUserId: Type.Optional(Type.String()),
  timestamp: Time,
})

const RegistrationDetail = named(
  'RegistrationDetail',
  Type.Composite([
    ListedRegistration,
    Type.Object({
      blockReason: Type.Optional(Type.String()),
      /** The end of a temporary block. */
      timestampBlockExpire: Type.Optional(Time),
      flags: Type.Array(Type.String()),
      /** In protocol 4: the phone has not confirmed its activation yet. */
      isConfirmationPending: Type.Optional(Type.Boolean()),
      isBiometryEnabled: Type.Optional(Type.Boolean()),
      /** In protocol 3: the phone has begun to move to protocol 4. */
      isUpgradePending: Type.Optional(Type.Boolean()),
      activationFingerprint: Type.Optional(Type.String()),
      failedAttempts: Type.Integer(),
      maxFailedAttempts: Type.Integer(),
      commitPhase: Phase,
      /** Whether one is still to be given. */
      isOtpDemanded: Type.Boolean(),
      extras: Type.Optional(Type.String()),
      externalId: Type.Optional(Type.String()),
      /** Of CREATED and PENDING_COMMIT. */
      timestampExpires: Type.Optional(Time),
      /** Newest first. */
      history: Type.Array(HistoryEntry),
      /** Leads to older entries; absent when there are none. */
      next: Type.Optional(Type.String()),
    }),
  ]),
)

export const registrationDetail = cloudEndpoint({
  method: 'GET',
  path: '/admin/applications/:id/registrations/:activationId',
  operationId: 'readRegistrationDetail',
  summary: 'A registration with its history',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin', 'read-only'],
  params: Type.Object({ id: Identifier, activationId: Identifier }),
  query: Type.Object({
    /** Of entries of the history. */
    limit: PageLimit(1_000),
    /** `next` of another answer. */
    before: Type.Optional(
      Type.String({ pattern: '^[0-9]{1,18}$', description: 'must be the next of another answer', examples: ['100'] }),
    ),
  }),
  response: RegistrationDetail,
  async handle({ params: { id, activationId }, query: { limit = HISTORY_ROWS, before = null }, parts }) {
    const row = await findRegistrationDetail(parts.db, id, activationId, new Date(parts.platform.now()))
    if (row === undefined) throw notFound(`activation ${activationId} in ${id}`)
    const history = await listActivationHistory(parts.db, activationId, limit + 1, before)
    const page = history.slice(0, limit)
    const last = history.length > limit ? page.at(-1) : undefined
    return { ...toDetail(row, page), ...(last && { next: last.sequence }) }
  },
})

const toDetail = (row: RegistrationDetailRow, history: readonly HistoryRow[]): Static<typeof RegistrationDetail> => ({
  ...toListed(row),
  ...(row.blockedReason !== null && { blockReason: row.blockedReason }),
  ...(row.blockExpiresAt !== null && { timestampBlockExpire: row.blockExpiresAt.getTime() }),
  flags: [...row.flags],
  ...(row.protocolVersion === 4 && { isConfirmationPending: row.isConfirmationPending }),
  ...(row.isBiometryEnabled !== null && { isBiometryEnabled: row.isBiometryEnabled }),
  ...(row.protocolVersion === 3 && { isUpgradePending: row.isUpgradePending }),
  ...(row.activationFingerprint !== null && { activationFingerprint: row.activationFingerprint }),
  failedAttempts: row.failedAttempts,
  maxFailedAttempts: row.maxFailedAttempts,
  commitPhase: row.commitPhase,
  isOtpDemanded: row.hasOtp && row.state !== 'REMOVED',
  ...(row.extras !== null && { extras: row.extras }),
  ...(row.externalId !== null && { externalId: row.externalId }),
  ...((row.state === 'CREATED' || row.state === 'PENDING_COMMIT') && { timestampExpires: row.expiresAt.getTime() }),
  history: history.map(({ fromState, toState, reason, externalUserId, occurredAt }) => ({
    ...(fromState !== null && { from: fromState }),
    to: toState,
    ...(reason !== null && { reason }),
    ...(externalUserId !== null && { externalUserId }),
    timestamp: occurredAt.getTime(),
  })),
})

const HISTORY_ROWS = 100
