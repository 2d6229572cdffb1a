// signature/offline/non-personalized/create, auth/offline/non-personalized/create: the text of a QR code for any phone (cloud §15.3).
import { Type } from '@sinclair/typebox'
import { signOfflineText } from '../../../domain/activation/offline-text.ts'
import { toBase64 } from '../../../lib/base64.ts'
import { composeOfflineHead } from '../../../protocol/wire/offline.ts'
import { findApplication } from '../../../storage/application/applications.ts'
import type { Dialect } from '../dialect.ts'
import { BANK_ROLES, foreignApplication, referenceEndpoint, requireOwn } from '../endpoint.ts'
import { Given } from '../members.ts'
import { NONCE_BYTES, OfflineData, OfflineText } from './members.ts'

export const generalText = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: `${dialect.place}/offline/non-personalized/create`,
    operationId: 'referenceGeneralText',
    summary: 'The text of a QR code for any phone of the application, without connection',
    errors: [],
    roles: BANK_ROLES,
    request: Type.Object({ applicationId: Given, data: OfflineData }),
    response: OfflineText,
    async handle(call) {
      const { request, parts } = call
      requireOwn(call, request.applicationId)
      const application = await findApplication(parts.db, call.applicationId)
      if (application === undefined) throw foreignApplication()
      const nonce = toBase64(parts.platform.randomBytes(NONCE_BYTES))
      const head = composeOfflineHead({ data: request.data, nonceBase64: nonce }, '0')
      return { offlineData: await signOfflineText(parts, application, head), nonce }
    },
  })
