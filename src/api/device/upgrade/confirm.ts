// upgrade/confirm: the phone shows that it has the keys of protocol 4.0; from now on there are no others. Spec: v4 §10.3.
import { Ok } from '../../../http/types.ts'
import { completeUpgrade } from '../../../storage/activation-upgrades.ts'
import { deviceEndpoint } from '../parts.ts'

export const upgradeConfirm = deviceEndpoint({
  path: 'upgrade/confirm',
  summary: 'Ends the upgrade of an activation of protocol 3',
  errors: ['UPGRADE_FAILED'],
  order: ['factors', 'authenticate'],
  authenticate: { resourceId: '/pa/upgrade/confirm', factors: ['POSSESSION'], covers: 'body', isUpgradeSeen: true },
  refusals: { headerMissing: 'UPGRADE_FAILED', headerMalformed: 'UPGRADE_FAILED' },
  response: Ok,
  async settle({ tx, refusal, activation, parts }) {
    if (refusal !== undefined || activation === undefined) return undefined
    const isUpgraded = await completeUpgrade(tx, activation.activationId, new Date(parts.platform.now()))
    return isUpgraded ? undefined : 'UPGRADE_FAILED'
  },
  async handle() {
    return { status: 'OK' as const }
  },
})
