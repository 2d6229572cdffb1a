// Whether a user may have several phones in an application (cloud §17.1).
import { administrationRefused, type PawlError } from '../../lib/errors.ts'
import { removeExpiredActivations } from '../../storage/activation/expiry.ts'
import { emptySlots, findUserOfSeveral, lockMultiDevice, setMultiDevice } from '../../storage/activation/device-slot.ts'
import { isUniqueViolation, type Tx } from '../../storage/database/database.ts'

/**
 * Stores whether a user of an application may have several phones. Switching back throws ADMINISTRATION_REFUSED while a user has several,
 * because the bank must say which one goes. Phones that are bound at the same time wait, or are bound under the old setting.
 */
export async function switchMultiDevice(tx: Tx, applicationId: string, isMultiDevice: boolean, at: Date): Promise<void> {
  const before = await lockMultiDevice(tx, applicationId)
  if (before === undefined || before === isMultiDevice) return
  await setMultiDevice(tx, applicationId, isMultiDevice)
  // The phone that a user has keeps its empty slot: there is one of these at the most.
  if (isMultiDevice) return
  while ((await removeExpiredActivations(tx, at, ROWS)) === ROWS);
  const userId = await findUserOfSeveral(tx, applicationId)
  if (userId !== undefined) throw refusal(`user ${userId} has several`)
  try {
    // No statement takes long, and none looks again at what is done.
    for (let last: string | undefined = ''; last !== undefined; ) last = await emptySlots(tx, applicationId, last, ROWS)
  } catch (error) {
    // A phone that was bound while there was to be one at the most.
    if (isUniqueViolation(error, 'activation_live')) throw refusal('a user has got a second one just now')
    throw error
  }
}

const refusal = (why: string): PawlError =>
  administrationRefused('isMultiDevice', `must stay true while a user has several live registrations: ${why}`)

const ROWS = 5_000
