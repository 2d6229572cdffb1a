// activation/rename: signed, then encrypted; the code covers the plaintext. Spec: v3 §13, v4 §9.7.
import { Type } from '@sinclair/typebox'
import { NotBlank, ObjectResponse, ok } from '../../../http/types.ts'
import { PawlError } from '../../../lib/errors.ts'
import { renameActivation } from '../../../storage/activations.ts'
import { deviceEndpoint } from '../parts.ts'
import { ActivationDetail } from './detail.ts'

export const activationRenameV3 = deviceEndpoint({
  path: 'activation/rename',
  summary: 'Changes the name of the activation',
  errors: ['ACTIVATION_FAILED'],
  order: ['factors', 'envelope', 'open', 'authenticate', 'validate'],
  authenticate: {
    resourceId: '/pa/activation/rename',
    factors: ['POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY'],
    covers: 'plaintext',
  },
  encrypt: { scope: 'ACTIVATION_SCOPE', sharedInfo1: '/pa/generic/activation' },
  request: Type.Object({ activationName: NotBlank(255) }),
  response: ObjectResponse(ActivationDetail),
  async handle({ request: { activationName }, activation: { activationId }, parts }) {
    const isRenamed = await renameActivation(parts.db, activationId, activationName, new Date(parts.platform.now()))
    if (!isRenamed) throw new PawlError('ACTIVATION_FAILED', { detail: 'removed meanwhile' })
    return ok({ activationId, activationName })
  },
})

/** Envelopes of BLOCKED and REMOVED activations open too: the code is what is refused (v4 §9.7). */
export const activationRenameV4 = deviceEndpoint({
  ...activationRenameV3,
  encrypt: { scope: 'ACTIVATION_SCOPE', sharedInfo1: '/pa/generic/activation', leavesStateToCode: true },
})
