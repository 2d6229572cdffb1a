// Stores upgrades in the table activation_upgrade: the keys of protocol 4.0 for an activation of protocol 3, until its phone confirms (v4 §10).
import { type RawBuilder, sql } from 'kysely'
import { type Db, onlyRow, type Tx } from '../database/database.ts'
import type { ActivationAlgorithm } from '../database/schema.ts'
import { toCustomObject } from '../application/applications.ts'
import type { ReadActivationRow } from '../activation/find.ts'
import { insertHistoryFrom } from '../activation/history.ts'
import {
  both,
  defineLookup,
  PARTIES,
  type Part,
  type PartyNames,
  type ProofNames,
  type Proofs,
  PROOFS,
  type ReadParties,
} from './lookup.ts'

/** The keys that upgrade/start agreed on. Sealed values are sealed for the columns of activation, to which completeUpgrade copies them. */
interface Upgrade {
  readonly algorithm: ActivationAlgorithm
  readonly devicePublicKey: Uint8Array
  readonly serverPublicKey: Uint8Array
  /** Sealed. */
  readonly serverPrivateKey: Uint8Array
  /** Sealed. */
  readonly masterSecret: Uint8Array
  /** Sealed. */
  readonly ctrData: Uint8Array
  readonly activationFingerprint: string
  readonly isBiometryEnabled: boolean
}

/**
 * Stores an upgrade, replacing an earlier one; its counter continues that of protocol 3. `startedAt` is the counter after the code of this request.
 * False when the activation cannot be upgraded, or when a later start was stored meanwhile. A block after the code was accepted does not undo the
 * start.
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
    on conflict (activation_id) do update set ${setFrom('excluded')}, ctr_data = excluded.ctr_data, counter = excluded.counter
    where activation_upgrade.counter <= ${startedAt}
    returning activation_id`.execute(db)
  return rows.length === 1
}

/**
 * Reads version and activation; with a pending upgrade, the activation as it will be after the upgrade. It is always one statement, so that its
 * time does not reveal which ids exist, and so that it sees a confirmation completely or not at all.
 */
export async function findUpgradedParties(db: Db, names: PartyNames): Promise<ReadParties> {
  return toUpgradedParties(onlyRow(await findWithPending(db, [names])))
}

/** The rows for a status request of protocol 4.0, with the activation as findUpgradedParties returns it. */
export interface StatusProofs extends Proofs {
  /** The custom object of the version's application; null without one. */
  readonly customObject: ReturnType<typeof toCustomObject>
}

/** Reads the rows of all requests in one statement. `names` must name no tokens. */
export async function findStatusProofs(db: Db, names: readonly ProofNames[]): Promise<readonly StatusProofs[]> {
  const rows = await findProofsWithPending(db, names)
  return rows.map(({ pending, ...found }) => ({ ...found, parties: toUpgradedParties({ pending, ...found }) }))
}

/**
 * Completes a pending upgrade. The activation keeps the counter and ctrData that the code of this transaction stored. False when no upgrade is
 * pending.
 */
export async function completeUpgrade(tx: Tx, activationId: string, at: Date): Promise<boolean> {
  const { rows } = await sql`
    with pending as (
      delete from activation_upgrade where activation_id = ${activationId} returning *
    ), upgraded as (
      update activation a set protocol_version = 4, ${setFrom('pending')}
      from pending where a.activation_id = pending.activation_id and a.protocol_version = 3
      returning a.activation_id
    )
    ${insertHistoryFrom(sql`upgraded`, { from: 'ACTIVE', to: 'ACTIVE', reason: 'ACTIVATION_VERSION_CHANGED', at })}
    returning activation_id`.execute(tx)
  return rows.length === 1
}

/** Sets the columns that an upgrade brings, under the same names in both tables, to those of a row. */
const setFrom = (row: string): RawBuilder<unknown> => sql.raw(UPGRADED.map((column) => `${column} = ${row}.${column}`).join(', '))

const UPGRADED = [
  'algorithm',
  'device_public_key',
  'server_public_key',
  'server_private_key',
  'master_secret',
  'activation_fingerprint',
  'is_biometry_enabled',
]

/** Columns of the pending upgrade; null when there is none. */
interface PendingColumns {
  readonly pendingAlgorithm: ActivationAlgorithm | null
  readonly pendingServerPrivateKey: Buffer
  readonly pendingMasterSecret: Buffer
  readonly pendingCtrData: Buffer
  readonly pendingCounter: number
  readonly isPendingBiometryEnabled: boolean
}

interface WithPending {
  readonly pending: PendingColumns | undefined
}

function toUpgradedParties({ parties, pending }: WithPending & { readonly parties: ReadParties }): ReadParties {
  const { activation } = parties
  return activation && pending ? { ...parties, activation: toUpgraded(activation, pending) } : parties
}

const toUpgraded = (activation: ReadActivationRow, pending: PendingColumns): ReadActivationRow => ({
  ...activation,
  protocolVersion: 4,
  isUpgradePending: true,
  algorithm: pending.pendingAlgorithm,
  serverPrivateKey: pending.pendingServerPrivateKey,
  masterSecret: pending.pendingMasterSecret,
  ctrData: pending.pendingCtrData,
  counter: pending.pendingCounter,
  isBiometryEnabled: pending.isPendingBiometryEnabled,
})

const PENDING: Part<object, PendingColumns, WithPending> = {
  given: {},
  select: sql`u.algorithm as "pendingAlgorithm", u.server_private_key as "pendingServerPrivateKey",
    u.master_secret as "pendingMasterSecret", u.ctr_data as "pendingCtrData", u.counter as "pendingCounter",
    u.is_biometry_enabled as "isPendingBiometryEnabled"`,
  join: sql`left join activation_upgrade u on u.activation_id = a.activation_id`,
  read: (row) => ({ pending: row.pendingAlgorithm === null ? undefined : row }),
}

const CUSTOM_OBJECT: Part<object, { readonly customObjectText: string | null }, Pick<StatusProofs, 'customObject'>> = {
  given: {},
  select: sql`p.custom_object as "customObjectText"`,
  join: sql``,
  read: (row) => ({ customObject: toCustomObject(row.customObjectText) }),
}

const findWithPending = defineLookup(both(PARTIES, PENDING))
const findProofsWithPending = defineLookup(both(both(PROOFS, PENDING), CUSTOM_OBJECT))
