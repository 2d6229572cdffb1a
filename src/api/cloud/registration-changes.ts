// Changes below /v2/registrations/{id}, and of several registrations at once. Spec: cloud §17.3, v3 §8.5.
import { type Static, type TObject, Type } from '@sinclair/typebox'
import { changeRegistration, commitRegistration } from '../../domain/activation/registration.ts'
import { NotBlank } from '../../http/types.ts'
import { PawlError } from '../../lib/errors.ts'
import { holdChanges } from '../../log/events.ts'
import { renameActivation, setActivationFlags } from '../../storage/activation/change.ts'
import { setCommitOtp } from '../../storage/activation/commit.ts'
import { inTransaction } from '../../storage/database/database.ts'
import { applicationOf, findOwn, findOwnLive, refuseState } from './application-of.ts'
import { type CloudCall, cloudEndpoint } from './endpoint.ts'
import { Flags, MadeId, OfMadeId, OptionalText } from './fields.ts'
import { ActivationOtp, CHANGE } from './registration-members.ts'

const WRITERS = ['admin', 'integration'] as const

/** The registration that a call names, within the application of the credential, and the person who asks for the change. */
const callOf = async (call: CloudCall<unknown, unknown, { readonly id: string }>, externalUserId: string | null = null) => ({
  own: { parts: call.parts, applicationId: await applicationOf(call) },
  id: call.params.id,
  by: { username: call.caller.username, externalUserId },
  at: () => new Date(call.parts.platform.now()),
})

/**
 * Changes a registration of the application. Throws REGISTRATION_NOT_FOUND when the application has none of this id, and
 * REGISTRATION_CHANGE_REFUSED when its state does not allow the change.
 */
async function changeOwn(
  { parts, caller }: Pick<CloudCall, 'caller'> & { readonly parts: Parameters<typeof changeRegistration>[0] },
  applicationId: string,
  activationId: string,
  { change, externalUserId, blockReason }: Static<TObject<typeof CHANGE>>,
): Promise<void> {
  const { userId } = await findOwnLive({ parts, applicationId }, activationId)
  await changeRegistration(
    parts,
    { applicationId, userId, activationId },
    { change, reason: blockReason ?? null, externalUserId: externalUserId ?? null, verifiedBy: caller.username },
  )
}

const furtherChange = cloudEndpoint({
  route: 'PUT /v2/registrations/:id',
  operationId: 'changeRegistrationOfId',
  summary: 'Blocks, unblocks or removes one registration',
  description: '`BLOCK` is for ACTIVE ones; it also makes a temporary block, which is seen as BLOCKED, one that lasts.',
  errors: ['REGISTRATION_NOT_FOUND', 'REGISTRATION_CHANGE_REFUSED'],
  roles: WRITERS,
  params: OfMadeId,
  body: Type.Object(CHANGE),
  handle: async (call) => changeOwn(call, await applicationOf(call), call.params.id, call.body),
})

const furtherRemove = cloudEndpoint({
  route: 'DELETE /v2/registrations/:id',
  operationId: 'removeRegistrationOfId',
  summary: 'Removes one registration',
  errors: ['REGISTRATION_NOT_FOUND', 'REGISTRATION_CHANGE_REFUSED'],
  roles: WRITERS,
  params: OfMadeId,
  handle: async (call) => changeOwn(call, await applicationOf(call), call.params.id, { change: 'REMOVE' }),
})

const furtherState = cloudEndpoint({
  route: 'POST /v2/registrations/state',
  operationId: 'changeRegistrations',
  summary: 'Blocks, unblocks or removes several registrations, all or none',
  errors: ['REGISTRATION_NOT_FOUND', 'REGISTRATION_CHANGE_REFUSED'],
  roles: WRITERS,
  body: Type.Object({
    registrationIds: Type.Array(MadeId, { minItems: 1, maxItems: 100, uniqueItems: true }),
    ...CHANGE,
  }),
  async handle(call) {
    const { parts, caller, body } = call
    const applicationId = await applicationOf(call)
    const { events, tell } = holdChanges(parts.events)
    await inTransaction(parts.db, async (tx) => {
      // All requests lock registrations in the order of their ids, so that two requests do not wait for each other.
      for (const id of body.registrationIds.toSorted())
        await changeOwn({ parts: { ...parts, events, db: tx }, caller }, applicationId, id, body).catch((error: unknown) => {
          throw error instanceof PawlError ? nameRegistration(error, id) : error
        })
    })
    tell()
  },
})

