// config/application: answers the configuration items for every app of an application, activated or not. Spec: v4 §9.11.
import { Type } from '@sinclair/typebox'
import { openedByApplicationEndpoint } from '../../../channel/flow/opened-by-application.ts'
import { readApplicationConfig } from '../../../domain/application/config-items.ts'
import type { DeviceParts } from '../parts.ts'

/** The plaintext of the answers of config/application and config/activation. */
export const Configuration = Type.Object({
  config: Type.Array(
    Type.Object({
      key: Type.String({ examples: ['payments.limit'] }),
      value: Type.Unknown({ examples: [{ daily: 500 }], description: 'any JSON value' }),
      scope: Type.String({ enum: ['APPLICATION', 'ACTIVATION'] }),
    }),
  ),
})

export const configApplication = openedByApplicationEndpoint({
  path: 'config/application',
  summary: 'Configuration items of the application',
  errors: [],
  encrypt: { sharedInfo1: '/pa/generic/application' },
  request: Type.Object({}),
  response: Configuration,
  async handle({ version }, { db }: DeviceParts) {
    return { config: await readApplicationConfig(db, version.applicationId) }
  },
})
