// The master key: from the settings, or for the embedded database from a file beside it, made at the first start.
import { StartError } from '../../lib/errors.ts'
import type { Platform } from '../../lib/platform.ts'
import { readOrCreateKeyFile } from '../../storage/key-file.ts'

/** 32 bytes. Throws StartError when PostgreSQL is used without a key, or the key file is damaged. */
export function loadMasterKey(
  given: Uint8Array | undefined,
  kind: 'embedded' | 'postgresql',
  dataDir: string,
  platform: Platform,
): Uint8Array {
  if (given !== undefined) return given
  if (kind === 'postgresql') throw new StartError('PAWL_MASTER_KEY: needed together with DATABASE_URL')
  return readOrCreateKeyFile(dataDir, () => platform.randomBytes(32))
}
