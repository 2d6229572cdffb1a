// config/activation: answers the configuration items for an activation. Spec: v4 §9.11.
import { openedEndpoint } from '../../../channel/flow/opened.ts'
import { readActivationConfig } from '../../../domain/application/config-items.ts'
import { PawlError } from '../../../lib/errors.ts'
import type { DeviceParts } from '../parts.ts'
import { Configuration } from './application.ts'

export const configActivation = openedEndpoint({
  path: 'config/activation',
  summary: 'Configuration items of the activation and of its application',
  description: 'Of items with the same key the nearest is there: of the activation, of the scope `ACTIVATION`, of `APPLICATION`.',
  errors: ['CONFIGURATION_FAILED'],
  // The envelope of a blocked phone opens, so that it gets ERR_CONFIG and not ERR_ENCRYPTION (DIVERGENCES#v4-config-activation).
  encrypt: { sharedInfo1: '/pa/generic/activation', opensFor: 'ANY' },
  response: Configuration,
  async handle({ activation: { activationId, applicationId, state }, version }, { db }: DeviceParts) {
    if (state !== 'ACTIVE') throw new PawlError('CONFIGURATION_FAILED', { detail: `the activation is ${state}` })
    if (!version.isSupported) throw new PawlError('CONFIGURATION_FAILED', { detail: 'the application version is switched off' })
    return { config: await readActivationConfig(db, applicationId, activationId) }
  },
})
