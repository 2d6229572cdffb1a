// Describes the mobile token API for the document of the APIs.
import { describeDeviceEndpoints } from '../../channel/describe.ts'
import { type ErrorDescription, ErrorResponse, type Operation } from '../../http/operation.ts'
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
  schema: ErrorResponse,
  example: ({ code, message }) => ({ status: 'ERROR', responseObject: { code, message } }),
}
