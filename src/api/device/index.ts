// Serves the device API: every endpoint below /pa, which mobile SDKs call. The path names the generation of the protocol.
import type { FastifyInstance } from 'fastify'
import { describeDeviceEndpoints } from '../../channel/describe.ts'
import type { Endpoint } from '../../channel/endpoint.ts'
import { mountDeviceEndpoints } from '../../channel/mount.ts'
import type { ErrorDescription, ErrorTable, Operation } from '../../http/operation.ts'
import type { Protocol } from '../../protocol/protocol.ts'
import { activationConfirm } from './activation/confirm.ts'
import { activationCreateV3 } from './activation/create.v3.ts'
import { activationCreateV4 } from './activation/create.v4.ts'
import { activationDetailV3, activationDetailV4 } from './activation/detail.ts'
import { activationRemove } from './activation/remove.ts'
import { activationRenameV3, activationRenameV4 } from './activation/rename.ts'
import { activationStatusV3 } from './activation/status.v3.ts'
import { activationStatusV4 } from './activation/status.v4.ts'
import { authValidate, signatureValidate } from './auth/validate.ts'
import { biometryAdd } from './biometry/add.ts'
import { biometryRemove } from './biometry/remove.ts'
import { configActivation } from './config/activation.ts'
import { configApplication } from './config/application.ts'
import { renderDeviceError, rendering, renderingV4 } from './error-renderer.ts'
import { keystoreCreateV3 } from './keystore/create.v3.ts'
import { keystoreCreateV4 } from './keystore/create.v4.ts'
import type { DeviceParts } from './parts.ts'
import { passwordChange } from './password/change.ts'
import { status, statusV4 } from './status.ts'
import { tokenCreate } from './token/create.ts'
import { tokenRemove } from './token/remove.ts'
import { upgradeConfirm } from './upgrade/confirm.ts'
import { upgradeStart } from './upgrade/start.ts'
import { userInfo } from './user/info.ts'
import { vaultUnlockV3 } from './vault/unlock.v3.ts'
import { vaultUnlockV4 } from './vault/unlock.v4.ts'

interface Group {
  readonly prefix: string
  /** The generations that may read the headers. */
  readonly generations: readonly Protocol['path'][]
  readonly endpoints: readonly Endpoint<DeviceParts>[]
}

export const deviceGroups: readonly Group[] = [
  {
    prefix: '/v3/',
    generations: ['v3'],
    endpoints: [
      status,
      keystoreCreateV3,
      activationCreateV3,
      activationStatusV3,
      activationRemove,
      activationDetailV3,
      activationRenameV3,
      signatureValidate,
      tokenCreate,
      tokenRemove,
      vaultUnlockV3,
      userInfo,
    ],
  },
  {
    prefix: '/v4/',
    generations: ['v4'],
    endpoints: [
      statusV4,
      keystoreCreateV4,
      activationCreateV4,
      activationStatusV4,
      activationConfirm,
      activationRemove,
      activationDetailV4,
      activationRenameV4,
      authValidate,
      tokenCreate,
      tokenRemove,
      vaultUnlockV4,
      passwordChange,
      biometryAdd,
      biometryRemove,
      upgradeConfirm,
      configApplication,
      configActivation,
    ],
  },
  // This request has a code of protocol 3 over an envelope of protocol 4.
  { prefix: '/v4/', generations: ['v3', 'v4'], endpoints: [upgradeStart] },
  // The contract lets this path serve protocol 3, too.
  { prefix: '/v4/', generations: ['v4', 'v3'], endpoints: [userInfo] },
]

export const deviceApi = (parts: DeviceParts) => (app: FastifyInstance) =>
  mountDeviceEndpoints(app, parts, {
    groups: deviceGroups.map(({ generations, ...group }) => ({
      ...group,
      protocols: generations.map((path) => parts.protocols[path]),
    })),
    renderError: renderDeviceError,
  })

export const describeDeviceApi = (): Operation[] =>
  deviceGroups.flatMap(({ prefix, generations, endpoints }) =>
    describeDeviceEndpoints(
      { place: '/pa', prefix, protocols: generations, ...(prefix === '/v3/' ? DESCRIPTIONS.v3 : DESCRIPTIONS.v4) },
      endpoints,
    ),
  )

const errorsOf = (rows: ErrorTable): ErrorDescription => ({
  rendering: rows,
  example: ({ code, message }) => ({ status: 'ERROR', responseObject: { code, message: `POWER_AUTH_${message}` } }),
})

const DESCRIPTIONS = {
  v3: { tag: 'Device API, protocol 3', errors: errorsOf(rendering) },
  v4: { tag: 'Device API, protocol 4', errors: errorsOf(renderingV4) },
} as const
