// What the description of the APIs says of the device API.
import { Type } from '@sinclair/typebox'
import { describeDeviceEndpoints } from '../../channel/describe.ts'
import type { ErrorDescription, Operation } from '../../http/operation.ts'
import { rendering } from './error-renderer.ts'
import { deviceEndpoints } from './index.ts'

/** One operation for each method and path of the device API. */
export const describeDeviceApi = (): Operation[] =>
  describeDeviceEndpoints(
    { place: '/pa', prefix: '/v3/', protocol: 'v3', tag: 'Device API, protocol 3', errors: errorsOfDevice },
    deviceEndpoints,
  )

const errorsOfDevice: ErrorDescription = {
  rendering,
  schema: (codes) =>
    Type.Object({
      status: Type.Literal('ERROR'),
      responseObject: Type.Object({ code: Type.String({ enum: codes }), message: Type.String() }),
    }),
  example: ({ code, message }) => ({ status: 'ERROR', responseObject: { code, message: `POWER_AUTH_${message}` } }),
}
