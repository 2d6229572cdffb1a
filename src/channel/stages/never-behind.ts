// A counter that went back in the database: a row put back by hand, by a backup or by a failover makes no used code good again.
import { equalPublic } from '../../lib/bytes.ts'
import type { ActivationRow } from '../../storage/activation/find.ts'
import type { RequestParties } from '../../storage/activation/authentication.ts'
import type { ChannelParts } from '../parts.ts'

/**
 * Returns what was read. Where the database has an earlier counter than this process stored last, the stored one takes its place, and the
 * next right code repairs the row. `known` was remembered before the read: it is newer than what was read only if the database went back.
 */
export function neverBehind(
  { events }: Pick<ChannelParts, 'events'>,
  read: RequestParties,
  known: ActivationRow | undefined,
): RequestParties {
  const { activation } = read
  if (!activation?.ctrData || !known?.ctrData || known.protocolVersion !== activation.protocolVersion) return read
  const isBehind =
    known.counter > activation.counter ||
    (known.counter === activation.counter && !equalPublic(known.ctrData, activation.ctrData))
  if (!isBehind) return read
  const { activationId, counter: stored } = activation
  events.counterWentBack({ activationId, stored, known: known.counter })
  return { ...read, activation: { ...activation, counter: known.counter, ctrData: known.ctrData } }
}
