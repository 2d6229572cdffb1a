// The master keys: from the settings, from a command, or for the embedded database from a file beside it, made at the first start.
import { StartError } from '../../lib/errors.ts'
import { type GivenKey, type GivenKeys, parseKeyList } from '../../lib/key-list.ts'
import type { Platform } from '../../lib/platform.ts'
import { keyPathIn, readOrCreateKeyFile } from './key-file.ts'
import { runKeyCommand } from './key-command.ts'
import { createVaultTransit, type KeyService } from './key-service.ts'
import { type KeyOrigin, type MasterKeys, OF_SETTING } from './record-keys.ts'

interface KeySources {
  readonly config: { readonly dataDir: string; readonly masterKeyCommand?: string; readonly vaultKeyUrl?: string }
  readonly secrets: {
    readonly masterKeys?: GivenKeys
    readonly vaultToken?: string
    readonly masterKeyCommandEnvironment?: Readonly<Record<string, string>>
  }
}

/**
 * Loads the master keys, 32 bytes each; the first one seals. Throws StartError when PostgreSQL is used without a key, the key file is damaged,
 * or the source of the keys does not give them. The embedded database gets a new key if there is none, and `isWritten` says that nothing was
 * written under one.
 */
export async function loadMasterKeys(
  { config, secrets }: KeySources,
  kind: 'embedded' | 'postgresql',
  platform: Pick<Platform, 'randomBytes'>,
  isWritten: () => Promise<boolean>,
): Promise<MasterKeys> {
  const [first, ...others] = await findGivenKeys({ config, secrets }, kind, platform, isWritten)
  const service = findKeyService({ config, secrets })
  return [await unwrap(service, first), ...(await Promise.all(others.map((key) => unwrap(service, key))))]
}

/** The source from which loadMasterKeys gets the keys. */
export function findKeyOrigin({ config, secrets }: KeySources, kind: 'embedded' | 'postgresql'): KeyOrigin {
  if (secrets.masterKeys !== undefined) return OF_SETTING
  if (config.masterKeyCommand !== undefined)
    return {
      setting: 'PAWL_MASTER_KEY_COMMAND',
      todo: 'look at what the program prints, and at whether this is the right database',
    }
  if (kind === 'postgresql') return OF_SETTING
  return { setting: 'PAWL_DATA_DIR', todo: `put ${keyPathIn(config.dataDir)} back from the backup` }
}

/** The key service of the settings, if there is one. */
export const findKeyService = ({ config: { vaultKeyUrl }, secrets: { vaultToken } }: KeySources): KeyService | undefined =>
  vaultKeyUrl === undefined ? undefined : createVaultTransit({ keyUrl: vaultKeyUrl, token: vaultToken })

async function findGivenKeys(
  { config, secrets }: KeySources,
  kind: 'embedded' | 'postgresql',
  platform: Pick<Platform, 'randomBytes'>,
  isWritten: () => Promise<boolean>,
): Promise<GivenKeys> {
  if (secrets.masterKeys !== undefined) return secrets.masterKeys
  const command = config.masterKeyCommand
  if (command !== undefined) {
    const printed = (await runKeyCommand(command, secrets.masterKeyCommandEnvironment ?? {})).trim()
    const keys = parseKeyList(printed)
    if (keys === undefined)
      throw new StartError(
        `PAWL_MASTER_KEY_COMMAND: ${printed === '' ? 'it prints nothing' : 'what it prints is not 32 bytes in standard Base64'}; run it by hand with the environment that docs/CONFIG.md names`,
      )
    return keys
  }
  if (kind === 'postgresql')
    throw new StartError('PAWL_MASTER_KEY: needed together with DATABASE_URL, make one with: openssl rand -base64 32')
  return readOrCreateKeyFile(config.dataDir, async () => {
    // A new key would open nothing there is, and lie where the right one belongs.
    if (await isWritten())
      throw new StartError(
        `PAWL_DATA_DIR: the master key that this database was written with is missing; put ${keyPathIn(config.dataDir)} back from the backup`,
      )
    return platform.randomBytes(32)
  })
}

async function unwrap(service: KeyService | undefined, key: GivenKey): Promise<Uint8Array> {
  if (typeof key !== 'string') return key
  if (service === undefined)
    throw new StartError('PAWL_MASTER_KEY: a wrapped key, and PAWL_VAULT_KEY_URL does not say who unwraps it')
  return service.unwrap(key)
}
