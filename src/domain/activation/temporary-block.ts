// Temporary blocks: a block by failed attempts ends by itself, and each one in a row lasts twice as long (cloud §3.4).
import { endTemporaryBlock } from '../../storage/activation/expiry.ts'
import type { DomainParts } from '../secrets/secrets.ts'

/** The end of the `blocksInRow`-th block in a row; null when `firstSeconds` is 0, because then blocks have no end. */
export function composeBlockEnd(firstSeconds: number, blocksInRow: number, at: Date): Date | null {
  if (firstSeconds === 0) return null
  const seconds = Math.min(firstSeconds * 2 ** (blocksInRow - 1), TEMPORARY_BLOCK_SECONDS_MAX)
  return new Date(at.getTime() + seconds * 1000)
}

/**
 * Stores the end of a block that is over. True when there was one: the activation must be read again. Every writer that changes an activation
 * calls this first, so that history, audit log and webhooks have the end as an event of its own.
 */
export async function endBlockIfOver(
  { db, platform, events }: Omit<DomainParts, 'recordKeys'>,
  { activationId, isBlockOver }: { readonly activationId: string; readonly isBlockOver: boolean },
): Promise<boolean> {
  if (!isBlockOver) return false
  const isStored = await endTemporaryBlock(db, activationId, new Date(platform.now()))
  if (isStored) events.registrationChanged({ activationId, from: 'BLOCKED', to: 'ACTIVE', reason: 'BLOCK_EXPIRED' })
  return true
}

// 30 days: a thief of a phone has a dozen guesses a year, and the number cannot grow without end.
const TEMPORARY_BLOCK_SECONDS_MAX = 2_592_000
