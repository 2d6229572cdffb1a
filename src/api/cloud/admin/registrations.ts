// /admin/applications/{id}/registrations: creates, searches and shows the registrations of an application (v3 §8.5, cloud §10).
import { type Static, Type } from '@sinclair/typebox'
import { commitRegistration, createRegistration, prepareCommit } from '../../../domain/activation/registration.ts'
import { requireApplication } from '../../../domain/application/application.ts'
import { named } from '../../../http/types.ts'
import { notFound } from '../../../lib/errors.ts'
import { findRegistrations } from '../../../storage/activation/find.ts'
import {
  findRegistrationDetail,
  type ListedRegistrationRow,
  listRegistrations,
  listRegistrationsWith,
  type RegistrationDetailRow,
} from '../../../storage/activation/search.ts'
import { type Audited, auditedEndpoint } from '../audited-endpoint.ts'
import { adminRead } from '../endpoint.ts'
import {
  ATTEMPTS_AND_COMMIT,
  BeforeEntry,
  detailMembers,
  Expires,
  HISTORY,
  listedMembers,
  NEW_REGISTRATION,
  NEW_REGISTRATIONS,
  readHistory,
  REGISTERED,
  toCommitRules,
} from '../registration-members.ts'
import {
  Cursor,
  cutPage,
  Identifier,
  MadeId,
  NextCursor,
  nextCursorAt,
  OfId,
  OfSeveral,
  OptionalText,
  PageLimit,
  parseCursor,
  State,
  Time,
  UserId,
  UserIdPart,
  UserIdPrefix,
} from '../fields.ts'

const ListedRegistration = named(
  'ListedRegistration',
  Type.Object({
    activationId: Type.String(),
    ...REGISTERED,
    highestProtocolVersion: Type.Optional(
      Type.String({ description: 'the highest version that the phone has spoken', examples: ['3.3'] }),
    ),
    algorithm: Type.Optional(Type.String({ description: 'of the key agreement, in protocol 4', examples: ['EC_P384'] })),
    timestampCreated: Time,
    timestampLastUsed: Type.Optional(Time),
  }),
)
export type ListedRegistration = Static<typeof ListedRegistration>

const auditedRegistration: Audited<{ readonly id: string }, { readonly userId: string }> = {
  target: ({ params: { id }, body: { userId } }) => `registration of ${userId} in ${id}`,
  view: async ({ params: { id }, body: { userId }, parts }) => {
    const rows = await findRegistrations(parts.db, id, userId, new Date(parts.platform.now()))
    const [row, ...more] = rows.map(({ activationId, state }) => ({ activationId, state }))
    return more.length === 0 ? row : [row, ...more]
  },
}

const toListed = (row: ListedRegistrationRow): ListedRegistration => ({
  activationId: row.activationId,
  ...listedMembers(row),
  ...(row.highestVersion !== null && { highestProtocolVersion: row.highestVersion }),
})

const administrationRegistrationCreate = auditedEndpoint({
  route: 'POST /admin/applications/:id/registrations',
  operationId: 'createRegistrationOfId',
  summary: 'Creates a registration, with an OTP where one is wanted',
  errors: ['ADMINISTRATION_REFUSED', 'REGISTRATION_EXISTS'],
  params: OfId,
  body: Type.Object(NEW_REGISTRATION, { examples: NEW_REGISTRATIONS }),
  response: Type.Object({ activationId: Type.String(), activationQrCodeData: Type.String() }),
  prepare: async ({ params, body, parts, caller }) => {
    const { otp, commitPhase } = toCommitRules(body)
    const otpHash = otp === null ? null : await parts.activationOtps.hash(params.id, otp)
    return { commitPhase, otpHash, isFurther: true, verifiedBy: caller.username }
  },
  async handle({ params: { id }, body, parts }, rules) {
    const created = await createRegistration(parts, { applicationId: id, userId: body.userId }, rules)
    if (created === undefined) throw notFound('application', id)
    return created
  },
  audited: auditedRegistration,
})

const administrationRegistrationCommit = auditedEndpoint({
  route: 'POST /admin/applications/:id/registrations/commit',
  operationId: 'commitRegistrationOfId',
  summary: 'Commits a registration, with its OTP',
  errors: ['ADMINISTRATION_REFUSED', 'REGISTRATION_NOT_FOUND', 'REGISTRATION_CHANGE_REFUSED', 'OTP_INVALID'],
  params: OfId,
  body: Type.Object({ userId: UserId, otp: OptionalText, externalUserId: OptionalText, registrationId: OfSeveral }),
  prepare: ({ params: { id }, body: { userId, otp, registrationId: activationId }, parts }) =>
    prepareCommit(parts, { applicationId: id, userId, activationId }, otp ?? null),
  async handle({ params: { id }, body: { userId, otp, externalUserId, registrationId: activationId }, parts, caller }, judgeOtp) {
    const given = { otp: otp ?? null, externalUserId: externalUserId ?? null, verifiedBy: caller.username }
    const owner = { applicationId: id, userId, activationId }
    const outcome = await commitRegistration(parts, owner, given, judgeOtp)
    if (outcome === 'NO_APPLICATION') throw notFound('application', id)
  },
  audited: { ...auditedRegistration, committedRefusal: 'OTP_INVALID' },
})

