// Stores the phones of this account in one file, sealed under a passphrase: scrypt makes the key, AES-256-GCM seals. The file is written before
// each request leaves, so a counter never goes back. One process at a time may have it open.
import { createCipheriv, createDecipheriv, randomBytes, scryptSync } from 'node:crypto'
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { HandsetRecord } from '../../phone/handset.ts'
import { fromJson, toJson } from '../../phone/snapshot.ts'
import { type Environment, homeOf } from '../environment.ts'
import { Fault, orFault } from '../fault.ts'
import { parseJson, readBytes } from '../json-argument.ts'
import { writeWhole } from '../whole-file.ts'

export interface PhoneStore {
  readonly path: string
  /** The phones, by name. */
  readonly phones: Map<string, HandsetRecord>
  readonly isSealed: boolean
  /** Writes the file, which is durable on return. */
  readonly save: () => void
  /** Unlocks the file for other processes. */
  readonly close: () => void
}

export interface StoreOptions {
  readonly path: string
  /** Called to open a sealed file, and to make a new one that is sealed. */
  readonly passphrase: () => Promise<string>
  /** Whether a new file gets no passphrase. */
  readonly isInsecure: boolean
  readonly mustExist: boolean
}

/** The default file of phones: in the directory for data of this account (XDG). */
export const phonesPath = (env: Environment): string =>
  env['PAWL_PHONES'] || join(env['XDG_DATA_HOME'] || join(homeOf(env), '.local', 'share'), 'pawl', 'phones.json')

/** Opens the file, or begins one. Throws a Fault for a wrong passphrase, a file of another kind, or a file that another process has open. */
export async function openStore({ path, passphrase, isInsecure, mustExist }: StoreOptions): Promise<PhoneStore> {
  const isThere = orFault('usage', 'the store of phones', () => statSync(path, { throwIfNoEntry: false })) !== undefined
  if (!isThere && mustExist) throw new Fault('missing', `there is no phone in ${path}: pawl phone bind makes one`)
  const unlock = lock(path)
  try {
    return isThere ? await openFile(path, passphrase, unlock) : await beginFile(path, isInsecure ? undefined : passphrase, unlock)
  } catch (error) {
    unlock()
    throw error
  }
}

interface SealedFile {
  readonly version: 1
  readonly scrypt: ScryptOptions
  readonly nonce: string
  readonly sealed: string
}

interface ScryptOptions {
  readonly salt: string
  readonly N: number
  readonly r: number
  readonly p: number
}

interface PlainFile {
  readonly version: 1
  readonly phones: unknown
}

/** The key of a sealed file, and the settings of scrypt that derived it. */
interface Sealing {
  readonly scrypt: ScryptOptions
  readonly key: Uint8Array
}

async function openFile(path: string, passphrase: () => Promise<string>, unlock: () => void): Promise<PhoneStore> {
  const file = readFile(path)
  if ('phones' in file) return toStore(path, fromJson(file.phones), undefined, unlock)
  const { scrypt, nonce, sealed } = file
  const key = deriveKey(await passphrase(), scrypt)
  const opened = open(key, Buffer.from(nonce, 'base64'), Buffer.from(sealed, 'base64'), scrypt)
  if (opened === undefined) throw new Fault('credential', `the passphrase does not open ${path}`)
  return toStore(path, fromJson(JSON.parse(opened)), { scrypt, key }, unlock)
}

async function beginFile(path: string, passphrase: (() => Promise<string>) | undefined, unlock: () => void): Promise<PhoneStore> {
  if (passphrase === undefined) return toStore(path, {}, undefined, unlock)
  const scrypt: ScryptOptions = { salt: randomBytes(16).toString('base64'), N: 65_536, r: 8, p: 1 }
  return toStore(path, {}, { scrypt, key: deriveKey(await passphrase(), scrypt) }, unlock)
}

function toStore(path: string, phones: unknown, sealing: Sealing | undefined, unlock: () => void): PhoneStore {
  const map = new Map(Object.entries(phones as Record<string, HandsetRecord>))
  return {
    path,
    phones: map,
    isSealed: sealing !== undefined,
    save: () => write(path, render(toJson(Object.fromEntries(map)), sealing)),
    close: unlock,
  }
}

