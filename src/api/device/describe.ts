// Describes the device API for the document of the APIs.
import { describeDeviceEndpoints } from '../../channel/describe.ts'
import { type ErrorDescription, ErrorResponse, type Operation } from '../../http/operation.ts'
import { rendering, renderingV4 } from './error-renderer.ts'
import { deviceGroups } from './index.ts'

/** One operation for each method and path of the device API. */
export const describeDeviceApi = (): Operation[] =>
  deviceGroups.flatMap(({ prefix, generations, endpoints }) =>
    describeDeviceEndpoints(
      { place: '/pa', prefix, protocols: generations, ...(prefix === '/v3/' ? DESCRIPTIONS.v3 : DESCRIPTIONS.v4) },
      endpoints,
    ),
  )

const errorsOf = (table: ErrorDescription['rendering']): ErrorDescription => ({
  rendering: table,
  schema: ErrorResponse,
  example: ({ code, message }) => ({ status: 'ERROR', responseObject: { code, message: `POWER_AUTH_${message}` } }),
})

const DESCRIPTIONS = {
  v3: { tag: 'Device API, protocol 3', errors: errorsOf(rendering) },
  v4: { tag: 'Device API, protocol 4', errors: errorsOf(renderingV4) },
} as const
