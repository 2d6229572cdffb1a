// /v2/registrations: creates and shows registrations by their ids, for users who may have several phones. Spec: cloud §17.
import { Type } from '@sinclair/typebox'
import { createFurther, openQrText, readRegistration } from '../../domain/activation/registration.ts'
import { named } from '../../http/types.ts'
import { type RegistrationDetailRow, searchRegistrationDetails } from '../../storage/activation/search.ts'
import { applicationOf, findOwn, ownerOf, refuseWithoutApplication } from './application-of.ts'
import { cloudEndpoint } from './endpoint.ts'
import {
  Cursor,
  cutPage,
  Flag,
  Flags,
  NextCursor,
  nextCursorAt,
  OfMadeId,
  OptionalTime,
  PageLimit,
  parseCursor,
  readEnd,
  State,
  Time,
  UserId,
} from './fields.ts'
import {
  ATTEMPTS_AND_COMMIT,
  BeforeEntry,
  detailMembers,
  Expires,
  HISTORY,
  NEW_REGISTRATION,
  NEW_REGISTRATIONS,
  QR_TEXT,
  readHistory,
  REGISTERED,
  toCommitRules,
} from './registration-members.ts'

const READERS = ['admin', 'integration', 'read-only'] as const
const ID = '3f2504e0-4f89-41d3-9a0c-0305e82c3301'

const REGISTRATION = {
  registrationId: Type.String({ description: 'the id of the activation', examples: [ID] }),
  ...REGISTERED,
  algorithm: Type.Optional(Type.String({ description: 'of the key agreement, in protocol 4' })),
  flags: Type.Array(Type.String()),
  blockReason: Type.Optional(Type.String()),
  timestampBlockExpire: Type.Optional(Time),
  ...ATTEMPTS_AND_COMMIT,
  timestampCreated: Time,
  timestampLastUsed: Type.Optional(Time),
  timestampExpires: Expires,
}

const toRegistration = (row: RegistrationDetailRow) => ({ registrationId: row.activationId, ...detailMembers(row) })

const FurtherRegistration = Type.Object(
  {
    ...NEW_REGISTRATION,
    flags: Type.Optional(Flags),
    maxFailedAttempts: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 64,
        description: 'wrong codes in a row that block the phone; `PAWL_MAX_FAILED_ATTEMPTS` without it',
      }),
    ),
    expiresAt: OptionalTime,
  },
  { examples: NEW_REGISTRATIONS },
)

const furtherCreate = cloudEndpoint({
  route: 'POST /v2/registrations',
  operationId: 'createFurtherRegistration',
  summary: 'Creates a registration, beside others where a user may have several',
  description:
    'The whole `activationQrCodeData` is the content of the QR code; its part before `#` is the activation code for typing. `expiresAt` is the ' +
    'end of what key exchange and commit may wait for; without it `PAWL_ACTIVATION_VALIDITY_SECONDS` from now.',
  errors: ['REGISTRATION_EXISTS', 'REGISTRATION_NOT_FOUND', 'REGISTRATION_NOT_ALLOWED'],
  roles: ['admin', 'integration'],
  query: Type.Object({
    incompleteStatusCheck: Type.Optional(
      Type.Boolean({ description: 'true refuses it while another one of the user is CREATED or PENDING_COMMIT' }),
    ),
  }),
  body: FurtherRegistration,
  response: Type.Object({
    registrationId: Type.String({ examples: [ID] }),
    activationQrCodeData: Type.String({ examples: [QR_TEXT] }),
  }),
  async handle(call) {
    const { body, parts, caller, query } = call
    const { otp, commitPhase } = toCommitRules(body)
    const expiresAt = readEnd(parts, body.expiresAt)
    const owner = await ownerOf(call, body.userId)
    const created = await createFurther(parts, owner, {
      commitPhase,
      expiresAt,
      otpHash: otp === null ? null : await parts.activationOtps.hash(owner.applicationId, otp),
      maxFailedAttempts: body.maxFailedAttempts,
      flags: body.flags ?? [],
      isOnlyOneIncomplete: query.incompleteStatusCheck === true,
      verifiedBy: caller.username,
    })
    if (created === undefined) throw await refuseWithoutApplication(call)
    return { registrationId: created.activationId, activationQrCodeData: created.activationQrCodeData }
  },
})

