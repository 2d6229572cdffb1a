// Webhooks and their dead letters from the command line, on the configured database.
import { replayDeliveries } from '../src/domain/webhook/webhook.ts'
import type { Db } from '../src/storage/database.ts'
import { listWebhooks } from '../src/storage/webhooks.ts'
import { runCommand, UsageError } from './command-line.ts'
import { withDatabase } from './open-database.ts'

const usage = `Webhooks and their dead letters on the configured database; an embedded one only while its server is stopped:
  node scripts/webhooks.ts list
  node scripts/webhooks.ts replay WEBHOOK_ID [DELIVERY_ID]
The second lets one delivery, or all dead ones, wait again; a running server sends them.`

await runCommand({ usage, wordsMax: 3 }, async ({ words: [command, webhookId, deliveryId] }) => {
  if (command === 'list' && webhookId === undefined) return withDatabase({ mustExist: true }, ({ db }) => list(db))
  if (command !== 'replay' || webhookId === undefined) throw new UsageError('give list, or replay WEBHOOK_ID [DELIVERY_ID]')
  return withDatabase({ mustExist: true }, ({ db }) => replay(db, webhookId, deliveryId))
})

async function list(db: Db): Promise<void> {
  for (const webhook of await listWebhooks(db, null)) {
    const { applicationId, name, kind, isEnabled, disabledReason, waiting, delivered, dead, failuresInRow } = webhook
    const state = isEnabled ? 'enabled' : `disabled${disabledReason === null ? '' : ` (${disabledReason})`}`
    const since = webhook.waitingSince === null ? '' : ` since ${webhook.waitingSince.toISOString()}`
    print(`${webhook.webhookId} ${kind} of ${applicationId}, ${JSON.stringify(name)}, ${state}`)
    print(`  ${waiting} waiting${since}, ${delivered} delivered, ${dead} dead, ${failuresInRow} failures in a row`)
  }
}

async function replay(db: Db, id: string, deliveryId: string | undefined): Promise<void> {
  print(`${await replayDeliveries({ db }, id, deliveryId)} replayed`)
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