function render(phones: unknown, sealing: Sealing | undefined): string {
  if (sealing === undefined) return `${JSON.stringify({ version: 1, phones } satisfies PlainFile)}\n`
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', sealing.key, nonce).setAAD(headerOf(sealing.scrypt))
  const sealed = Buffer.concat([cipher.update(JSON.stringify(phones)), cipher.final(), cipher.getAuthTag()])
  const file: SealedFile = {
    version: 1,
    scrypt: sealing.scrypt,
    nonce: nonce.toString('base64'),
    sealed: sealed.toString('base64'),
  }
  return `${JSON.stringify(file)}\n`
}

const TAG_BYTES = 16

/** Decrypts the file; undefined when the key is wrong, or the file was altered. */
function open(key: Uint8Array, nonce: Uint8Array, sealed: Uint8Array, scrypt: ScryptOptions): string | undefined {
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES }).setAAD(headerOf(scrypt))
    decipher.setAuthTag(sealed.subarray(sealed.length - TAG_BYTES))
    return Buffer.concat([decipher.update(sealed.subarray(0, sealed.length - TAG_BYTES)), decipher.final()]).toString('utf8')
  } catch {
    return undefined
  }
}

const headerOf = ({ salt, N, r, p }: ScryptOptions): Uint8Array => Buffer.from(JSON.stringify([1, salt, N, r, p]))

const MEMORY_MAX = 256 * 1024 * 1024

const deriveKey = (passphrase: string, { salt, N, r, p }: ScryptOptions): Uint8Array =>
  scryptSync(passphrase.normalize('NFKC'), Buffer.from(salt, 'base64'), 32, { N, r, p, maxmem: MEMORY_MAX })

function readFile(path: string): SealedFile | PlainFile {
  // As bytes first: with an encoding, Node reads gigabytes before it refuses them.
  const file = (parseJson(readBytes('the store of phones', path).toString()) ?? {}) as Partial<SealedFile & PlainFile>
  const isPlain = typeof file.phones === 'object' && file.phones !== null
  const isSealed = [file.scrypt?.salt, file.nonce, file.sealed].every((text) => typeof text === 'string')
  if (file.version === 1 && (isPlain || isSealed)) return file as SealedFile | PlainFile
  throw new Fault('refused', `${path} holds no phones`)
}

/** Writes the file whole or not at all, for this account alone. Throws a Fault when it cannot be written, as on a full disk. */
function write(path: string, text: string): void {
  orFault('output', `${path} cannot be written`, () => {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    writeWhole(path, text, 0o600)
  })
}

/** Makes a lock file beside the file, with the id of this process, and returns its removal. Throws a Fault when it cannot be made. */
function lock(path: string): () => void {
  const own = `${path}.lock`
  orFault('output', `${path} cannot be written`, () => {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    take(own, path)
  })
  const unlock = (): void => rmSync(own, { force: true })
  process.once('exit', unlock)
  return () => {
    process.off('exit', unlock)
    unlock()
  }
}

/**
 * Makes a lock file with the id of this process. Throws a Fault when another process has it. An empty lock file belongs to a process that has just
 * made it, and has not written its id yet.
 *
 * A lock file whose process has ended is removed, and the next turn makes it anew. Whoever removes it holds a second lock file, which is named after
 * the ended process: of two processes that find the same file, the later one would otherwise remove the new file of the earlier one.
 */
function take(own: string, path: string): void {
  while (!makeWithId(own)) {
    const owner = readOwner(own)
    if (owner === undefined) continue
    if (owner === '') throw new Fault('refused', `${path} is in use; if no pawl phone runs, remove ${own}`)
    if (isAlive(Number(owner))) throw new Fault('refused', `${path} is in use by process ${owner}`)
    const removal = `${own}.${Number(owner)}`
    take(removal, path)
    try {
      if (readOwner(own) === owner && !isAlive(Number(owner))) rmSync(own, { force: true })
    } finally {
      rmSync(removal, { force: true })
    }
  }
}

/** Makes a file with the id of this process; false when the file exists. */
function makeWithId(own: string): boolean {
  try {
    const file = openSync(own, 'wx', 0o600)
    writeFileSync(file, `${process.pid}`)
    closeSync(file)
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  }
}

/** The text of the lock file; undefined when it was removed meanwhile. */
function readOwner(own: string): string | undefined {
  try {
    return readFileSync(own, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

function isAlive(pid: number): boolean {
  if (!(pid > 0)) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
