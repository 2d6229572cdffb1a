// Runs pawl registration fence on the database itself.
import { fenceActivations } from '../../src/domain/activation/fence.ts'
import { v3 } from '../../src/protocol/v3/index.ts'
import { v4 } from '../../src/protocol/v4/index.ts'
import { requireMigrated } from '../../src/storage/database/migrate.ts'
import type { Answer, Terminal } from '../command.ts'
import { usageFault } from '../fault.ts'
import { tellNowAndThen } from '../progress.ts'
import { openRecordKeys, withDatabase } from './database.ts'
import { requireFit } from './keys.ts'

/** In milliseconds since 1970. No server of pawl ran before this time. */
const EARLIEST = Date.UTC(2020, 0)

/** Fences the configured database; `since` is in milliseconds since 1970. The exit code is 1 when a registration could not be fenced. */
export const fenceLocal = (terminal: Terminal, since: number, keepsActive: boolean): Promise<Answer> => {
  // A number of seconds would be a time before any registration, so that nothing would be fenced.
  if (since < EARLIEST) throw usageFault(`--since is ${new Date(since).toISOString()}: give milliseconds since 1970, or a date`)
  return withDatabase(terminal, { mustExist: true }, async (database, settings, platform) => {
    if (since > platform.now()) throw usageFault('--since is in the future: it is the moment to which the database went back')
    const { db } = database
    await requireMigrated(db)
    const recordKeys = await openRecordKeys(database, settings)
    await requireFit(database, recordKeys)
    // By the status, a phone catches up with a counter that is ahead by fewer steps than the look-ahead.
    const steps = settings.config.counterLookAhead - 1
    const parts = { db, recordKeys, platform, advanceCounter }
    const fence = { since: new Date(since), steps, blocks: !keepsActive }
    const tell = tellNowAndThen(terminal.note)
    const { fenced, blocked, removed, unopened } = await fenceActivations(parts, fence, (soFar) =>
      tell(() => `${soFar.fenced} registrations so far`),
    )
    const moved = `${fenced} registrations moved on by ${steps} codes, ${blocked} of them blocked\n`
    const lines = unopened.map((id) => `registration ${id} is not fenced: its counter opens under none of the keys\n`)
    const text = `${moved}${removed} registrations removed that waited for a phone\n${lines.join('')}`
    return { json: { fenced, blocked, removed, steps, unopened }, text, exitCode: unopened.length === 0 ? 0 : 1 }
  })
}

/** Moves a counter value on, by the rules of the generation whose version the activation records. */
function advanceCounter(protocolVersion: number, ctrData: Uint8Array): Uint8Array {
  const protocol = [v3, v4].find(({ activationVersion }) => activationVersion === protocolVersion)
  if (protocol === undefined) throw new TypeError(`no protocol has version ${protocolVersion}`)
  return protocol.advanceCounter(ctrData)
}
