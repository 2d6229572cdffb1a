// Lists webhooks of the configured database, and replays their dead deliveries.
import { replayDeliveries } from '../../src/domain/webhook/webhook.ts'
import { PawlError } from '../../src/lib/errors.ts'
import { listWebhooks } from '../../src/storage/webhook/webhooks.ts'
import type { Answer, Terminal } from '../command.ts'
import { Fault } from '../fault.ts'
import { printable } from '../output.ts'
import { withDatabase } from './database.ts'

/** Prints two lines a webhook: one about the webhook, and one with the numbers of its deliveries. */
export const listLocal = (terminal: Terminal): Promise<Answer> =>
  withDatabase(terminal, { mustExist: true }, async ({ db }) => {
    const webhooks = await listWebhooks(db, null)
    return { json: { webhooks: webhooks.map(shown) }, text: webhooks.map((one) => render(shown(one))).join('') }
  })

type Row = Awaited<ReturnType<typeof listWebhooks>>[number]

/** A webhook without its secrets. */
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

function render(webhook: ReturnType<typeof shown>): string {
  const { id, kind, application, name, isEnabled, disabledReason, waiting, waitingSince, delivered, dead, failuresInRow } =
    webhook
  const state = isEnabled ? 'enabled' : `disabled${disabledReason === undefined ? '' : ` (${disabledReason})`}`
  const since = waitingSince === undefined ? '' : ` since ${waitingSince}`
  return `${id} ${kind} of ${printable(application)}, ${printable(JSON.stringify(name))}, ${state}
  ${waiting} waiting${since}, ${delivered} delivered, ${dead} dead, ${failuresInRow} failures in a row\n`
}

/** Queues one delivery, or all dead ones, again. */
export const replayLocal = (terminal: Terminal, id: string, deliveryId: string | undefined): Promise<Answer> =>
  withDatabase(terminal, { mustExist: true }, async ({ db }) => {
    try {
      const replayed = await replayDeliveries({ db }, id, deliveryId)
      return { json: { replayed }, text: `${replayed} replayed\n` }
    } catch (error) {
      throw error instanceof PawlError ? new Fault('missing', error.message) : error
    }
  })
