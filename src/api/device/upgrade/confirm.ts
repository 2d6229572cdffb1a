// upgrade/confirm: the phone proves that it has the keys of protocol 4.0. These keys then replace those of protocol 3. Spec: v4 §10.3.
import { signedByUpgradeEndpoint } from '../../../channel/flow/signed-by-upgrade.ts'
import { completeUpgrade } from '../../../storage/request/upgrade.ts'
import type { DeviceParts } from '../parts.ts'

export const upgradeConfirm = signedByUpgradeEndpoint({
  path: 'upgrade/confirm',
  summary: 'Ends the upgrade of an activation of protocol 3',
  errors: ['UPGRADE_FAILED'],
  authenticate: { resourceId: '/pa/upgrade/confirm', factors: ['POSSESSION'] },
  refusal: 'UPGRADE_FAILED',
  async handle({ tx, activation }, { platform }: DeviceParts) {
    const isUpgraded = await completeUpgrade(tx, activation.activationId, new Date(platform.now()))
    return isUpgraded ? undefined : 'UPGRADE_FAILED'
  },
})
