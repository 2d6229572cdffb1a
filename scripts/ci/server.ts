// Starts a server for one check, on an embedded database in a temporary folder, and ends it by its pid.
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createPhone, type VirtualPhone } from '../../phone/v3/virtual-phone.ts'
import { createBank, readApplication } from '../../test/helpers/bank.ts'

export interface CheckedServer {
  readonly url: string
  /** `user:password` of the administrator. */
  readonly credential: string
  /** A temporary folder for the files of the check. */
  readonly folder: string
}

export const project = fileURLToPath(new URL('../..', import.meta.url))

/** Copies a folder of the project without what was built or installed there. */
export function copyProject(folder: string, place: string): void {
  const made = /node_modules|\/dist$|\/target$|\.tgz$/
  cpSync(join(project, folder), place, { recursive: true, filter: (path) => !made.test(path.slice(project.length)) })
}

/** Resolves with the first `count` lines that a program prints. Rejects when it ends before. */
export function readLines(child: ChildProcess, count: number): Promise<string[]> {
  return new Promise((resolve, reject) => {
    let text = ''
    child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
      if (text.split('\n').length > count) resolve(text.split('\n').slice(0, count))
    })
    child.once('exit', (code) => reject(new Error(`a program ended with ${String(code)} before it said what it had to`)))
  })
}

/** Runs a command to its end, with the Node of the project for `npm`, and shows its output. Throws when it fails. */
export async function runToEnd(
  command: string,
  args: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv = {},
): Promise<void> {
  const PATH = `${dirname(process.execPath)}${delimiter}${process.env['PATH'] ?? ''}`
  const child = spawn(command, args, { cwd, env: { ...process.env, PATH, ...env }, stdio: ['ignore', 'inherit', 'inherit'] })
  const code = await new Promise((resolve, reject) => child.once('error', reject).once('exit', resolve))
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${String(code)}`)
}

/** Runs `work` with a server, and shows the server's log. When `work` throws or no server starts, prints why and sets the exit code 1. */
export async function withServer(
  name: string,
  settings: Readonly<Record<string, string>>,
  work: (server: CheckedServer) => Promise<void>,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), `pawl-${name}-`))
  const password = randomBytes(12).toString('hex')
  const own = { PAWL_PORT: '0', PAWL_DATA_DIR: join(folder, 'data'), PAWL_ADMIN_PASSWORD: password, PAWL_LOG_LEVEL: 'error' }
  const server = spawn(process.execPath, ['bin/pawl.mjs'], {
    cwd: project,
    env: { ...process.env, ...own, ...settings },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = new Promise<number | null>((resolve) => server.once('exit', resolve))
  // The address that the start text names.
  const started = new Promise<string>((resolve, reject) => {
    let text = ''
    server.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
      const [, url] = /^pawl listens on (\S+)$/m.exec(text) ?? []
      if (url !== undefined && text.includes('Ready.')) resolve(url)
      if (chunk.startsWith('{')) process.stdout.write(chunk)
    })
    void ended.then((code) => reject(new Error(`the server ended with ${code}`)))
  })
  try {
    await work({ url: await started, credential: `admin:${password}`, folder })
  } catch (error) {
    console.error(`${name}: ${error instanceof Error ? error.message : String(error)}`)
    process.exitCode = 1
  } finally {
    server.kill('SIGTERM')
    await ended
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Creates a credential that may verify what phones send. Returns its password. */
export async function createVerifier({ url, credential }: CheckedServer, username: string): Promise<string> {
  const body = { username, role: 'verification', application: 'my-app' }
  const made = await createBank(url, credential).call('POST', '/admin/users', body)
  return (made.json as { password: string }).password
}

export async function bindPhone({ url, credential }: CheckedServer): Promise<{ phone: VirtualPhone; userId: string }> {
  const bank = createBank(url, credential)
  const app = readApplication(await bank.call('GET', '/admin/application?id=my-app'))
  const userId = 'guarded'
  const { activationQrCodeData } = (await bank.call('POST', '/registration', { userId })).json as { activationQrCodeData: string }
  const phone = createPhone({ url, app, version: '3.3' })
  await phone.activate(activationQrCodeData.split('#')[0] ?? '')
  await bank.call('POST', '/registration/commit', { userId })
  return { phone, userId }
}
