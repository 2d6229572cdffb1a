// activation/status: one activation, as the bank sees it (cloud §15.2).
import { type TObject, Type } from '@sinclair/typebox'
import { openQrText, readRegistration } from '../../../domain/activation/registration.ts'
import { findApplication } from '../../../storage/application/applications.ts'
import { findRegistrationDetail, type RegistrationDetailRow } from '../../../storage/activation/search.ts'
import type { CommitPhase } from '../../../storage/database/schema.ts'
import type { Dialect } from '../dialect.ts'
import { BANK_ROLES, type ReferenceCall, referenceEndpoint } from '../endpoint.ts'
import { ACTIVATION, ActivationId, Names, Optional, toActivation } from '../members.ts'

const { failedAttempts, maxFailedAttempts, ...always } = ACTIVATION

export const activationStatus = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: 'activation/status',
    operationId: 'referenceActivationStatus',
    summary: 'State and device of an activation',
    description: 'An activation that is not there is `REMOVED`. There is no status blob: phones ask pawl for it.',
    errors: [],
    roles: BANK_ROLES,
    request: Type.Object({ activationId: ActivationId, ...(dialect.name === 'v3' && { challenge: Optional }) }) as TObject,
    response: Type.Object({
      ...always,
      failedAttempts: Type.Optional(failedAttempts),
      maxFailedAttempts: Type.Optional(maxFailedAttempts),
      commitPhase: Type.Optional(Type.Unsafe<CommitPhase>(Type.String({ enum: ['ON_COMMIT', 'ON_KEY_EXCHANGE'] }))),
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

/** As the reference answers. */
const UNKNOWN = {
  activationStatus: 'REMOVED' as const,
  protocol: 'powerauth' as const,
  activationFlags: [],
  version: 0,
  applicationRoles: [],
}

/** Code and signature while no phone has used them. */
async function readCode({ parts, applicationId }: ReferenceCall, { activationId, userId, state }: RegistrationDetailRow) {
  if (state !== 'CREATED') return {}
  const owner = { applicationId, userId, activationId }
  const registration = await readRegistration(parts, owner)
  const [activationCode = '', activationSignature = ''] = registration ? openQrText(parts, owner, registration).split('#') : []
  return activationCode === '' ? {} : { activationCode, activationSignature }
}
