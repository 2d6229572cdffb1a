// Lists webhooks of the configured database, and replays their dead deliveries.
import { replayDeliveries } from '../../src/domain/webhook/webhook.ts'
import { PawlError } from '../../src/lib/errors.ts'
import { listWebhooks } from '../../src/storage/webhook/webhooks.ts'
import type { Answer, Terminal } from '../command.ts'
import { Fault } from '../fault.ts'
import { LOCAL, withDatabase } from './database.ts'

/** Each webhook without its secrets, with the numbers of its deliveries. */
export const listLocal = (terminal: Terminal) =>
  withDatabase(terminal, LOCAL, async ({ db }) => ({ webhooks: (await listWebhooks(db, null)).map(shown) }))

type Row = Awaited<ReturnType<typeof listWebhooks>>[number]

const shown = ({ webhookId, kind, applicationId, name, url, isEnabled, disabledReason, ...counts }: Row) => {
  const { waiting, waitingSince, delivered, dead, failuresInRow } = counts
  const state = { isEnabled, ...(disabledReason !== null && { disabledReason }) }
  const since = waitingSince === null ? {} : { waitingSince: waitingSince.toISOString() }
  return {
    id: webhookId,
    application: applicationId,
    kind,
    name,
    url,
    ...state,
    waiting,
    ...since,
    delivered,
    dead,
    failuresInRow,
  }
}

/** Queues one delivery, or all dead ones, again. */
export const replayLocal = (terminal: Terminal, id: string, deliveryId: string | undefined): Promise<Answer> =>
  withDatabase(terminal, LOCAL, async ({ db }) => {
    try {
      const replayed = await replayDeliveries({ db }, id, deliveryId)
      return { json: { replayed }, text: `${replayed} replayed\n` }
    } catch (error) {
      throw error instanceof PawlError ? new Fault('missing', error.message) : error
    }
  })
