// The device API: every endpoint below /pa/v3, called by mobile SDKs.
import type { FastifyInstance } from 'fastify'
import { mountDeviceEndpoints } from '../../channel/mount.ts'
import { activationCreate } from './activation/create.v3.ts'
import { activationDetail } from './activation/detail.ts'
import { activationRemove } from './activation/remove.ts'
import { activationRename } from './activation/rename.ts'
import { activationStatus } from './activation/status.v3.ts'
import { authValidate } from './auth/validate.ts'
import { renderDeviceError } from './error-renderer.ts'
import { keystoreCreate } from './keystore/create.ts'
import type { DeviceParts } from './parts.ts'
import { status } from './status.ts'
import { tokenCreate } from './token/create.ts'
import { tokenRemove } from './token/remove.ts'
import { userInfo } from './user/info.ts'
import { vaultUnlock } from './vault/unlock.v3.ts'

export const deviceEndpoints = [
  status,
  keystoreCreate,
  activationCreate,
  activationStatus,
  activationRemove,
  activationDetail,
  activationRename,
  authValidate,
  tokenCreate,
  tokenRemove,
  vaultUnlock,
  userInfo,
] as const

export const deviceApi = (parts: DeviceParts) => (app: FastifyInstance) =>
  mountDeviceEndpoints(app, parts, {
    protocol: parts.protocol,
    prefix: `/${parts.protocol.path}/`,
    endpoints: deviceEndpoints,
    renderError: renderDeviceError,
  })
