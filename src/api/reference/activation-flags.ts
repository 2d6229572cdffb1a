// activation/flags/list, create, update and remove: show and change the flags of an activation (cloud §15.2).
import { Type } from '@sinclair/typebox'
import { withExample } from '../../http/types.ts'
import { requestRefused } from '../../lib/errors.ts'
import { lockActivationFlags, setActivationFlags } from '../../storage/activation/change.ts'
import { inTransaction } from '../../storage/database/database.ts'
import type { AnyCloudEndpoint } from '../cloud/endpoint.ts'
import { Flag } from '../cloud/fields.ts'
import { findOwn, refuseState } from '../cloud/application-of.ts'
import { type Dialect, type ReferenceCall, referenceEndpoint } from './endpoint.ts'
import { ActivationId, CHANGE_ERRORS, Names } from './members.ts'

const FLAGS_MAX = 64

export const Flags = Type.Array(withExample(Flag, 'VIP'), { maxItems: FLAGS_MAX })

const Answer = Type.Object({ activationId: Type.String(), activationFlags: Names })

export const listFlags = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: 'activation/flags/list',
    operationId: 'referenceListFlags',
    summary: 'The flags of an activation',
    errors: ['REGISTRATION_NOT_FOUND'],
    request: Type.Object({ activationId: ActivationId }),
    response: Answer,
    async handle(call) {
      const { activationId } = call.request
      const { flags } = await findOwn(call, activationId)
      return { activationId, activationFlags: [...flags] }
    },
  })

/** Makes the new flags of an activation of those that it `has` and those that are `named`. */
type Combine = (has: readonly string[], named: readonly string[]) => readonly string[]

const changeFlags =
  (word: 'create' | 'update' | 'remove', summary: string, combine: Combine) =>
  (dialect: Dialect): AnyCloudEndpoint =>
    referenceEndpoint(dialect, {
      path: `activation/flags/${word}`,
      operationId: `reference${word.slice(0, 1).toUpperCase()}${word.slice(1)}Flags`,
      summary,
      errors: CHANGE_ERRORS,
      request: Type.Object({ activationId: ActivationId, activationFlags: Flags }),
      response: Answer,
      handle: (call) => change(call, combine),
    })

async function change(
  call: ReferenceCall<{ activationId: string; activationFlags: string[] }>,
  combine: Combine,
): Promise<{ activationId: string; activationFlags: string[] }> {
  const { parts, request, caller } = call
  const { activationId, activationFlags } = request
  const { state } = await findOwn(call, activationId)
  return await inTransaction(parts.db, async (tx) => {
    const flags = [...new Set(combine(await lockActivationFlags(tx, activationId), activationFlags))]
    if (flags.length > FLAGS_MAX) throw requestRefused('activationFlags', `must not become more than ${FLAGS_MAX}`)
    const isStored = await setActivationFlags(tx, activationId, flags, new Date(parts.platform.now()), caller.username)
    if (!isStored) refuseState(state)
    return { activationId, activationFlags: flags }
  })
}

export const createFlags = changeFlags('create', 'Adds flags to an activation', (has, named) => [...has, ...named])
export const updateFlags = changeFlags('update', 'Replaces the flags of an activation', (_has, named) => named)
export const removeFlags = changeFlags('remove', 'Removes flags of an activation', (has, named) =>
  has.filter((flag) => !named.includes(flag)),
)
