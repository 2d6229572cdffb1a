// signature/offline/personalized/create, auth/offline/personalized/create: the text of a QR code for one phone (cloud §15.3).
import { signForActivation } from '../../../channel/authenticate-offline.ts'
import { Type } from '@sinclair/typebox'
import { OptionalOrNull } from '../../../http/types.ts'
import { parseBase64, toBase64 } from '../../../lib/base64.ts'
import { PawlError } from '../../../lib/errors.ts'
import { findActivation } from '../../../storage/activation/find.ts'
import { refuse } from '../../door/members.ts'
import { refuseState } from '../../cloud/own-registration.ts'
import { refuseOperationText } from '../../door/offline-terms.ts'
import type { Dialect } from '../dialect.ts'
import { BANK_ROLES, referenceEndpoint } from '../endpoint.ts'
import { ActivationId, Optional } from '../members.ts'
import { listTotps, NONCE_BYTES, OfflineData, OfflineText, ProximityCheck } from './members.ts'

export const personalizedText = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: `${dialect.place}/offline/personalized/create`,
    operationId: 'referencePersonalizedText',
    summary: 'The text of a QR code for one phone, without connection',
    errors: ['REGISTRATION_NOT_FOUND', 'REGISTRATION_CHANGE_REFUSED'],
    roles: BANK_ROLES,
    request: Type.Object({
      activationId: ActivationId,
      data: OfflineData,
      nonce: Optional,
      proximityCheck: OptionalOrNull(ProximityCheck),
    }),
    response: OfflineText,
    async handle({ request, parts, applicationId }) {
      const { activationId, data, proximityCheck } = request
      const nonce = request.nonce ?? toBase64(parts.platform.randomBytes(NONCE_BYTES))
      if (parseBase64(nonce, NONCE_BYTES) === undefined) throw refuse('nonce', `must be Base64 of ${NONCE_BYTES} bytes`)
      await refuseOperationText(parts.db, applicationId, data)
      const activation = await findActivation(parts.db, activationId, new Date(parts.platform.now()))
      if (activation?.applicationId !== applicationId) throw new PawlError('REGISTRATION_NOT_FOUND')
      if (activation.state !== 'ACTIVE') refuseState(activation.state)
      const [totp] = (proximityCheck && listTotps(parts, { ...proximityCheck, stepCount: 0 })) ?? []
      const offlineData = signForActivation(parts, activation, { data, totp, nonce })
      if (offlineData === undefined) refuseState(activation.state)
      return { offlineData, nonce }
    },
  })
