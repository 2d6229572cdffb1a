// What endpoints of an activation's configuration items share.
import { listConfigItems } from '../../../../storage/config-items.ts'
import { notFound } from '../../../../lib/errors.ts'
import { findActivation } from '../../../../storage/activation/find.ts'
import type { Db } from '../../../../storage/database.ts'
import type { ConfigOwner } from '../../../../storage/config-items.ts'
import type { CloudParts } from '../../parts.ts'
import type { KeyCall } from './item.ts'

/** The item of the path for the audit log; undefined when there is none. */
export async function viewOfActivation({ params: { id, key }, tx, parts }: Pick<KeyCall, 'params' | 'tx' | 'parts'>) {
  const activation = await findActivation(tx, id, new Date(parts.platform.now()))
  if (activation === undefined) return undefined
  const items = await listConfigItems(tx, { applicationId: activation.applicationId, activationId: id })
  return items.find((item) => item.key === key)
}

/** Throws ADMINISTRATION_REFUSED when there is no such activation. */
export async function requireActivation(
  { db, platform }: Pick<CloudParts, 'platform'> & { readonly db: Db },
  id: string,
): Promise<ConfigOwner & { readonly isRemoved: boolean }> {
  const activation = await findActivation(db, id, new Date(platform.now()))
  if (activation === undefined) throw notFound(`activation ${id}`)
  return { applicationId: activation.applicationId, activationId: id, isRemoved: activation.state === 'REMOVED' }
}
