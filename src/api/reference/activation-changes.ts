// activation/commit, block, unblock, remove, status/update, otp/update and name/update: change an activation (cloud §15.2).
import { Type } from '@sinclair/typebox'
import { changeRegistration, commitRegistration } from '../../domain/activation/registration.ts'
import { NotBlank, OneOf } from '../../http/types.ts'
import { type ErrorCode, PawlError } from '../../lib/errors.ts'
import { holdChanges } from '../../log/events.ts'
import { renameActivation } from '../../storage/activation/change.ts'
import { setCommitOtp } from '../../storage/activation/commit.ts'
import type { RegistrationDetailRow } from '../../storage/activation/search.ts'
import { inTransaction, type Pool, type Tx } from '../../storage/database/database.ts'
import { Identifier, State } from '../cloud/fields.ts'
import { findOwn, refuseState } from '../cloud/application-of.ts'
import { type Dialect, type ReferenceCall, referenceEndpoint } from './endpoint.ts'
import { ActivationId, CHANGE_ERRORS, Optional } from './members.ts'

/** The activation that a request names, and the person at the bank who asks. */
const OF_ACTIVATION = { activationId: ActivationId, externalUserId: Optional }

const Changed = Type.Object({
  activationId: Type.String(),
  activationStatus: State,
  blockedReason: Type.Optional(Type.String()),
})

const toChanged = ({ activationId, state, blockedReason }: RegistrationDetailRow) => ({
  activationId,
  activationStatus: state,
  ...(blockedReason !== null && { blockedReason }),
})

export const commitActivation = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: 'activation/commit',
    operationId: 'referenceCommitActivation',
    summary: 'Confirms the device of an activation',
    errors: [...CHANGE_ERRORS, 'OTP_INVALID'],
    request: Type.Object({ ...OF_ACTIVATION, activationOtp: Optional }),
    response: Type.Object({ activationId: Type.String(), activated: Type.Boolean() }),
    async handle(call) {
      const { request, parts, applicationId, caller } = call
      const { activationId, externalUserId = null, activationOtp: otp = null } = request
      const { userId, state } = await findOwn(call, activationId)
      if (state !== 'PENDING_COMMIT') refuseState(state)
      const owner = { applicationId, userId, activationId }
      await commitRegistration(parts, owner, { otp, externalUserId, verifiedBy: caller.username })
      return { activationId, activated: true }
    },
  })

export const blockActivation = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: 'activation/block',
    operationId: 'referenceBlockActivation',
    summary: 'Blocks an activation',
    errors: CHANGE_ERRORS,
    request: Type.Object({ activationId: ActivationId, reason: Optional, externalUserId: Optional }),
    response: Changed,
    async handle(call) {
      const { activationId, reason, externalUserId } = call.request
      return toChanged(await changeTo(call, activationId, { to: 'BLOCKED', reason, externalUserId }))
    },
  })

export const unblockActivation = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: 'activation/unblock',
    operationId: 'referenceUnblockActivation',
    summary: 'Unblocks an activation',
    errors: CHANGE_ERRORS,
    request: Type.Object(OF_ACTIVATION),
    response: Changed,
    async handle(call) {
      const { activationId, externalUserId } = call.request
      return toChanged(await changeTo(call, activationId, { to: 'ACTIVE', externalUserId }))
    },
  })

export const removeActivation = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: 'activation/remove',
    operationId: 'referenceRemoveActivation',
    summary: 'Removes an activation',
    errors: CHANGE_ERRORS,
    request: Type.Object(OF_ACTIVATION),
    response: Type.Object({ activationId: Type.String(), removed: Type.Boolean() }),
    async handle(call) {
      const { activationId, externalUserId } = call.request
      await changeTo(call, activationId, { to: 'REMOVED', externalUserId })
      return { activationId, removed: true }
    },
  })

export const updateStatuses = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: 'activation/status/update',
    operationId: 'referenceUpdateStatuses',
    summary: 'Activates, blocks or removes several activations, all or none',
    errors: CHANGE_ERRORS,
    request: Type.Object({
      activationIds: Type.Array(ActivationId, { minItems: 1, maxItems: 100 }),
      activationStatus: OneOf<Target>(['ACTIVE', 'BLOCKED', 'REMOVED']),
    }),
    response: Type.Object({ updated: Type.Boolean() }),
    async handle(call) {
      const { activationIds, activationStatus: to } = call.request
      const { events, tell } = holdChanges(call.parts.events)
      const within = { ...call, parts: { ...call.parts, events } }
      await inTransaction(call.parts.db, async (tx) => {
        // All requests lock activations in the order of their ids, so that two requests do not wait for each other.
        for (const activationId of [...new Set(activationIds)].toSorted()) await changeTo(within, activationId, { to }, tx)
      })
      tell()
      return { updated: true }
    },
  })

