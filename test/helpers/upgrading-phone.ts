// Makes a phone of 3.3, together with the 4.0 side of the same phone (v4 §10).
import type { Prepared } from '../../phone/v3/state.ts'
import type { PhoneAlgorithm } from '../../phone/v4/crypto.ts'
import type { VirtualPhone } from '../../phone/v3/virtual-phone.ts'
import type { PhonesV4, PhoneV4 } from './world-v4.ts'

type StartOptions = Omit<NonNullable<Parameters<PhoneV4['prepareUpgradeStart']>[1]>, 'counter'>

export interface UpgradingPhone {
  readonly userId: string
  readonly old: VirtualPhone
  readonly phone: PhoneV4
  /** Prepares the start: a code of 3.3 over an envelope of 4.0. `phone`: another 4.0 side of the same activation. */
  readonly prepareStart: (options?: StartOptions, phone?: PhoneV4) => Promise<Prepared<unknown>>
  /** Makes another 4.0 side of the same phone, with device keys of its own. */
  readonly newAttempt: () => PhoneV4
}

/** Activates a phone under 3.3; no request of 4.0 has been sent yet. */
export async function openUpgradingPhone(v4: PhonesV4, algorithm: PhoneAlgorithm): Promise<UpgradingPhone> {
  const { userId, phone: old } = await v4.world.activePhone('3.3')
  return upgradeOf(v4, { userId, old }, algorithm)
}

/** Makes the 4.0 side of a phone of 3.3. */
export function upgradeOf(
  v4: Pick<PhonesV4, 'newPhone'>,
  { userId, old }: Pick<UpgradingPhone, 'userId' | 'old'>,
  algorithm: PhoneAlgorithm,
): UpgradingPhone {
  const newAttempt = (): PhoneV4 => {
    const phone = v4.newPhone(algorithm)
    phone.state.activationId = old.state.activationId
    return phone
  }
  const own = newAttempt()
  const prepareStart: UpgradingPhone['prepareStart'] = async (options = {}, phone = own) => {
    const path = { path: '/pa/v4/upgrade/start', resourceId: '/pa/upgrade/start' }
    const prepared = await phone.prepareUpgradeStart((body) => old.prepareSigned({ ...path, body }).headers, options)
    return {
      ...prepared,
      open: (reply) => {
        const opened = prepared.open(reply)
        // The counter goes on from the value of 3.3 at the time of the answer (v4 §10.4).
        phone.state.counter = old.state.counter
        return opened
      },
    }
  }
  return { userId, old, phone: own, prepareStart, newAttempt }
}
