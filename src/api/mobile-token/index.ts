// Serves the mobile token API, with which a phone lists, approves and rejects operations, registers for pushes and reads its inbox.
import type { FastifyInstance } from 'fastify'
import { describeDeviceEndpoints } from '../../channel/describe.ts'
import { mountDeviceEndpoints } from '../../channel/mount.ts'
import type { Operation } from '../../http/operation.ts'
import { activationCode } from './activation/code.ts'
import { configOidc } from './config/oidc.ts'
import { renderMobileTokenError, rendering } from './error-renderer.ts'
import { inboxCount, inboxDetail, inboxList, inboxRead, inboxReadAll } from './inbox.ts'
import { operationAuthorize } from './operation/authorize.ts'
import { operationCancel } from './operation/cancel.ts'
import { operationClaim, operationDetail } from './operation/detail.ts'
import { operationHistory } from './operation/history.ts'
import { operationList } from './operation/list.ts'
import type { MobileTokenParts } from './parts.ts'
import { pushRegister, pushRegisterToken } from './push.ts'

const mobileTokenEndpoints = [
  activationCode,
  configOidc,
  operationList,
  operationDetail,
  operationClaim,
  operationHistory,
  operationAuthorize,
  operationCancel,
  pushRegister,
  pushRegisterToken,
  inboxCount,
  inboxList,
  inboxDetail,
  inboxRead,
  inboxReadAll,
] as const

export const mobileTokenApi = (parts: MobileTokenParts) => (app: FastifyInstance) =>
  mountDeviceEndpoints(app, parts, {
    groups: [{ protocols: [parts.protocols.v3, parts.protocols.v4], prefix: '/', endpoints: mobileTokenEndpoints }],
    renderError: renderMobileTokenError,
  })

export const describeMobileTokenApi = (): Operation[] =>
  describeDeviceEndpoints(
    { place: '/api', prefix: '/', protocols: ['v3', 'v4'], tag: 'Mobile token API', errors: { rendering } },
    mobileTokenEndpoints,
  )
