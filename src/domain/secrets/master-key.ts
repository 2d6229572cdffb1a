// Loads the master keys from the settings, from a command, or for the embedded database from a file beside it, which the first start makes. A key
// service unwraps wrapped keys.
import { execFile } from 'node:child_process'
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseBase64, toBase64 } from '../../lib/base64.ts'
import { sayUnreadable, StartError } from '../../lib/errors.ts'
import { type GivenKey, type GivenKeys, parseKeyList } from '../../lib/key-list.ts'
import type { Platform } from '../../lib/platform.ts'
import { type KeyOrigin, type MasterKeys, OF_SETTING } from './record-keys.ts'
import { isJsonObject, JsonFault, parseForeignObject } from '../../lib/json.ts'
import { describeStatus, OF_OPERATOR, OutboundError, sendOutbound } from '../../lib/outbound.ts'

interface KeySources {
  readonly config: { readonly dataDir: string; readonly masterKeyCommand?: string; readonly vaultKeyUrl?: string }
  readonly secrets: {
    readonly masterKeys?: GivenKeys
    readonly vaultToken?: string
    readonly masterKeyCommandEnvironment?: Readonly<Record<string, string>>
  }
}

/**
 * Loads the master keys, 32 bytes each; the first one seals. Throws StartError when PostgreSQL is used without a key, when the key file is damaged,
 * and when the source gives no keys. Makes a key for an embedded database without one, unless `isWritten` says that the database was written under
 * a key.
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
    // A new key would open no record, and its file would be in the place of the right one.
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

/**
 * Runs the program and returns its output on stdout. It runs without a shell, and with the given environment only, because that of the server has
 * secrets. Throws StartError when it fails or takes too long. The error has neither output nor arguments, because both may contain secrets.
 */
export function runKeyCommand(command: string, env: Readonly<Record<string, string>>, timeoutMs = TIMEOUT_MS): Promise<string> {
  const [program = '', ...args] = command.trim().split(/\s+/)
  return new Promise((resolve, reject) => {
    const limits = {
      env: { ...env },
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
      maxBuffer: OUTPUT_BYTES_MAX,
      encoding: 'utf8',
    } as const
    const child = execFile(program, args, limits, (error, stdout) => {
      if (error === null) resolve(stdout)
      else reject(new StartError(`PAWL_MASTER_KEY_COMMAND: ${program} ${explain(error, timeoutMs)}`))
    })
    child.stdin?.end()
  })
}

function explain(error: Error & { killed?: boolean; code?: unknown; signal?: unknown }, timeoutMs: number): string {
  if (error.code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER')
    return `printed more than ${OUTPUT_BYTES_MAX} bytes; it is to print the key alone`
  if (error.killed === true) return `did not end within ${timeoutMs / 1000} seconds; run it by hand to see what it waits for`
  if (typeof error.code === 'number') return `ended with exit status ${error.code}; run it by hand to see why`
  return typeof error.code === 'string'
    ? `cannot be run (${error.code}); look at its path and at who may execute it`
    : `was ended by a signal (${String(error.signal)}); look at the log of the system`
}

/** Reads the keys of the file, or writes a new one from `create` (32 bytes). Throws StartError when the file contains no keys. */
async function readOrCreateKeyFile(dataDir: string, create: () => Promise<Uint8Array>): Promise<GivenKeys> {
  const path = keyPathIn(dataDir)
  const text = readIfPresent(path)
  if (text === undefined) return [write(path, await create())]
  const keys = parseKeyList(text.trim())
  if (keys === undefined)
    throw new StartError(`PAWL_DATA_DIR: ${path} is not a master key (32 bytes in Base64); put it back from the backup`)
  return keys
}

/** The key file of a data directory. */
const keyPathIn = (dataDir: string): string => join(dataDir, 'master.key')

function readIfPresent(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw new StartError(`PAWL_DATA_DIR: ${path} ${sayUnreadable(error)}; look at who owns it`, { cause: error })
  }
}

