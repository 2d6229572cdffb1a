// signature/validate, in 4.0 auth/validate: checks a code over any body, without another effect. Spec: v3 §5.4, §10; v4 §9.8.
import { signedEndpoint } from '../../../channel/flow/signed.ts'
import { Ok } from '../../../http/types.ts'

const validateAt = (path: string) =>
  signedEndpoint({
    path,
    summary: 'Checks an authentication code over any body',
    errors: [],
    methods: ['GET', 'POST', 'PUT', 'DELETE'],
    authenticate: { resourceId: `/pa/${path}`, factors: ['POSSESSION', 'POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY'] },
    response: Ok,
    async handle() {
      return { status: 'OK' as const }
    },
  })

export const signatureValidate = validateAt('signature/validate')
export const authValidate = validateAt('auth/validate')
