// status: the clock and the name of the server. Spec: v3 §13, v4 §9.1.
import { Type } from '@sinclair/typebox'
import { bodylessEndpoint } from '../../channel/flow/bodyless.ts'
import { ObjectResponse, ok } from '../../http/types.ts'
import type { DeviceParts } from './parts.ts'

/** What both generations answer. */
export const ServerStatus = Type.Object({
  serverTime: Type.Integer({ description: 'milliseconds since 1970-01-01 UTC' }),
  application: Type.Object({ name: Type.String(), version: Type.String() }),
})

export const status = bodylessEndpoint({
  path: 'status',
  summary: 'Clock and name of the server',
  errors: [],
  response: ObjectResponse(ServerStatus),
  handle: async (parts: DeviceParts) => ok(serverStatusOf(parts)),
})

/** The value of ServerStatus. */
export const serverStatusOf = ({ platform, settings }: DeviceParts) => ({
  serverTime: platform.now(),
  application: { name: settings.statusName, version: settings.statusVersion },
})
