// activation/status, list, lookup and history: show the state of activations (cloud §15.2).
import { type TObject, Type } from '@sinclair/typebox'
import { openQrText, readRegistration } from '../../domain/activation/registration.ts'
import { OptionalOrNull } from '../../http/types.ts'
import { requestRefused } from '../../lib/errors.ts'
import { listActivationHistory } from '../../storage/activation/history.ts'
import { findRegistrationDetail, listRegistrationDetails, type RegistrationDetailRow } from '../../storage/activation/search.ts'
import { findApplication } from '../../storage/application/applications.ts'
import { State } from '../cloud/fields.ts'
import { findOwn } from '../cloud/application-of.ts'
import { Phase } from '../cloud/registration-members.ts'
import { type Dialect, foreignApplication, type ReferenceCall, referenceEndpoint, requireOwn } from './endpoint.ts'
import { ActivationId, Given, Iso, Names, NamesGiven, Optional, PAGE, placeOf, TimeGiven, toTime } from './members.ts'

const ROWS_MAX = 1000

/** The members of an activation, in lists and alone. */
const ACTIVATION = {
  activationId: Type.String(),
  activationStatus: State,
  blockedReason: Type.Optional(Type.String()),
  activationName: Type.Optional(Type.String()),
  userId: Type.Optional(Type.String()),
  applicationId: Type.Optional(Type.String()),
  protocol: Type.Literal('powerauth'),
  platform: Type.Optional(Type.String()),
  deviceInfo: Type.Optional(Type.String()),
  extras: Type.Optional(Type.String()),
  externalId: Type.Optional(Type.String()),
  activationFlags: Names,
  failedAttempts: Type.Integer(),
  maxFailedAttempts: Type.Integer(),
  timestampCreated: Type.Optional(Iso),
  timestampLastUsed: Type.Optional(Iso),
  version: Type.Integer({ description: 'generation of the protocol; 0 before the key exchange' }),
}

const { failedAttempts, maxFailedAttempts, ...always } = ACTIVATION

export const activationStatus = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: 'activation/status',
    operationId: 'referenceActivationStatus',
    summary: 'State and device of an activation',
    description: 'An activation that is not there is `REMOVED`. There is no status blob: phones ask pawl for it.',
    request: Type.Object({ activationId: ActivationId, ...(dialect.name === 'v3' && { challenge: Optional }) }) as TObject,
    response: Type.Object({
      ...always,
      failedAttempts: Type.Optional(failedAttempts),
      maxFailedAttempts: Type.Optional(maxFailedAttempts),
      commitPhase: Type.Optional(Phase),
      confirmationPending: Type.Optional(Type.Boolean()),
      activationCode: Type.Optional(Type.String()),
      activationSignature: Type.Optional(Type.String()),
      devicePublicKeyFingerprint: Type.Optional(Type.String()),
      applicationRoles: Names,
    }),
    async handle(call) {
      const { parts, applicationId } = call
      const activationId = (call.request as { readonly activationId: string }).activationId
      const row = await findRegistrationDetail(parts.db, applicationId, activationId, new Date(parts.platform.now()))
      if (row === undefined) return { ...UNKNOWN, activationId }
      const application = await findApplication(parts.db, applicationId)
      const { commitPhase, activationFingerprint, isConfirmationPending } = row
      return {
        ...toActivation(row, applicationId),
        commitPhase,
        ...(dialect.name === 'v4' && { confirmationPending: isConfirmationPending }),
        ...(await readCode(call, row)),
        ...(activationFingerprint !== null && { devicePublicKeyFingerprint: activationFingerprint }),
        applicationRoles: [...(application?.roles ?? [])],
      }
    },
  })

export const listActivations = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: 'activation/list',
    operationId: 'referenceListActivations',
    summary: 'The activations of a user, newest first',
    request: Type.Object({
      userId: Given,
      applicationId: Optional,
      protocols: OptionalOrNull(NamesGiven),
      ...PAGE,
      activationStatuses: OptionalOrNull(Type.Array(State, { maxItems: 100 })),
    }),
    response: Type.Object({ userId: Type.String(), activations: Type.Array(Type.Object(ACTIVATION)) }),
    async handle(call) {
      const { request, parts, applicationId } = call
      const { userId, activationStatuses, protocols } = request
      requireOwn(call, request.applicationId)
      const isAsked = protocols === null || protocols === undefined || protocols.length === 0 || protocols.includes('powerauth')
      const search = { userIds: [userId], states: activationStatuses ?? [], flags: [], usedBefore: null, usedAfter: null }
      const at = new Date(parts.platform.now())
      const rows = isAsked ? await listRegistrationDetails(parts.db, { applicationId, ...search, at, ...placeOf(request) }) : []
      return { userId, activations: rows.map((row) => toActivation(row, applicationId)) }
    },
  })