const furtherList = cloudEndpoint({
  route: 'GET /v2/registrations',
  operationId: 'searchRegistrations',
  summary: 'Registrations of the application, or of one user',
  description: 'The newest first. One that was never used counts as used when it was created.',
  errors: ['REGISTRATION_NOT_FOUND'],
  roles: READERS,
  query: Type.Object({
    userId: Type.Optional(UserId),
    state: Type.Optional(State),
    flag: Type.Optional(Flag),
    lastUsedBefore: OptionalTime,
    limit: PageLimit(100, 50),
    cursor: Cursor,
  }),
  response: Type.Object({
    registrations: Type.Array(named('RegistrationOfSeveral', Type.Object(REGISTRATION))),
    nextCursor: NextCursor,
  }),
  async handle(call) {
    const { userId, state, flag, lastUsedBefore, limit, cursor } = call.query
    const { db, platform } = call.parts
    const place = cursor === undefined ? undefined : parseCursor(cursor)
    const rows = await searchRegistrationDetails(db, {
      applicationId: await applicationOf(call),
      userId: userId ?? null,
      userIdPrefix: null,
      state: state ?? null,
      protocolVersion: null,
      flag: flag ?? null,
      usedBefore: lastUsedBefore === undefined ? null : new Date(lastUsedBefore),
      after: place ? { createdAt: place.createdAt, activationId: place.id } : null,
      at: new Date(platform.now()),
      limit: limit + 1,
    })
    const { page, last } = cutPage(rows, limit)
    return {
      registrations: page.map(toRegistration),
      ...nextCursorAt(last && { createdAt: last.createdAt, id: last.activationId }),
    }
  },
})

const furtherRead = cloudEndpoint({
  route: 'GET /v2/registrations/:id',
  operationId: 'readRegistrationOfSeveral',
  summary: 'State and device of one registration',
  description:
    'A registration that is REMOVED is read as well. The content of the QR code is there while it is CREATED, unless an app of the bank asked ' +
    'for its code, and not for a caller who may only read; the fingerprint from the key exchange on.',
  errors: ['REGISTRATION_NOT_FOUND'],
  roles: READERS,
  params: OfMadeId,
  response: named(
    'RegistrationOfId',
    Type.Object({
      ...REGISTRATION,
      activationQrCodeData: Type.Optional(Type.String({ examples: [QR_TEXT] })),
      activationFingerprint: Type.Optional(Type.String({ examples: ['74618273'] })),
      extras: Type.Optional(Type.String()),
      externalId: Type.Optional(Type.String()),
    }),
  ),
  async handle(call) {
    const { parts, caller } = call
    const applicationId = await applicationOf(call)
    const row = await findOwn({ parts, applicationId }, call.params.id)
    // Whoever has the code can bind a phone, so a caller of the role read-only does not get it.
    const mayBind = row.state === 'CREATED' && caller.role !== 'read-only'
    const owner = { applicationId, userId: row.userId, activationId: row.activationId }
    const waiting = mayBind ? await readRegistration(parts, owner) : undefined
    const activationQrCodeData = waiting === undefined ? '' : openQrText(parts, owner, waiting)
    return {
      ...toRegistration(row),
      ...(activationQrCodeData !== '' && { activationQrCodeData }),
      ...(row.activationFingerprint !== null && { activationFingerprint: row.activationFingerprint }),
      ...(row.extras !== null && { extras: row.extras }),
      ...(row.externalId !== null && { externalId: row.externalId }),
    }
  },
})

const furtherHistory = cloudEndpoint({
  route: 'GET /v2/registrations/:id/history',
  operationId: 'readRegistrationHistory',
  summary: 'What became of one registration',
  errors: ['REGISTRATION_NOT_FOUND'],
  roles: READERS,
  params: OfMadeId,
  query: Type.Object({ limit: PageLimit(1_000, 50), before: BeforeEntry }),
  response: Type.Object(HISTORY),
  async handle(call) {
    const { limit, before } = call.query
    const { parts, params } = call
    await findOwn({ parts, applicationId: await applicationOf(call) }, params.id)
    return readHistory(parts.db, params.id, limit, before)
  },
})

export const furtherRegistrationEndpoints = [furtherCreate, furtherList, furtherRead, furtherHistory]
