// Inserts many activations without phones, sealed as real ones are, for tests that rotate the master key.
import { places } from '../../src/domain/secrets/secrets.ts'
import type { RecordKeys } from '../../src/domain/secrets/record-keys.ts'
import type { Db } from '../../src/storage/database/database.ts'
import { random } from '../../phone/v3/crypto.ts'

/** Inserts copies of an existing activation, with ids and users of their own; returns the ids. */
export async function insertActivations(db: Db, recordKeys: RecordKeys, count: number): Promise<readonly string[]> {
  const model = await db.selectFrom('activation').selectAll().where('state', '=', 'ACTIVE').executeTakeFirstOrThrow()
  const run = Buffer.from(random(4)).toString('hex')
  const ids: string[] = []
  while (ids.length < count) {
    const rows = Array.from({ length: Math.min(BATCH_ROWS, count - ids.length) }, (_, i) => {
      const activationId = `${run}-filler-${String(ids.length + i).padStart(8, '0')}`
      const owner = { activationId, applicationId: model.application_id, userId: activationId }
      return {
        ...model,
        activation_id: activationId,
        user_id: owner.userId,
        activation_code_hash: Buffer.from(random(32)),
        server_private_key: Buffer.from(recordKeys.seal(places.serverPrivateKey(owner), random(32))),
        master_secret: Buffer.from(recordKeys.seal(places.masterSecret(owner), random(16))),
        ctr_data: Buffer.from(recordKeys.seal(places.ctrData(activationId), random(16))),
      }
    })
    await db.insertInto('activation').values(rows).execute()
    ids.push(...rows.map(({ activation_id }) => activation_id))
  }
  return ids
}

const BATCH_ROWS = 500
