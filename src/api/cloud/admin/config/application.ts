// What endpoints of an application's configuration items share.
import { Type } from '@sinclair/typebox'
import { listConfigItems } from '../../../../storage/config-items.ts'
import { type KeyCall, Scope } from './item.ts'

/** Of the query. */
export const OfScope = Type.Object({ scope: Type.Optional(Scope) })

/** The item of the path for the audit log; undefined when there is none. */
export async function viewOfApplication({ params: { id, key }, query: { scope = 'APPLICATION' }, tx }: KeyCall) {
  const items = await listConfigItems(tx, { applicationId: id, activationId: null })
  return items.find((item) => item.key === key && item.scope === scope)
}
