// POST /admin/applications/{id}/registrations: a registration, with an OTP where one is wanted (v3 §8.5).
import { type Static, Type } from '@sinclair/typebox'
import { createRegistration } from '../../../../domain/activation/registration.ts'
import { notFound, PawlError } from '../../../../lib/errors.ts'
import { auditedEndpoint } from '../../audited-endpoint.ts'
import { Identifier, UserId } from '../../fields.ts'
import { auditedRegistration, OfApplication, Phase } from './registration.ts'

const RegistrationRequest = Type.Object({
  userId: UserId,
  otp: Type.Optional(Identifier),
  otpPhase: Type.Optional(Phase),
  commitPhase: Type.Optional(Phase),
})

export const administrationRegistrationCreate = auditedEndpoint({
  method: 'POST',
  path: '/admin/applications/:id/registrations',
  operationId: 'createRegistrationOfApplication',
  summary: 'Creates a registration, with an OTP where one is wanted',
  errors: ['ADMINISTRATION_REFUSED', 'REGISTRATION_EXISTS'],
  roles: ['admin'],
  params: OfApplication,
  body: RegistrationRequest,
  response: Type.Object({ activationId: Type.String(), activationQrCodeData: Type.String() }),
  prepare: async ({ body, parts }) => {
    const { otp, commitPhase } = toCommitRules(body)
    return { commitPhase, otpHash: otp === null ? null : await parts.activationOtps.hash(otp) }
  },
  async handle({ params: { id }, body, tx, parts }, rules) {
    const created = await createRegistration({ ...parts, db: tx }, { applicationId: id, userId: body.userId }, rules)
    if (created === undefined) throw notFound(`application ${id}`)
    return created
  },
  audited: auditedRegistration,
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
