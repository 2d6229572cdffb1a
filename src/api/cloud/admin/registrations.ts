// /admin/applications/{id}/registrations: registrations with an OTP and a commit phase, and the search for them (v3 §8.5, cloud §10).
import { type Static, Type } from '@sinclair/typebox'
import { requireApplication } from '../../../domain/application/application.ts'
import { commitRegistration, createRegistration, prepareCommit } from '../../../domain/activation/registration.ts'
import { Ok } from '../../../http/types.ts'
import { notFound, PawlError } from '../../../lib/errors.ts'
import { findRegistration } from '../../../storage/activations.ts'
import {
  findRegistrationDetail,
  type HistoryRow,
  listActivationHistory,
  type ListedRegistrationRow,
  listRegistrations,
  type RegistrationDetailRow,
} from '../../../storage/registrations.ts'
import type { ActivationState, CommitPhase } from '../../../storage/schema.ts'
import { type Audited, cloudEndpoint } from '../endpoint.ts'
import { Identifier, OptionalText, UserId } from '../fields.ts'

// Time of creation and id of the last one shown. The time stays within what both databases and JavaScript can say.
const CURSOR = /^(\d{1,14})_([0-9a-f-]{36})$/
const roles = ['admin'] as const
const path = '/admin/applications/:id/registrations'
const OfApplication = Type.Object({ id: Identifier })
const Phase = Type.Unsafe<CommitPhase>(Type.String({ enum: ['ON_COMMIT', 'ON_KEY_EXCHANGE'] }))
const OptionalPhase = Type.Optional(Phase)
const State = Type.Unsafe<ActivationState>(Type.String({ enum: ['CREATED', 'PENDING_COMMIT', 'ACTIVE', 'BLOCKED', 'REMOVED'] }))
const Time = Type.Integer({ description: 'milliseconds since 1970-01-01 UTC' })

const ListedRegistration = Type.Object({
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
})
const HistoryEntry = Type.Object({
  /** Absent in the entry of the creation. */
  from: Type.Optional(Type.String()),
  to: Type.String(),
  reason: Type.Optional(Type.String()),
  externalUserId: Type.Optional(Type.String()),
  timestamp: Time,
})
const RegistrationDetail = Type.Composite([
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
  }),
])

const audited: Audited<{ readonly userId: string }, unknown, { readonly id: string }, unknown> = {
  target: ({ params: { id }, body: { userId } }) => `registration of ${userId} in ${id}`,
  view: async ({ params: { id }, body: { userId }, parts }) => {
    const row = await findRegistration(parts.db, id, userId, new Date(parts.platform.now()))
    return row && { activationId: row.activationId, state: row.state }
  },
}

const RegistrationRequest = Type.Object({
  userId: UserId,
  otp: Type.Optional(Identifier),
  otpPhase: OptionalPhase,
  commitPhase: OptionalPhase,
})

export const administrationRegistrationCreate = cloudEndpoint({
  method: 'POST',
  path,
  summary: 'Creates a registration, with an OTP where one is wanted',
  errors: ['ADMINISTRATION_REFUSED', 'REGISTRATION_EXISTS'],
  roles,
  params: OfApplication,
  body: RegistrationRequest,
  response: Type.Object({ activationId: Type.String(), activationQrCodeData: Type.String() }),
  prepare: async ({ body, parts }) => {
    const { otp, commitPhase } = toCommitRules(body)
    return { commitPhase, otpHash: otp === null ? null : await parts.activationOtps.hash(otp) }
  },
  async handle({ params: { id }, body, parts }, rules) {
    await requireApplication(parts.db, id)
    return createRegistration(parts, { applicationId: id, userId: body.userId }, rules)
  },
  audited,
})

export const administrationRegistrationCommit = cloudEndpoint({
  method: 'POST',
  path: `${path}/commit`,
  summary: 'Commits a registration, with its OTP',
  errors: ['ADMINISTRATION_REFUSED', 'REGISTRATION_NOT_FOUND', 'OTP_INVALID'],
  roles,
  params: OfApplication,
  body: Type.Object({ userId: UserId, otp: OptionalText, externalUserId: OptionalText }),
  response: Ok,
  prepare: ({ params: { id }, body: { userId, otp }, parts }) => prepareCommit(parts, { applicationId: id, userId }, otp ?? null),
  async handle({ params: { id }, body: { userId, otp, externalUserId }, parts }, judgeOtp) {
    await requireApplication(parts.db, id)
    const given = { otp: otp ?? null, externalUserId: externalUserId ?? null }
    await commitRegistration(parts, { applicationId: id, userId }, given, judgeOtp)
    return { status: 'OK' as const }
  },
  audited: { ...audited, committedRefusal: 'OTP_INVALID' },
})

export const registrationsList = cloudEndpoint({
  method: 'GET',
  path,
  summary: 'Searches registrations of an application',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: [...roles, 'read-only'],
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

export const registrationDetail = cloudEndpoint({
  method: 'GET',
  path: `${path}/:activationId`,
  summary: 'A registration with its history',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: [...roles, 'read-only'],
  params: Type.Object({ id: Identifier, activationId: Identifier }),
  response: RegistrationDetail,
  async handle({ params: { id, activationId }, parts }) {
    const row = await findRegistrationDetail(parts.db, id, activationId, new Date(parts.platform.now()))
    if (row === undefined) throw notFound(`activation ${activationId} in ${id}`)
    return toDetail(row, await listActivationHistory(parts.db, activationId, HISTORY_ROWS_MAX))
  },
})

/**
 * Where the registration is committed is where its OTP is demanded: an explicit phase of the OTP decides both, and so does an explicit
 * commit phase. Both at once are refused (v3 §8.5).
 */
function toCommitRules({ otp, otpPhase, commitPhase }: Static<typeof RegistrationRequest>) {
  const refuse = (hint: string) => {
    const violations = [{ fieldName: 'otpPhase', hint }]
    return new PawlError('REQUEST_INVALID', { detail: `otpPhase ${hint}`, violations })
  }
  if (otpPhase !== undefined && commitPhase !== undefined) throw refuse('must not be given together with commitPhase')
  if (otpPhase !== undefined && otp === undefined) throw refuse('must not be given without otp')
  return { otp: otp ?? null, commitPhase: otpPhase ?? commitPhase ?? ('ON_COMMIT' as const) }
}

const toCursor = ({ createdAt, activationId }: ListedRegistrationRow): string => `${createdAt.getTime()}_${activationId}`

function parseCursor(cursor: string): { createdAt: Date; activationId: string } {
  const [, time = '', activationId = ''] = CURSOR.exec(cursor) ?? []
  return { createdAt: new Date(Number(time)), activationId }
}

const toListed = (row: ListedRegistrationRow): Static<typeof ListedRegistration> => ({
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

const toDetail = (row: RegistrationDetailRow, history: readonly HistoryRow[]): Static<typeof RegistrationDetail> => ({
  ...toListed(row),
  ...(row.blockedReason !== null && { blockReason: row.blockedReason }),
  ...(row.blockExpiresAt !== null && { timestampBlockExpire: row.blockExpiresAt.getTime() }),
  flags: row.flags === '' ? [] : row.flags.split(','),
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

const HISTORY_ROWS_MAX = 100