export const lookupActivations = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: 'activation/lookup',
    operationId: 'referenceLookupActivations',
    summary: 'The activations of several users, newest first',
    description: `\`ERR0024\` where there are more than ${ROWS_MAX}.`,
    request: Type.Object({
      userIds: Type.Array(NamesGiven.items, { minItems: 1, maxItems: 1000 }),
      applicationIds: OptionalOrNull(NamesGiven),
      timestampLastUsedBefore: TimeGiven,
      timestampLastUsedAfter: TimeGiven,
      activationStatus: OptionalOrNull(State),
      activationFlags: OptionalOrNull(NamesGiven),
    }),
    response: Type.Object({ activations: Type.Array(Type.Object(ACTIVATION)) }),
    async handle({ request, parts, applicationId }) {
      const { userIds, activationStatus, activationFlags } = request
      const applicationIds = request.applicationIds ?? []
      if (applicationIds.length > 0 && !applicationIds.includes(applicationId)) throw foreignApplication()
      const rows = await listRegistrationDetails(parts.db, {
        applicationId,
        userIds,
        states: activationStatus ? [activationStatus] : [],
        flags: activationFlags ?? [],
        usedBefore: toTime(request.timestampLastUsedBefore),
        usedAfter: toTime(request.timestampLastUsedAfter),
        at: new Date(parts.platform.now()),
        limit: ROWS_MAX + 1,
        offset: 0,
      })
      // The list is refused instead of cut, because the caller could not notice the cut.
      if (rows.length > ROWS_MAX) throw requestRefused('userIds', `must be of users with at most ${ROWS_MAX} activations`)
      return { activations: rows.map((row) => toActivation(row, applicationId)) }
    },
  })

export const activationHistory = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: 'activation/history',
    operationId: 'referenceActivationHistory',
    summary: 'What became of an activation, and when',
    description: `The newest ${ROWS_MAX} entries of the time that is asked for, oldest first.`,
    errors: ['REGISTRATION_NOT_FOUND'],
    request: Type.Object({ activationId: ActivationId, timestampFrom: TimeGiven, timestampTo: TimeGiven }),
    response: Type.Object({
      items: Type.Array(
        Type.Object({
          id: Type.Integer(),
          activationId: Type.String(),
          activationStatus: Type.String(),
          eventReason: Type.Optional(Type.String()),
          externalUserId: Type.Optional(Type.String()),
          timestampCreated: Iso,
        }),
      ),
    }),
    async handle(call) {
      const { activationId, timestampFrom, timestampTo } = call.request
      await findOwn(call, activationId)
      const range = { from: toTime(timestampFrom), to: toTime(timestampTo) }
      const rows = await listActivationHistory(call.parts.db, activationId, { limit: ROWS_MAX, ...range })
      return {
        items: rows.toReversed().map(({ sequence, toState, reason, externalUserId, occurredAt }) => ({
          id: Number(sequence),
          activationId,
          activationStatus: toState,
          ...(reason !== null && { eventReason: reason }),
          ...(externalUserId !== null && { externalUserId }),
          timestampCreated: occurredAt.toISOString(),
        })),
      }
    },
  })

function toActivation(row: RegistrationDetailRow, applicationId: string) {
  const { blockedReason, name, platform, deviceInfo, extras, externalId, lastUsedAt } = row
  return {
    activationId: row.activationId,
    activationStatus: row.state,
    ...(blockedReason !== null && { blockedReason }),
    ...(name !== null && { activationName: name }),
    userId: row.userId,
    applicationId,
    protocol: 'powerauth' as const,
    ...(platform !== null && { platform }),
    ...(deviceInfo !== null && { deviceInfo }),
    ...(extras !== null && { extras }),
    ...(externalId !== null && { externalId }),
    activationFlags: [...row.flags],
    failedAttempts: row.failedAttempts,
    maxFailedAttempts: row.maxFailedAttempts,
    timestampCreated: row.createdAt.toISOString(),
    // The reference shows the time of creation for an activation that was never used.
    timestampLastUsed: (lastUsedAt ?? row.createdAt).toISOString(),
    version: row.protocolVersion ?? 0,
  }
}

/** The answer of the reference for an unknown activation. */
const UNKNOWN = {
  activationStatus: 'REMOVED' as const,
  protocol: 'powerauth' as const,
  activationFlags: [],
  version: 0,
  applicationRoles: [],
}

/** The activation code and its signature, while no phone has used the code. */
async function readCode({ parts, applicationId }: ReferenceCall, { activationId, userId, state }: RegistrationDetailRow) {
  if (state !== 'CREATED') return {}
  const owner = { applicationId, userId, activationId }
  const registration = await readRegistration(parts, owner)
  const [activationCode = '', activationSignature = ''] = registration ? openQrText(parts, owner, registration).split('#') : []
  return activationCode === '' ? {} : { activationCode, activationSignature }
}
