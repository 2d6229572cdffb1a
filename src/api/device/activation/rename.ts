// activation/rename: changes the name of the activation. The request is signed, then encrypted. Spec: v3 §13, v4 §9.7.
import { Type } from '@sinclair/typebox'
import { openedSignedEndpoint } from '../../../channel/flow/opened-then-signed.ts'
import type { EnvelopePolicy } from '../../../channel/stages/envelope-keys.ts'
import { NotBlank, ObjectResponse, ok } from '../../../http/types.ts'
import { PawlError } from '../../../lib/errors.ts'
import { renameActivation } from '../../../storage/activation/change.ts'
import type { DeviceParts } from '../parts.ts'
import { ActivationDetail } from './detail.ts'

const renameOf = (opensFor: EnvelopePolicy) =>
  openedSignedEndpoint({
    path: 'activation/rename',
    summary: 'Changes the name of the activation',
    errors: ['ACTIVATION_FAILED'],
    authenticate: { resourceId: '/pa/activation/rename', factors: ['POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY'] },
    encrypt: { sharedInfo1: '/pa/generic/activation', opensFor },
    request: Type.Object({ activationName: NotBlank(255) }),
    response: ObjectResponse(ActivationDetail),
    async handle({ request: { activationName }, activation: { activationId } }, { db, platform }: DeviceParts) {
      const isRenamed = await renameActivation(db, activationId, activationName, new Date(platform.now()))
      if (!isRenamed) throw new PawlError('ACTIVATION_FAILED', { detail: 'removed meanwhile' })
      return ok({ activationId, activationName })
    },
  })

export const activationRenameV3 = renameOf('ACTIVE')
/** Envelopes of BLOCKED and REMOVED activations open. Their code is then refused (v4 §9.7). */
export const activationRenameV4 = renameOf('ANY')
