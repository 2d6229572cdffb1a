// config/application: the configuration items for every app of an application, activated or not. Spec: v4 §9.11.
import { Type } from '@sinclair/typebox'
import { openedByApplicationEndpoint } from '../../../channel/flow/opened-by-application.ts'
import { readApplicationConfig } from '../../../domain/application/config-items.ts'
import { PawlError } from '../../../lib/errors.ts'
import { findApplicationOfVersion } from '../../../storage/application/applications.ts'
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
  errors: ['CONFIGURATION_FAILED'],
  encrypt: { sharedInfo1: '/pa/generic/application' },
  request: Type.Object({}),
  response: Configuration,
  async handle({ applicationKey }, { db }: DeviceParts) {
    const application = await findApplicationOfVersion(db, applicationKey)
    // The version was switched off after the envelope was opened.
    if (application === undefined) throw new PawlError('CONFIGURATION_FAILED', { detail: 'no supported version has this key' })
    return { config: await readApplicationConfig(db, application.applicationId) }
  },
})
