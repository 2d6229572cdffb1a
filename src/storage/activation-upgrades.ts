// The table activation_upgrade: the side of protocol 4.0 of an activation of protocol 3, until its phone confirms (v4 §10).
import { sql } from 'kysely'
import { type ActivationRow, findActivation } from './activations.ts'
import type { Db, Tx } from './database.ts'
import type { ActivationAlgorithm } from './schema.ts'

/** What upgrade/start agreed on. Sealed values are sealed for the columns of activation, into which they move. */
export interface Upgrade {
  readonly algorithm: ActivationAlgorithm
  readonly devicePublicKey: Uint8Array
  readonly serverPublicKey: Uint8Array
  /** sealed */
  readonly serverPrivateKey: Uint8Array
  /** sealed */
  readonly masterSecret: Uint8Array
  /** sealed */
  readonly ctrData: Uint8Array
  readonly activationFingerprint: string
  readonly isBiometryEnabled: boolean
}

/**
 * Stores an upgrade in place of an earlier one; its counter goes on from that of protocol 3. `startedAt` is the counter after the code of
 * this start. False when the activation cannot have one, or when a later start was stored meanwhile. A block after the code takes nothing
 * away: the start was before.
 */
export async function storeUpgrade(db: Db, activationId: string, startedAt: number, upgrade: Upgrade): Promise<boolean> {
  const { rows } = await sql`
    with upgrading as (
      update activation set row_version = row_version + 1
      where activation_id = ${activationId} and state in ('ACTIVE', 'BLOCKED') and protocol_version = 3
      returning activation_id, counter
    )
    insert into activation_upgrade (activation_id, algorithm, device_public_key, server_public_key, server_private_key, master_secret,
      ctr_data, counter, activation_fingerprint, is_biometry_enabled)
    select activation_id, ${upgrade.algorithm}::text, ${upgrade.devicePublicKey}::bytea, ${upgrade.serverPublicKey}::bytea,
      ${upgrade.serverPrivateKey}::bytea, ${upgrade.masterSecret}::bytea, ${upgrade.ctrData}::bytea, counter,
      ${upgrade.activationFingerprint}::text, ${upgrade.isBiometryEnabled}::boolean
    from upgrading
    on conflict (activation_id) do update set algorithm = excluded.algorithm, device_public_key = excluded.device_public_key,
      server_public_key = excluded.server_public_key, server_private_key = excluded.server_private_key,
      master_secret = excluded.master_secret, ctr_data = excluded.ctr_data, counter = excluded.counter,
      activation_fingerprint = excluded.activation_fingerprint, is_biometry_enabled = excluded.is_biometry_enabled
    where activation_upgrade.counter <= ${startedAt}
    returning activation_id`.execute(db)
  return rows.length === 1
}

/** An activation as it will be after its upgrade; as it is when none is pending. */
export async function seeUpgraded(db: Db, activation: ActivationRow, at: Date): Promise<ActivationRow> {
  if (activation.protocolVersion !== 3) return activation
  const pending = await db
    .selectFrom('activation_upgrade')
    .select([
      'algorithm',
      'server_public_key as serverPublicKey',
      'server_private_key as serverPrivateKey',
      'master_secret as masterSecret',
      'ctr_data as ctrData',
      'counter',
      'is_biometry_enabled as isBiometryEnabled',
    ])
    .where('activation_id', '=', activation.activationId)
    .executeTakeFirst()
  if (pending !== undefined) return { ...activation, ...pending, protocolVersion: 4, isUpgradePending: true }
  // It may have been confirmed between the two reads.
  return (await findActivation(db, activation.activationId, at)) ?? activation
}

/** Makes a pending upgrade the activation; counter and its data are what the code of this transaction stored. False when none is pending. */
export async function completeUpgrade(tx: Tx, activationId: string, at: Date): Promise<boolean> {
  const { rows } = await sql`
    with pending as (
      delete from activation_upgrade where activation_id = ${activationId}
      returning activation_id, algorithm, device_public_key, server_public_key, server_private_key, master_secret,
        activation_fingerprint, is_biometry_enabled
    ), upgraded as (
      update activation a set protocol_version = 4, algorithm = pending.algorithm, device_public_key = pending.device_public_key,
        server_public_key = pending.server_public_key, server_private_key = pending.server_private_key,
        master_secret = pending.master_secret, activation_fingerprint = pending.activation_fingerprint,
        is_biometry_enabled = pending.is_biometry_enabled
      from pending where a.activation_id = pending.activation_id and a.protocol_version = 3
      returning a.activation_id
    )
    insert into activation_history (activation_id, from_state, to_state, reason, occurred_at)
    select activation_id, 'ACTIVE', 'ACTIVE', 'ACTIVATION_VERSION_CHANGED', ${at}::timestamptz from upgraded
    returning activation_id`.execute(tx)
  return rows.length === 1
}
