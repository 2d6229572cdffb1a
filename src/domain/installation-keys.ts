// Loads the random keys of the installation. Its first start makes them and stores them wrapped under the master key. So a new master key
// invalidates neither credentials nor audit seals.
import type { KeyObject } from 'node:crypto'
import { importHmacKey } from '../crypto/hash.ts'
import { StartError } from '../lib/errors.ts'
import type { Platform } from '../lib/platform.ts'
import { keyIdOf } from '../lib/sealed-value.ts'
import type { Events } from '../log/events.ts'
import { type Db, inTransaction, type Pool, type Tx } from '../storage/database/database.ts'
import { findWrappedKey, hasWrappedKeys, insertWrappedKey } from '../storage/secrets/wrapped-keys.ts'
import { sealAllCredentials } from './credential/mac.ts'
import { type Place, type RecordKeys, SealedRecordError } from './secrets/record-keys.ts'
import { sealAllBasic } from './webhook/basic.ts'

/** HMAC-SHA-256 keys, 32 bytes each. */
export interface InstallationKeys {
  /** For the hashes of credentials. */
  readonly credentialHash: KeyObject
  /** For the seals of the audit log. */
  readonly auditSeal: KeyObject
  /** For the hashes by which activation codes, push tokens, failures and calls to doors are looked up. */
  readonly codeLookup: KeyObject
  /** For the tickets of envelopes that were opened for the bank, and for the answers under them. */
  readonly doorSeal: KeyObject
  /** For the MACs of credentials. */
  readonly credentialMac: KeyObject
  /** For the MACs of credentials that pawl sends to receivers of webhooks. */
  readonly webhookMac: KeyObject
}

/**
 * Loads the keys, and makes missing ones. The transaction that makes a key of MACs also writes a MAC for each existing row, and `events` reports
 * the names of these rows. From then on a row without a MAC counts as forged. Throws StartError when the keys were wrapped under another master
 * key.
 */
export async function loadInstallationKeys(
  db: Pool,
  recordKeys: RecordKeys,
  platform: Platform,
  events: Pick<Events, 'credentialsSealed' | 'webhooksSealed'> = UNTOLD,
): Promise<InstallationKeys> {
  const load = async (purpose: string): Promise<KeyObject> => {
    let wrapped = await findWrappedKey(db, purpose)
    if (wrapped === undefined) {
      await insertWrappedKey(db, purpose, recordKeys.seal(placeOf(purpose), platform.randomBytes(32)), new Date(platform.now()))
      wrapped = await findWrappedKey(db, purpose)
    }
    if (wrapped === undefined) throw new StartError(`the installation key "${purpose}" could not be stored`)
    return importHmacKey(unwrap(recordKeys, purpose, wrapped))
  }
  /** The same for a key of MACs: with a new key each existing row gets a MAC, and `tell` gets the names of these rows. */
  const loadMac = async (
    purpose: string,
    sealAll: (tx: Tx, key: KeyObject) => Promise<string[]>,
    tell: (names: readonly string[]) => void,
  ): Promise<KeyObject> => {
    if ((await findWrappedKey(db, purpose)) !== undefined) return load(purpose)
    const key = platform.randomBytes(32)
    const wrapped = recordKeys.seal(placeOf(purpose), key)
    const names = await inTransaction(db, async (tx) =>
      (await insertWrappedKey(tx, purpose, wrapped, new Date(platform.now()))) ? sealAll(tx, importHmacKey(key)) : [],
    )
    if (names.length > 0) tell(names)
    return load(purpose)
  }
  const keys = {
    credentialHash: await load(CREDENTIAL_HASH),
    auditSeal: await load('audit-seal'),
    codeLookup: await load('code-lookup'),
    doorSeal: await load('door/seal'),
  }
  // These keys come last. A wrong master key fails at the others, before any row is written under it.
  return {
    ...keys,
    credentialMac: await loadMac('credential-mac', sealAllCredentials, (credentials) =>
      events.credentialsSealed({ credentials }),
    ),
    webhookMac: await loadMac(
      'webhook-mac',
      (tx, key) => sealAllBasic(tx, recordKeys, key),
      (webhooks) => events.webhooksSealed({ webhooks }),
    ),
  }
}

const UNTOLD = { credentialsSealed: () => undefined, webhooksSealed: () => undefined }

/**
 * Throws StartError when the database has keys that were wrapped under another master key. It reads only columns that databases of all versions
 * have, so that a wrong key is noticed before any migration.
 */
export async function requireMasterKey(db: Db, recordKeys: RecordKeys): Promise<void> {
  const wrapped = await findFirstKey(db)
  if (wrapped !== undefined) unwrap(recordKeys, CREDENTIAL_HASH, wrapped)
}

/** Whether any version of pawl has written the database under a master key. */
export const isWritten = async (db: Db): Promise<boolean> => (await findFirstKey(db)) !== undefined

const findFirstKey = async (db: Db): Promise<Uint8Array | undefined> =>
  (await hasWrappedKeys(db)) ? findWrappedKey(db, CREDENTIAL_HASH) : undefined

function unwrap(recordKeys: RecordKeys, purpose: string, wrapped: Uint8Array): Uint8Array {
  // The error that ends the start says it; the log need not tell of a missing key as well.
  if (!recordKeys.keyIds.includes(keyIdOf(wrapped))) throw wrongKey(recordKeys, new SealedRecordError(placeOf(purpose), false))
  try {
    return recordKeys.open(placeOf(purpose), wrapped)
  } catch (error) {
    if (error instanceof SealedRecordError) throw wrongKey(recordKeys, error)
    throw error
  }
}

const placeOf = (purpose: string): Place => ({ table: 'wrapped_key', column: 'wrapped_key', row: purpose })

const CREDENTIAL_HASH = 'credential-hash'
const wrongKey = ({ origin }: RecordKeys, cause: unknown): StartError =>
  new StartError(`${origin.setting}: the master key is not the one this database was written with; ${origin.todo}`, { cause })
