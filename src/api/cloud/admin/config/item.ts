// What the endpoints of configuration items share, which phones of protocol 4.0 read (v4 §9.11, cloud §10).
import { Type } from '@sinclair/typebox'
import { withExample } from '../../../../http/types.ts'
import { notFound } from '../../../../lib/errors.ts'
import type { Tx } from '../../../../storage/database.ts'
import type { ConfigScope } from '../../../../storage/schema.ts'
import { Identifier } from '../../fields.ts'
import type { CloudParts } from '../../parts.ts'

const Key = Type.String({
  pattern: '^[A-Za-z0-9_.-]{1,64}$',
  description: 'must be 1 to 64 letters, digits, `_`, `.` or `-`',
  examples: ['payments.limit'],
})

/** For which apps of the application an item is. */
export const Scope = Type.Unsafe<ConfigScope>(Type.String({ enum: ['APPLICATION', 'ACTIVATION'] }))

const Item = Type.Object({ key: Key, value: Type.Unknown({ examples: [{ daily: 500 }] }), scope: Scope })

/** The answer of a list. */
export const Items = Type.Object({ config: Type.Array(Item) })

/** The body of a change. */
export const NewValue = Type.Object({
  value: withExample(Type.Unknown({ description: 'any JSON value, up to 4096 bytes' }), { daily: 500 }),
})

/** Of the path of all items. */
export const OfOwner = Type.Object({ id: Identifier })

/** Of the path of one. */
export const OfKey = Type.Object({ id: Identifier, key: Key })

/** What the view of one item is made from. */
export interface KeyCall {
  readonly params: { readonly id: string; readonly key: string }
  readonly query: { readonly scope?: ConfigScope }
  readonly tx: Tx
  readonly parts: Pick<CloudParts, 'platform'>
}

/** One item for the audit log. */
export function targetOf(kind: 'application' | 'activation') {
  return ({ params: { id, key } }: Pick<KeyCall, 'params'>): string => `configuration item ${key} of ${kind} ${id}`
}

/** Throws ADMINISTRATION_REFUSED. */
export function refuseItem(key: string): never {
  throw notFound(`configuration item ${key}`)
}
