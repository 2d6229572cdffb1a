// Makes a restored database safe: pawl accepts no code a second time whose first use the database has lost
// (docs/decisions/0016-fence-after-a-restore.md). The command may be stopped at any moment and run again. It fences an activation only once after a
// restore.
import {
  type FencedActivation,
  fenceTickets,
  findUnfenced,
  isAnyWaiting,
  removeWaiting,
  storeFenced,
  type UnfencedActivation,
} from '../../storage/activation/fence.ts'
import { ifOpens, type KeyParts, places } from '../secrets/secrets.ts'

/** Computes the counter value that follows `ctrData`, by the protocol version of an activation (v3 §9.1, v4 §7.2). */
type AdvanceCounter = (protocolVersion: number, ctrData: Uint8Array) => Uint8Array

interface Fence {
  /** The time of the restored state of the database. */
  readonly since: Date
  /** The number of counter values by which each counter moves on. */
  readonly steps: number
  /** Whether activations are blocked, until the bank unblocks them. */
  readonly blocks: boolean
}

export interface Fenced {
  /** Activations whose counter was moved. */
  readonly fenced: number
  /** Of these, those that are blocked now. */
  readonly blocked: number
  /** Activations that waited for a phone and were removed, with their codes. */
  readonly removed: number
  /** Ids of activations whose counter data opens under none of the keys. Their counters cannot be moved, and they stay as they are. */
  readonly unopened: readonly string[]
}

/** Fences all activations that need it, a page at a time. Calls `onPage` with the numbers so far. Servers may run meanwhile. */
export async function fenceActivations(
  parts: KeyParts & { readonly advanceCounter: AdvanceCounter },
  fence: Fence,
  onPage: (soFar: Omit<Fenced, 'unopened'>) => void = () => undefined,
  pageRows = PAGE_ROWS,
): Promise<Fenced> {
  const soFar = { fenced: 0, blocked: 0, removed: 0 }
  const unopened = new Set<string>()
  await fenceTickets(parts.db)
  do {
    soFar.removed += await removeWaiting(parts.db, fence.since, new Date(parts.platform.now()), pageRows)
  } while (await isAnyWaiting(parts.db, fence.since))
  // If a server changed an activation meanwhile, the search begins again and finds it.
  for (let wasLost = true; wasLost; ) {
    wasLost = false
    for (let after = ''; ; ) {
      const { unfenced, last } = await findUnfenced(parts.db, fence.since, after, pageRows)
      if (last === undefined) break
      after = last
      const at = new Date(parts.platform.now())
      const due = unfenced.flatMap((row) => {
        const next = moveOn(parts, row, fence, at)
        if (next === undefined) unopened.add(row.activationId)
        return next ?? []
      })
      const moved = due.length === 0 ? [] : await storeFenced(parts.db, due)
      wasLost ||= moved.length < due.length
      soFar.fenced += moved.length
      soFar.blocked += moved.filter(({ state }) => state === 'BLOCKED').length
      onPage(soFar)
    }
  }
  return { ...soFar, unopened: [...unopened] }
}

/** Moves the counter of a row on; undefined when its counter data does not open. */
function moveOn(
  { recordKeys, advanceCounter }: Pick<KeyParts, 'recordKeys'> & { readonly advanceCounter: AdvanceCounter },
  { activationId, rowVersion, protocolVersion, counter, ctrData }: UnfencedActivation,
  { steps, blocks }: Fence,
  at: Date,
): FencedActivation | undefined {
  const place = places.ctrData(activationId)
  let value = ifOpens(() => recordKeys.open(place, ctrData))
  if (value === undefined) return undefined
  for (let step = 0; step < steps; step += 1) value = advanceCounter(protocolVersion, value)
  const eventData = JSON.stringify({ steps, blocks })
  return { activationId, rowVersion, counter: counter + steps, ctrData: recordKeys.seal(place, value), blocks, eventData, at }
}

const PAGE_ROWS = 200
