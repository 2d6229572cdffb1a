// config/activation: what this activation is to know. Spec: v4 §9.11.
import { Type } from '@sinclair/typebox'
import { readActivationConfig } from '../../../domain/config-items.ts'
import { PawlError } from '../../../lib/errors.ts'
import { findApplicationOfVersion } from '../../../storage/applications.ts'
import { deviceEndpoint } from '../parts.ts'
import { Configuration } from './configuration.ts'

export const configActivation = deviceEndpoint({
  path: 'config/activation',
  summary: 'Configuration items of the activation and of its application',
  description: 'Of items with the same key the nearest is there: of the activation, of the scope `ACTIVATION`, of `APPLICATION`.',
  errors: ['CONFIGURATION_FAILED'],
  order: ['envelope', 'open', 'validate'],
  // A phone that is blocked reads why: its envelope opens, and what is refused is the configuration.
  encrypt: { scope: 'ACTIVATION_SCOPE', sharedInfo1: '/pa/generic/activation', leavesStateToCode: true },
  request: Type.Object({}),
  response: Configuration,
  async handle({ activation: { activationId, applicationId, state }, applicationKey, parts }) {
    if (state !== 'ACTIVE') throw new PawlError('CONFIGURATION_FAILED', { detail: `the activation is ${state}` })
    if ((await findApplicationOfVersion(parts.db, applicationKey)) === undefined)
      throw new PawlError('CONFIGURATION_FAILED', { detail: 'the application version is switched off' })
    return { config: await readActivationConfig(parts.db, applicationId, activationId) }
  },
})
