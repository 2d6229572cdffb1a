// Starts HAProxy as deploy/haproxy/haproxy.cfg sets it up, with the addresses of a test in place of an operator's.
import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Balancer } from './balancer.ts'
import { findQuietPort } from './ports.ts'

export const HAPROXY = '/usr/sbin/haproxy'
export const hasHaproxy = existsSync(HAPROXY)

/** The ports of a pawl process behind HAProxy. */
export interface Behind {
  readonly port: string
  readonly internalPort: string
}

export interface Haproxy extends Balancer {
  /** The address for phones; `url` is the address for the bank. */
  readonly phonesUrl: string
}

const SHIPPED = readFileSync(fileURLToPath(new URL('../../deploy/haproxy/haproxy.cfg', import.meta.url)), 'utf8')
const READY_ATTEMPTS = 400
const READY_STEP_MS = 50
const TLS = / ssl crt \S+( alpn \S+)?/g

/** Starts HAProxy before two processes, without TLS, and waits until both are up. `limits`: lines of the file and their replacements. */
export async function openHaproxy(
  behind: readonly [Behind, Behind],
  limits: Readonly<Record<string, string>> = {},
): Promise<Haproxy> {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-haproxy-'))
  const [phones, bank] = [await findQuietPort(), await findQuietPort()].map((port) => `127.0.0.1:${port}`)
  const [one, two] = behind
  const replaced: Readonly<Record<string, string>> = {
    '0.0.0.0:443': `${phones}`,
    '10.0.0.1:443': `${bank}`,
    '127.0.0.1:8101': `127.0.0.1:${one.port}`,
    '127.0.0.1:8102': `127.0.0.1:${two.port}`,
    '127.0.0.1:8181': `127.0.0.1:${one.internalPort}`,
    '127.0.0.1:8182': `127.0.0.1:${two.internalPort}`,
  }
  const file = join(folder, 'haproxy.cfg')
  let text = SHIPPED.replace(/[\d.]+:\d+\b/g, (address) => replaced[address] ?? address).replace(TLS, '')
  for (const [shipped, own] of Object.entries(limits)) {
    if (!text.includes(shipped)) throw new Error(`${shipped} is not in the shipped file`)
    text = text.replace(shipped, own)
  }
  writeFileSync(file, text)
  const child = spawn(HAPROXY, ['-db', '-f', file], { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (more: string) => (output += more))
  const ended = new Promise((resolve) => child.once('close', resolve))
  const readyCount = (): number => {
    const states = new Map(['pawl-1', 'pawl-2'].map((name) => [name, 'UP']))
    for (const [, name = '', state = ''] of output.matchAll(/Server pawl_bank\/(\S+) is (UP|DOWN)/g)) states.set(name, state)
    return [...states.values()].filter((state) => state === 'UP').length
  }
  for (let attempt = 1; ; attempt += 1) {
    const status = await fetch(`http://${bank}/health/ready`).then((answer) => answer.status, String)
    if (status === 200) break
    if (attempt === READY_ATTEMPTS) throw new Error(`${status}: ${output}`)
    await sleep(READY_STEP_MS)
  }
  return {
    url: `http://${bank}`,
    phonesUrl: `http://${phones}`,
    readyCount,
    close: async () => {
      child.kill('SIGKILL')
      await ended
      rmSync(folder, { recursive: true })
    },
  }
}

export interface Stripping {
  /** The address, with the prefix. */
  readonly url: string
  readonly close: () => Promise<void>
}

/**
 * Starts HAProxy at `url` before a listener of pawl, with the lines of docs/OPERATIONS.md that remove the path of `url`. With an https URL it ends
 * TLS, with the certificate and the key in the file `pem`.
 */
export async function openStripping(url: string, listenerPort: number, pem?: string): Promise<Stripping> {
  const [, shown = ''] = /^```haproxy\n([^]*?)^```$/m.exec(OPERATIONS) ?? []
  const { protocol, host, pathname } = new URL(url)
  const lines = shown
    .replaceAll('/pawl', pathname)
    .replace(/bind \S+ ssl crt \S+/, `bind ${host}${protocol === 'https:' ? ` ssl crt ${pem}` : ''}`)
    .replace(/127\.0\.0\.1:8081/, `127.0.0.1:${listenerPort}`)
  const folder = mkdtempSync(join(tmpdir(), 'pawl-haproxy-'))
  const file = join(folder, 'haproxy.cfg')
  writeFileSync(file, `defaults\n  mode http\n  timeout connect 5s\n  timeout client 60s\n  timeout server 60s\n${lines}`)
  const child = spawn(HAPROXY, ['-db', '-f', file], { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (more: string) => (output += more))
  const ended = new Promise((resolve) => child.once('close', resolve))
  for (let attempt = 1; !(await isTaken(host)); attempt += 1) {
    if (attempt === READY_ATTEMPTS || child.exitCode !== null) throw new Error(`HAProxy does not listen: ${output}`)
    await sleep(READY_STEP_MS)
  }
  return {
    url,
    close: async () => {
      child.kill('SIGKILL')
      await ended
      rmSync(folder, { recursive: true })
    },
  }
}

const OPERATIONS = readFileSync(fileURLToPath(new URL('../../docs/OPERATIONS.md', import.meta.url)), 'utf8')

const isTaken = (host: string): Promise<boolean> =>
  new Promise((resolve) => {
    const [address, port] = host.split(':')
    const socket = connect(Number(port), address, () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })

/** Has HAProxy check the shipped file, with a new certificate. Throws with its complaint. */
export function checkShippedConfiguration(): void {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-haproxy-'))
  try {
    const pem = makePem(folder)
    const file = join(folder, 'haproxy.cfg')
    writeFileSync(file, SHIPPED.replace(/crt \S+/g, `crt ${pem}`))
    execFileSync(HAPROXY, ['-c', '-f', file], { stdio: 'pipe' })
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Makes a self-signed certificate for localhost and 127.0.0.1 and its key, in one file for HAProxy. */
export function makePem(folder: string): string {
  const pem = join(folder, 'all.pem')
  const words = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2']
  const names = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost']
  execFileSync('openssl', [...words, ...names, '-keyout', pem, '-out', join(folder, 'cert.pem')], { stdio: 'pipe' })
  writeFileSync(pem, readFileSync(pem, 'utf8') + readFileSync(join(folder, 'cert.pem'), 'utf8'))
  return pem
}
