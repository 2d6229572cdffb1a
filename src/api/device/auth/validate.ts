// signature/validate: checks a code and nothing else; the body is any bytes, part of what the code covers. Spec: v3 §5.4, §10.
import { Ok } from '../../../http/types.ts'
import { deviceEndpoint } from '../parts.ts'

export const authValidate = deviceEndpoint({
  path: 'signature/validate',
  summary: 'Checks an authentication code over any body',
  errors: [],
  methods: ['GET', 'POST', 'PUT', 'DELETE'],
  order: ['factors', 'authenticate'],
  authenticate: {
    resourceId: '/pa/signature/validate',
    factors: ['POSSESSION', 'POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY'],
    covers: 'body',
  },
  response: Ok,
  async handle() {
    return { status: 'OK' as const }
  },
})
