// Random keys of the installation, made at its first start and stored wrapped under the master key. So a new master key invalidates neither
// credentials nor audit seals.
import type { KeyObject } from 'node:crypto'
import { importHmacKey } from '../crypto/hash.ts'
import { StartError } from '../lib/errors.ts'
import type { Platform } from '../lib/platform.ts'
import { type Db, inTransaction, type Pool } from '../storage/database/database.ts'
import { findWrappedKey, hasWrappedKeys, insertWrappedKey } from '../storage/secrets/wrapped-keys.ts'
import { sealAllCredentials } from './credential/mac.ts'
import { type Place, type RecordKeys, SealedRecordError } from './secrets/record-keys.ts'

/** HMAC-SHA-256 keys, 32 bytes each. */
export interface InstallationKeys {
  /** Credential hashes. */
  readonly credentialHash: KeyObject
  /** Seals of the audit log. */
  readonly auditSeal: KeyObject
  /** Look-up of activation codes without storing them. */
  readonly codeLookup: KeyObject
  /** Tickets of envelopes that were opened for the bank, and the answers under them. */
  readonly doorSeal: KeyObject
  /** MACs of credentials. */
  readonly credentialMac: KeyObject
}

/**
 * Loads the keys, and makes those that are missing. The transaction that makes the key of the MACs also gives a MAC to each existing
 * credential, and calls `onSealed` with their names. From then on a credential without MAC counts as forged. Throws StartError when the keys
 * were wrapped under another master key.
 */
export async function loadInstallationKeys(
  db: Pool,
  recordKeys: RecordKeys,
  platform: Platform,
  onSealed: (credentials: readonly string[]) => void = () => undefined,
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
  const makeCredentialMac = async (): Promise<void> => {
    const key = platform.randomBytes(32)
    const sealed = recordKeys.seal(placeOf(CREDENTIAL_MAC), key)
    const credentials = await inTransaction(db, async (tx) =>
      (await insertWrappedKey(tx, CREDENTIAL_MAC, sealed, new Date(platform.now())))
        ? sealAllCredentials(tx, importHmacKey(key))
        : [],
    )
    if (credentials.length > 0) onSealed(credentials)
  }
  const keys = {
    credentialHash: await load(CREDENTIAL_HASH),
    auditSeal: await load('audit-seal'),
    codeLookup: await load('code-lookup'),
    doorSeal: await load('door/seal'),
  }
  // After the others, which tell a wrong master key before anything is written under it.
  if ((await findWrappedKey(db, CREDENTIAL_MAC)) === undefined) await makeCredentialMac()
  return { ...keys, credentialMac: await load(CREDENTIAL_MAC) }
}

/**
 * Throws StartError when the database has keys that were wrapped under another master key. It asks only for what a database of any version
 * has, so that a wrong key is noticed before anything is migrated.
 */
export async function requireMasterKey(db: Db, recordKeys: RecordKeys): Promise<void> {
  const wrapped = await findFirstKey(db)
  if (wrapped !== undefined) unwrap(recordKeys, CREDENTIAL_HASH, wrapped)
}

/** Whether the database was written under a master key, in any version. */
export const isWritten = async (db: Db): Promise<boolean> => (await findFirstKey(db)) !== undefined

const findFirstKey = async (db: Db): Promise<Uint8Array | undefined> =>
  (await hasWrappedKeys(db)) ? findWrappedKey(db, CREDENTIAL_HASH) : undefined

function unwrap(recordKeys: RecordKeys, purpose: string, wrapped: Uint8Array): Uint8Array {
  try {
    return recordKeys.open(placeOf(purpose), wrapped)
  } catch (error) {
    if (error instanceof SealedRecordError) throw wrongKey(recordKeys, error)
    throw error
  }
}

const placeOf = (purpose: string): Place => ({ table: 'wrapped_key', column: 'wrapped_key', row: purpose })

const CREDENTIAL_HASH = 'credential-hash'
const CREDENTIAL_MAC = 'credential-mac'
const wrongKey = ({ origin }: RecordKeys, cause: unknown): StartError =>
  new StartError(`${origin.setting}: the master key is not the one this database was written with; ${origin.todo}`, { cause })