/** Writes the key to the disk before the first record is sealed under it. A crash leaves either no file or a whole one. */
function write(path: string, key: Uint8Array): Uint8Array {
  const temporary = `${path}.new`
  const file = openSync(temporary, 'w', 0o600)
  // writeSync may write only a part to a full disk, and says so only by the number that it returns.
  writeFileSync(file, `${toBase64(key)}\n`)
  fsyncSync(file)
  closeSync(file)
  renameSync(temporary, path)
  const directory = openSync(dirname(path), 'r')
  fsyncSync(directory)
  closeSync(directory)
  return key
}

/**
 * A key service (KMS) that unwraps master keys. Its own key never leaves it. Another service needs another implementation, and another form of
 * wrapped key in lib/key-list.ts. docs/decisions/0015-key-service.md says why pawl has the transit engine of Vault.
 */
interface KeyService {
  /** Unwraps a master key to its 32 bytes. Throws StartError when the service does not return them. */
  readonly unwrap: (wrapped: string) => Promise<Uint8Array>
  /** Makes a new master key, which leaves the service only wrapped. */
  readonly createWrapped: () => Promise<string>
}

interface VaultSettings {
  /** The address at which the engine describes the key, for example `https://vault.example:8200/v1/transit/keys/pawl`. */
  readonly keyUrl: string
  readonly token: string | undefined
}

/** Calls the transit engine of HashiCorp Vault or OpenBao. Its errors repeat nothing from the answers. */
function createVaultTransit({ keyUrl, token }: VaultSettings): KeyService {
  const ask = async (action: string, question: Readonly<Record<string, unknown>>): Promise<Readonly<Record<string, unknown>>> => {
    const url = keyUrl.replace(KEY_PATH, `/${action}/$1`)
    const headers = { 'content-type': 'application/json', 'x-vault-request': 'true', ...(token && { 'x-vault-token': token }) }
    const { origin } = new URL(url)
    const answer = await sendOutbound({
      url,
      method: 'POST',
      headers,
      body: JSON.stringify(question),
      timeoutMs: TIMEOUT_MS,
      answerBytesMax: ANSWER_BYTES_MAX,
      rules: OF_OPERATOR,
    }).catch((error: unknown) => {
      throw error instanceof OutboundError ? new StartError(`PAWL_VAULT_KEY_URL: ${error.message}`, { cause: error }) : error
    })
    if (answer.status !== 200) throw new StartError(`PAWL_VAULT_KEY_URL: ${origin} ${describeAnswer(action, answer.status)}`)
    try {
      return readData(answer.body)
    } catch (fault) {
      if (!(fault instanceof JsonFault)) throw fault
      throw new StartError(
        `PAWL_VAULT_KEY_URL: ${origin} does not answer as a transit engine does, but with ${fault.message}; look at its path`,
      )
    }
  }
  return {
    unwrap: async (ciphertext) => {
      const { plaintext } = await ask('decrypt', { ciphertext })
      const key = typeof plaintext === 'string' ? parseBase64(plaintext, 32) : undefined
      if (key === undefined)
        throw new StartError('PAWL_MASTER_KEY: what is wrapped is not a key of 32 bytes; pawl key create --wrapped makes one')
      return key
    },
    createWrapped: async () => {
      const { ciphertext } = await ask('datakey/wrapped', { bits: 256 })
      if (typeof ciphertext !== 'string') throw new StartError('PAWL_VAULT_KEY_URL: no wrapped key in the answer')
      return ciphertext
    },
  }
}

/** Explains an error status of Vault, and names the settings to look at. */
function describeAnswer(action: string, status: number): string {
  if (status === 400) return `refuses to ${action} (status 400): look at the key in PAWL_VAULT_KEY_URL, and at PAWL_MASTER_KEY`
  // The statuses are those of "Health" in Vault's API.
  if ([429, 472, 473, 503].includes(status)) return `answered with status ${status}: it is sealed, or stands by for another`
  return describeStatus(status, 'PAWL_VAULT_TOKEN')
}

/** Reads the member `data` of an answer. Throws JsonFault. */
function readData(body: Uint8Array): Readonly<Record<string, unknown>> {
  const { data } = parseForeignObject(body)
  if (isJsonObject(data)) return data
  throw new JsonFault('an object without data')
}

const TIMEOUT_MS = 10_000
const OUTPUT_BYTES_MAX = 65_536
const KEY_PATH = /\/keys\/([^/]+)$/
const ANSWER_BYTES_MAX = 65_536
