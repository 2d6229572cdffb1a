// The credential that `pawl login` keeps: one file of this account, which no other may read.
import { mkdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Environment } from './environment.ts'
import { Fault } from './fault.ts'
import { writeWhole } from './whole-file.ts'

/** A server and what is shown to it. */
export interface StoredCredential {
  readonly url: string
  /** `user:password`. */
  readonly admin: string
}

/** In the directory for settings of this account (XDG). */
const credentialPath = (env: Environment): string =>
  join(env['XDG_CONFIG_HOME'] || join(env['HOME'] || homedir(), '.config'), 'pawl', 'credential.json')

/** The stored credential; undefined without one. Throws a Fault when others may read the file, or it has something else. */
export function readCredential(env: Environment): StoredCredential | undefined {
  const path = credentialPath(env)
  const mode = statSync(path, { throwIfNoEntry: false })?.mode
  if (mode === undefined) return undefined
  if ((mode & 0o077) !== 0) throw new Fault('credential', `others may read ${path}: chmod 600 it, and change the password`)
  try {
    const { url, admin } = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>
    if (typeof url === 'string' && typeof admin === 'string') return { url, admin }
  } catch {
    // Said below.
  }
  throw new Fault('credential', `${path} holds no credential: pawl login writes it anew`)
}

/** Writes it for this account alone; returns where. */
export function storeCredential(env: Environment, credential: StoredCredential): string {
  const path = credentialPath(env)
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  writeWhole(path, `${JSON.stringify(credential)}\n`, 0o600)
  return path
}

/** True when there was one. */
export function forgetCredential(env: Environment): boolean {
  const path = credentialPath(env)
  const isThere = statSync(path, { throwIfNoEntry: false }) !== undefined
  rmSync(path, { force: true })
  return isThere
}
