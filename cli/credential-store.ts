// Stores the credential of `pawl login` in a file that only this account may read.
import { mkdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Environment, homeOf } from './environment.ts'
import { Fault, orFault } from './fault.ts'
import { writeWhole } from './whole-file.ts'

export interface StoredCredential {
  readonly url: string
  /** `user:password`. */
  readonly admin: string
}

/** The path of the file, in the account's directory for settings (XDG). */
const credentialPath = (env: Environment): string =>
  join(env['XDG_CONFIG_HOME'] || join(homeOf(env), '.config'), 'pawl', 'credential.json')

/** The stored credential; undefined without one. Throws a Fault when others may read the file, or when it holds no credential. */
export function readCredential(env: Environment): StoredCredential | undefined {
  const path = credentialPath(env)
  const mode = orFault('credential', WHAT, () => statSync(path, { throwIfNoEntry: false })?.mode)
  if (mode === undefined) return undefined
  if ((mode & 0o077) !== 0) throw new Fault('credential', `others may read ${path}: chmod 600 it, and change the password`)
  try {
    const { url, admin } = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>
    if (typeof url === 'string' && typeof admin === 'string') return { url, admin }
  } catch {
    // The Fault below reports it.
  }
  throw new Fault('credential', `${path} holds no credential: pawl login writes it anew`)
}

/** Writes the file so that only this account may read it; returns its path. Throws a Fault when it cannot be written. */
export function storeCredential(env: Environment, credential: StoredCredential): string {
  const path = credentialPath(env)
  orFault('output', WHAT, () => {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    writeWhole(path, `${JSON.stringify(credential)}\n`, 0o600)
  })
  return path
}

/** Deletes the file; true when there was one. Throws a Fault when it cannot be deleted. */
export function forgetCredential(env: Environment): boolean {
  const path = credentialPath(env)
  return orFault('output', WHAT, () => {
    const isThere = statSync(path, { throwIfNoEntry: false }) !== undefined
    rmSync(path, { force: true })
    return isThere
  })
}

const WHAT = 'the credential of pawl login'
