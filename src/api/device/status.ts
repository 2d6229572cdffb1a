// status: the clock and the name of the server. Spec: v3 §13, seed "Status and keys".
import { Type } from '@sinclair/typebox'
import { ObjectResponse, ok } from '../../http/types.ts'
import { deviceEndpoint } from './parts.ts'

export const status = deviceEndpoint({
  path: 'status',
  summary: 'Clock and name of the server',
  errors: [],
  order: [],
  response: ObjectResponse(
    Type.Object({
      serverTime: Type.Integer({ description: 'milliseconds since 1970-01-01 UTC' }),
      application: Type.Object({ name: Type.String(), version: Type.String() }),
    }),
  ),
  async handle({ parts }) {
    const { statusName: name, statusVersion: version } = parts.settings
    return ok({ serverTime: parts.platform.now(), application: { name, version } })
  },
})
