// What the description of the APIs says of the mobile token API.
import { Type } from '@sinclair/typebox'
import { describeDeviceEndpoints } from '../../channel/describe.ts'
import type { ErrorDescription, Operation } from '../../http/operation.ts'
import { rendering } from './error-renderer.ts'
import { mobileTokenEndpoints } from './index.ts'

/** One operation for each endpoint of the mobile token API. */
export const describeMobileTokenApi = (): Operation[] =>
  describeDeviceEndpoints(
    { place: '/api', prefix: '/', protocols: ['v3', 'v4'], tag: 'Mobile token API', errors: errorsOfMobileToken },
    mobileTokenEndpoints,
  )

const errorsOfMobileToken: ErrorDescription = {
  rendering,
  schema: (codes) =>
    Type.Object({
      status: Type.Literal('ERROR'),
      responseObject: Type.Object({ code: Type.String({ enum: codes }), message: Type.String() }),
    }),
  example: ({ code, message }) => ({ status: 'ERROR', responseObject: { code, message } }),
}