export const updateOtp = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: 'activation/otp/update',
    operationId: 'referenceUpdateOtp',
    summary: 'Sets the one-time password that the commit of an activation demands',
    errors: CHANGE_ERRORS,
    request: Type.Object({ ...OF_ACTIVATION, activationOtp: Identifier }),
    response: Type.Object({ activationId: Type.String(), updated: Type.Boolean() }),
    async handle(call) {
      const { parts, request, applicationId, caller } = call
      const { activationId, activationOtp, externalUserId = null } = request
      const { state } = await findOwn(call, activationId)
      const otpHash = await parts.activationOtps.hash(applicationId, activationOtp)
      const by = { username: caller.username, externalUserId }
      const change = { activationId, from: ['CREATED', 'PENDING_COMMIT'] } as const
      const isUpdated = await setCommitOtp(parts.db, change, otpHash, new Date(parts.platform.now()), by)
      if (!isUpdated) refuseState(state)
      return { activationId, updated: true }
    },
  })

export const updateName = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: 'activation/name/update',
    operationId: 'referenceUpdateName',
    summary: 'Renames an activation',
    errors: CHANGE_ERRORS,
    request: Type.Object({ activationId: ActivationId, activationName: NotBlank(255), externalUserId: Optional }),
    response: Type.Object({ activationId: Type.String(), activationName: Type.String(), activationStatus: State }),
    async handle(call) {
      const { parts, request, caller } = call
      const { activationId, activationName, externalUserId = null } = request
      const { state } = await findOwn(call, activationId)
      const by = { username: caller.username, externalUserId }
      const isRenamed = await renameActivation(parts.db, activationId, activationName, new Date(parts.platform.now()), by)
      if (!isRenamed) refuseState(state)
      return { activationId, activationName, activationStatus: state }
    },
  })

type Target = 'ACTIVE' | 'BLOCKED' | 'REMOVED'

interface Wanted {
  readonly to: Target
  readonly reason?: string | null | undefined
  readonly externalUserId?: string | null | undefined
}

/**
 * Brings an activation to a state, and returns it as it is then. Throws REGISTRATION_NOT_FOUND, or REGISTRATION_CHANGE_REFUSED when its state does
 * not allow the change.
 */
async function changeTo(
  call: ReferenceCall,
  activationId: string,
  { to, reason = null, externalUserId = null }: Wanted,
  db: Pool | Tx = call.parts.db,
): Promise<RegistrationDetailRow> {
  const { parts, applicationId, caller } = call
  const row = await findOwn(call, activationId, db)
  if (isSoAlready(row, to)) return row
  if (to !== 'REMOVED' && row.state !== 'ACTIVE' && row.state !== 'BLOCKED') refuseState(row.state)
  const owner = { applicationId, userId: row.userId, activationId }
  try {
    await changeRegistration({ ...parts, db }, owner, {
      change: CHANGE[to],
      reason,
      externalUserId,
      verifiedBy: caller.username,
    })
  } catch (error) {
    if (!(error instanceof PawlError && REFUSALS.has(error.code))) throw error
    // It is no error when another request has made the same change since the read.
    const other = await findOwn(call, activationId, db)
    if (isSoAlready(other, to)) return other
    throw error
  }
  return await findOwn(call, activationId, db)
}

/**
 * Whether an activation has the wanted state already. A temporary block does not count as a block that a bank asks for, because it ends by itself.
 */
const isSoAlready = ({ state, blockExpiresAt }: RegistrationDetailRow, to: Target): boolean =>
  state === to && (to !== 'BLOCKED' || blockExpiresAt === null)

const REFUSALS: ReadonlySet<ErrorCode> = new Set(CHANGE_ERRORS)
const CHANGE = { ACTIVE: 'UNBLOCK', BLOCKED: 'BLOCK', REMOVED: 'REMOVE' } as const
