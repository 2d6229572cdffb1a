// Starts servers for the demo: one on the data directory of the settings when none runs yet, and a temporary one for the webhook.
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { connectBank } from '../bank.ts'
import { bankUrl, type Environment } from '../environment.ts'
import { Fault } from '../fault.ts'

export interface OwnServer {
  readonly url: string
  /** `user:password`. */
  readonly admin: string
  /** Stops it as an operator would, and waits for its end. */
  readonly close: () => Promise<void>
}

/** Whether something answers at the address that a server of this environment has. */
export async function isServing(env: Environment): Promise<boolean> {
  try {
    await fetch(`${bankUrl(env)}/health/live`, { signal: AbortSignal.timeout(2_000) })
    return true
  } catch {
    return false
  }
}

/** Starts a server with a new administrator. Throws a Fault when there is a database already, because only its owner has a password. */
export async function startOwnServer(env: Environment): Promise<OwnServer> {
  const dataDir = env['PAWL_DATA_DIR'] || 'data'
  if (env['DATABASE_URL'] || env['DATABASE_URL_FILE'] || existsSync(join(dataDir, 'database')))
    throw new Fault(
      'credential',
      `there is a database already: start its server (pawl serve), and give the demo --admin USER:PASSWORD`,
    )
  return start(env)
}

/**
 * Starts a server with an empty embedded database on a free port; `close` deletes its files. It gets only PATH and HOME of the environment, so
 * that it shares nothing with the server of the settings.
 */
export async function startServerToThrowAway({ PATH, HOME }: Environment): Promise<OwnServer> {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-demo-'))
  const remove = (): void => rmSync(folder, { recursive: true, force: true })
  try {
    const server = await start({ PATH, HOME, PAWL_DATA_DIR: join(folder, 'data'), PAWL_PORT: '0' })
    return { ...server, close: () => server.close().finally(remove) }
  } catch (error) {
    remove()
    throw error
  }
}

/** Starts a server that may send webhooks to this machine, with a new administrator. */
async function start(env: Environment): Promise<OwnServer> {
  const password = randomBytes(18).toString('base64url')
  const webhooks = { PAWL_WEBHOOK_ALLOW_HTTP: 'true', PAWL_WEBHOOK_ALLOW_PRIVATE_ADDRESSES: 'true' }
  const child = spawn(process.execPath, [fileURLToPath(new URL('../../bin/pawl.mjs', import.meta.url)), 'serve'], {
    env: { ...env, ...webhooks, PAWL_ADMIN_PASSWORD: password },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const url = await waitForStart(child)
  const admin = `${env['PAWL_ADMIN_USER'] || 'admin'}:${password}`
  await connectBank(url, admin, env).call('GET', '/admin/applications')
  return { url, admin, close: () => stop(child) }
}

/** Waits for the start of a server, and returns the address of its bank's API. */
function waitForStart(child: ChildProcess): Promise<string> {
  let printed = ''
  return new Promise((resolve, reject) => {
    const read = (chunk: Buffer): void => {
      printed += chunk.toString('utf8')
      const [, address] = /^API description: (http:\S+)\/swagger-ui\.html$[^]*^Ready\.$/m.exec(printed) ?? []
      if (address !== undefined) resolve(address)
    }
    child.stdout?.on('data', read)
    child.stderr?.on('data', read)
    child.once('error', reject)
    child.once('exit', () => reject(new Fault('unreachable', printed.trim() || 'the server ended at once')))
    process.once('exit', () => child.kill())
  })
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  await ended
}
