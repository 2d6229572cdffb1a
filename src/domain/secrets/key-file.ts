// The master keys of an embedded installation: a file in the data directory, with a key a line in Base64, mode 0600. Whoever has the directory
// has the data. On PostgreSQL the keys come from the settings instead.
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { toBase64 } from '../../lib/base64.ts'
import { StartError } from '../../lib/errors.ts'
import { type GivenKeys, parseKeyList } from '../../lib/key-list.ts'

/** Reads the keys, or writes the one that `create` makes (32 bytes). Throws StartError when the file contains no keys. */
export async function readOrCreateKeyFile(dataDir: string, create: () => Promise<Uint8Array>): Promise<GivenKeys> {
  const path = keyPathIn(dataDir)
  const text = readIfPresent(path)
  if (text === undefined) return [write(path, await create())]
  const keys = parseKeyList(text.trim())
  if (keys === undefined)
    throw new StartError(`PAWL_DATA_DIR: ${path} is not a master key (32 bytes in Base64); put it back from the backup`)
  return keys
}

/** The key file of a data directory. */
export const keyPathIn = (dataDir: string): string => join(dataDir, 'master.key')

function readIfPresent(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw new StartError(
      `PAWL_DATA_DIR: ${path} cannot be read (${error instanceof Error && 'code' in error ? String(error.code) : String(error)}); look at who owns it`,
      { cause: error },
    )
  }
}

/** Writes the key to the disk before the first record is sealed under it. A crash leaves either no file or a whole one. */
function write(path: string, key: Uint8Array): Uint8Array {
  const temporary = `${path}.new`
  const file = openSync(temporary, 'w', 0o600)
  // Not writeSync: a disk that gets full takes a part of it, and says so only by a number.
  writeFileSync(file, `${toBase64(key)}\n`)
  fsyncSync(file)
  closeSync(file)
  renameSync(temporary, path)
  const directory = openSync(dirname(path), 'r')
  fsyncSync(directory)
  closeSync(directory)
  return key
}