const registrationsList = adminRead({
  route: 'GET /admin/applications/:id/registrations',
  operationId: 'listRegistrations',
  summary: 'Searches registrations of an application',
  description:
    'The newest first. A search by `userIdPart` looks at 50,000 records. Where `nextCursor` is there it goes on behind them, also after an empty page.',
  errors: ['ADMINISTRATION_REFUSED'],
  params: OfId,
  query: Type.Object({
    userId: Type.Optional(UserId),
    userIdPrefix: UserIdPrefix,
    userIdPart: UserIdPart,
    state: Type.Optional(State),
    protocolVersion: Type.Optional(Type.Integer({ minimum: 3, maximum: 4, description: 'generation: 3 or 4' })),
    limit: PageLimit(100, 50),
    cursor: Cursor,
  }),
  response: Type.Object({ registrations: Type.Array(ListedRegistration), nextCursor: NextCursor }),
  async handle({ params: { id }, query, parts }) {
    await requireApplication(parts.db, id)
    const { userId, userIdPrefix, userIdPart, state, protocolVersion, limit, cursor } = query
    const place = cursor === undefined ? undefined : parseCursor(cursor)
    const search = {
      applicationId: id,
      userId: userId ?? null,
      userIdPrefix: userIdPrefix ?? null,
      state: state ?? null,
      protocolVersion: protocolVersion ?? null,
      after: place ? { createdAt: place.createdAt, activationId: place.id } : null,
      at: new Date(parts.platform.now()),
      limit,
    }
    if (userIdPart !== undefined) {
      const { rows, next } = await listRegistrationsWith(parts.db, search, userIdPart)
      return { registrations: rows.map(toListed), ...nextCursorAt(next) }
    }
    const { page, last } = cutPage(await listRegistrations(parts.db, { ...search, limit: limit + 1 }), limit)
    return { registrations: page.map(toListed), ...nextCursorAt(last && { createdAt: last.createdAt, id: last.activationId }) }
  },
})

const RegistrationDetail = named(
  'RegistrationDetail',
  Type.Composite([
    ListedRegistration,
    Type.Object({
      blockReason: Type.Optional(Type.String()),
      timestampBlockExpire: Type.Optional(
        Type.Integer({ description: 'milliseconds since 1970-01-01 UTC, the end of a temporary block' }),
      ),
      flags: Type.Array(Type.String()),
      isConfirmationPending: Type.Optional(
        Type.Boolean({ description: 'in protocol 4: the phone has not confirmed its activation yet' }),
      ),
      isBiometryEnabled: Type.Optional(Type.Boolean()),
      isUpgradePending: Type.Optional(Type.Boolean({ description: 'in protocol 3: the phone has begun to move to protocol 4' })),
      activationFingerprint: Type.Optional(Type.String()),
      ...ATTEMPTS_AND_COMMIT,
      parentActivationId: Type.Optional(
        Type.String({ description: 'the activation, of another application, that asked for the code of this one' }),
      ),
      extras: Type.Optional(Type.String()),
      externalId: Type.Optional(Type.String()),
      timestampExpires: Expires,
      ...HISTORY,
    }),
  ]),
)
export type RegistrationDetail = Static<typeof RegistrationDetail>

const registrationDetail = adminRead({
  route: 'GET /admin/applications/:id/registrations/:activationId',
  operationId: 'readRegistrationDetail',
  summary: 'A registration with its history',
  errors: ['ADMINISTRATION_REFUSED'],
  params: Type.Object({ id: Identifier, activationId: MadeId }),
  query: Type.Object({ limit: PageLimit(1_000, 100), before: BeforeEntry }),
  response: RegistrationDetail,
  async handle({ params: { id, activationId }, query: { limit, before }, parts }) {
    const row = await findRegistrationDetail(parts.db, id, activationId, new Date(parts.platform.now()))
    if (row === undefined) throw notFound('activation', `${activationId} in ${id}`)
    return { ...toDetail(row), ...(await readHistory(parts.db, activationId, limit, before)) }
  },
})

const toDetail = (row: RegistrationDetailRow) => ({
  ...toListed(row),
  ...detailMembers(row),
  ...(row.protocolVersion === 4 && { isConfirmationPending: row.isConfirmationPending }),
  ...(row.isBiometryEnabled !== null && { isBiometryEnabled: row.isBiometryEnabled }),
  ...(row.protocolVersion === 3 && { isUpgradePending: row.isUpgradePending }),
  ...(row.activationFingerprint !== null && { activationFingerprint: row.activationFingerprint }),
  ...(row.parentActivationId !== null && { parentActivationId: row.parentActivationId }),
  ...(row.extras !== null && { extras: row.extras }),
  ...(row.externalId !== null && { externalId: row.externalId }),
})

export const administrationRegistrationEndpoints = [
  administrationRegistrationCreate,
  administrationRegistrationCommit,
  registrationsList,
  registrationDetail,
]
