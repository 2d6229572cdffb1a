// status: that pawl serves, and which version (cloud §15.2).
import { Type } from '@sinclair/typebox'
import { DOOR_ROLES } from '../door/fields.ts'
import type { Dialect } from './dialect.ts'
import { referenceEndpoint } from './endpoint.ts'
import { Iso } from './members.ts'

export const status = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: 'status',
    operationId: 'referenceStatus',
    summary: 'That pawl serves, and which version',
    errors: [],
    roles: DOOR_ROLES,
    request: Type.Object({}),
    response: Type.Object({
      status: Type.Literal('OK'),
      applicationName: Type.String(),
      applicationDisplayName: Type.String(),
      version: Type.String(),
      timestamp: Iso,
    }),
    async handle({ parts: { settings, platform } }) {
      const { statusName, statusVersion } = settings
      const timestamp = new Date(platform.now()).toISOString()
      return {
        status: 'OK' as const,
        applicationName: statusName,
        applicationDisplayName: statusName,
        version: statusVersion,
        timestamp,
      }
    },
  })
