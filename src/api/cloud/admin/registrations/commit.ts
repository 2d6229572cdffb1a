// POST /admin/applications/{id}/registrations/commit: the bank confirms the device, with its OTP (v3 §8.5).
import { Type } from '@sinclair/typebox'
import { commitRegistration, prepareCommit } from '../../../../domain/activation/registration.ts'
import { notFound } from '../../../../lib/errors.ts'
import { Ok } from '../../../../http/types.ts'
import { auditedEndpoint } from '../../audited-endpoint.ts'
import { OptionalText, UserId } from '../../fields.ts'
import { auditedRegistration, OfApplication } from './registration.ts'

export const administrationRegistrationCommit = auditedEndpoint({
  method: 'POST',
  path: '/admin/applications/:id/registrations/commit',
  operationId: 'commitRegistrationOfApplication',
  summary: 'Commits a registration, with its OTP',
  errors: ['ADMINISTRATION_REFUSED', 'REGISTRATION_NOT_FOUND', 'OTP_INVALID'],
  roles: ['admin'],
  params: OfApplication,
  body: Type.Object({ userId: UserId, otp: OptionalText, externalUserId: OptionalText }),
  response: Ok,
  prepare: ({ params: { id }, body: { userId, otp }, parts }) => prepareCommit(parts, { applicationId: id, userId }, otp ?? null),
  async handle({ params: { id }, body: { userId, otp, externalUserId }, tx, parts }, judgeOtp) {
    const given = { otp: otp ?? null, externalUserId: externalUserId ?? null }
    const outcome = await commitRegistration({ ...parts, db: tx }, { applicationId: id, userId }, given, judgeOtp)
    if (outcome === 'NO_APPLICATION') throw notFound(`application ${id}`)
    return { status: 'OK' as const }
  },
  audited: { ...auditedRegistration, committedRefusal: 'OTP_INVALID' },
})