const nameRegistration = ({ code, message, violations, retryAfterSeconds }: PawlError, id: string): PawlError =>
  new PawlError(code, {
    detail: message,
    violations: [
      { fieldName: 'registrationIds', invalidValue: id.slice(0, 128), hint: 'nothing was changed because of this one' },
      ...violations,
    ],
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  })

const furtherCommit = cloudEndpoint({
  route: 'POST /v2/registrations/:id/commit',
  operationId: 'commitRegistrationOfSeveral',
  summary: 'Confirms the device of one registration',
  errors: ['REGISTRATION_NOT_FOUND', 'REGISTRATION_CHANGE_REFUSED', 'OTP_INVALID'],
  roles: WRITERS,
  params: OfMadeId,
  body: Type.Object({ externalUserId: OptionalText, otp: OptionalText }),
  async handle(call) {
    const { own, id, by } = await callOf(call, call.body.externalUserId)
    const { userId, state } = await findOwn(own, id)
    if (state !== 'PENDING_COMMIT') refuseState(state)
    await commitRegistration(
      own.parts,
      { applicationId: own.applicationId, userId, activationId: id },
      { otp: call.body.otp ?? null, externalUserId: by.externalUserId, verifiedBy: by.username },
    )
  },
})

const furtherOtp = cloudEndpoint({
  route: 'PUT /v2/registrations/:id/otp',
  operationId: 'replaceRegistrationOtp',
  summary: 'Sets the one-time password that the commit of one registration demands',
  description: 'Only of one that is PENDING_COMMIT, and is committed ON_COMMIT.',
  errors: ['REGISTRATION_NOT_FOUND', 'REGISTRATION_CHANGE_REFUSED'],
  roles: WRITERS,
  params: OfMadeId,
  body: Type.Object({ otp: ActivationOtp, externalUserId: OptionalText }),
  async handle(call) {
    const { own, id, by, at } = await callOf(call, call.body.externalUserId)
    const { state, commitPhase } = await findOwn(own, id)
    if (state !== 'PENDING_COMMIT' || commitPhase !== 'ON_COMMIT') refuseState(state)
    const otpHash = await own.parts.activationOtps.hash(own.applicationId, call.body.otp)
    const isSet = await setCommitOtp(own.parts.db, { activationId: id, from: ['PENDING_COMMIT'] }, otpHash, at(), by)
    if (!isSet) refuseState(state)
  },
})

const furtherName = cloudEndpoint({
  route: 'PUT /v2/registrations/:id/name',
  operationId: 'renameRegistration',
  summary: 'Renames the phone of one registration',
  description: 'Only of one that is ACTIVE or BLOCKED.',
  errors: ['REGISTRATION_NOT_FOUND', 'REGISTRATION_CHANGE_REFUSED'],
  roles: WRITERS,
  params: OfMadeId,
  body: Type.Object({ name: NotBlank(255), externalUserId: OptionalText }),
  async handle(call) {
    const { own, id, by, at } = await callOf(call, call.body.externalUserId)
    const { state } = await findOwn(own, id)
    if (!(await renameActivation(own.parts.db, id, call.body.name, at(), by))) refuseState(state)
  },
})

const furtherFlags = cloudEndpoint({
  route: 'PUT /v2/registrations/:id/flags',
  operationId: 'replaceRegistrationFlags',
  summary: 'Replaces the flags of one registration',
  errors: ['REGISTRATION_NOT_FOUND', 'REGISTRATION_CHANGE_REFUSED'],
  roles: WRITERS,
  params: OfMadeId,
  body: Type.Object({ flags: Flags }),
  async handle(call) {
    const { own, id, by, at } = await callOf(call)
    const { state } = await findOwn(own, id)
    if (!(await setActivationFlags(own.parts.db, id, call.body.flags, at(), by.username))) refuseState(state)
  },
})

export const registrationChangeEndpoints = [
  furtherChange,
  furtherRemove,
  furtherState,
  furtherCommit,
  furtherOtp,
  furtherName,
  furtherFlags,
]
