// Starts three PostgreSQL servers: a primary that waits for one of two standbys. Connections are encrypted, and replication goes through a
// relay that can be cut.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { appendFileSync, chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { vi } from 'vitest'
import { newestBin, serverIdentity } from '../../bench/http/postgres.ts'
import { createCertificate } from '../helpers/certificates.ts'
import { signalAll } from '../helpers/children.ts'
import { findQuietPort } from '../helpers/ports.ts'
import { PATIENCE_MS } from '../helpers/patience.ts'

interface Node {
  readonly name: string
  readonly port: number
  readonly server: ChildProcess
}

export interface Cluster {
  readonly ports: readonly number[]
  /** The URL of the database `pawl` at these addresses, by default at all servers, encrypted and with the certificate verified. */
  readonly urlOf: (hosts?: readonly string[]) => string
  /** Sends a signal to every process of the primary. */
  readonly signalPrimary: (signal: NodeJS.Signals) => void
  /** Makes a standby the primary, or waits until Patroni has done so. */
  readonly promote: () => Promise<unknown>
  readonly close: () => Promise<void>
}

export interface CuttableCluster extends Cluster {
  /** Cuts the replication to both standbys. */
  readonly cutReplication: () => void
}

/** Starts all three servers, and waits until both standbys receive the writes of the primary. */
export async function openCluster(): Promise<CuttableCluster> {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-ha-'))
  chmodSync(folder, 0o755)
  const bin = newestBin()
  const certificate = writeCertificate(folder)
  const ports = [await findQuietPort(), await findQuietPort(), await findQuietPort()]
  // Programs of PostgreSQL look for certificates in the home folder of their user.
  const surroundings = { env: { PATH: '/usr/bin:/bin', HOME: folder }, ...serverIdentity() }
  const data = (name: string): string => join(folder, name)
  const run = (program: string, args: readonly string[]) =>
    execFileSync(join(bin, program), args, { stdio: 'pipe', ...surroundings })
  const start = (name: string, port: number): Node => {
    const others = NAMES.filter((other) => other !== name).join()
    const settings = {
      ...SETTINGS,
      unix_socket_directories: folder,
      synchronous_standby_names: `ANY 1 (${others})`,
      ...certificate,
    }
    const args = Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`])
    const server = spawn(join(bin, 'postgres'), ['-D', data(name), '-p', String(port), ...args], {
      stdio: 'ignore',
      ...surroundings,
    })
    return { name, port, server }
  }

  const [primaryName = '', ...standbyNames] = NAMES
  if (serverIdentity() !== undefined) chownAll(folder, Object.values(certificate))
  run('initdb', ['-D', data(primaryName), '-U', 'pawl', '-A', 'trust', '--encoding=UTF8', '--locale=C.UTF-8', '--no-sync'])
  writeFileSync(join(data(primaryName), 'pg_hba.conf'), ACCESS)
  const [primaryPort = 0] = ports
  const primary = start(primaryName, primaryPort)
  const nodes = [primary]
  await vi.waitFor(() => ask(primary, 'select 1'), WAIT)
  // No standby is there yet, so the first commits must not wait for one.
  await ask(primary, 'set synchronous_commit = local; create role haproxy login')
  await ask(primary, 'set synchronous_commit = local', 'create database pawl')
  const relay = await openRelay(primary.port)
  for (const [index, name] of standbyNames.entries()) {
    run('pg_basebackup', [
      '-h',
      '127.0.0.1',
      '-p',
      String(primary.port),
      '-U',
      'pawl',
      '-D',
      data(name),
      '-c',
      'fast',
      '--no-sync',
    ])
    writeFileSync(join(data(name), 'standby.signal'), '')
    appendFileSync(join(data(name), 'postgresql.auto.conf'), `primary_conninfo = '${composeSource(name, relay.port)}'\n`)
    nodes.push(start(name, ports[index + 1] ?? 0))
  }
  await vi.waitFor(async () => {
    const { rows } = await ask(primary, `select 1 from pg_stat_replication where state = 'streaming' and sync_state = 'quorum'`)
    if (rows.length < standbyNames.length) throw new Error(`${rows.length} standbys`)
  }, WAIT)

  return {
    ports,
    urlOf: (hosts = ports.map((port) => `localhost:${port}`)) => composeUrl(hosts, certificate.ssl_cert_file),
    signalPrimary: (signal) => signalAll(primary.server.pid ?? 0, signal),
    cutReplication: relay.cut,
    // It does the work of an operator: the standby that has received most becomes the primary, and the other one follows it.
    promote: async () => {
      const standings = await Promise.all(nodes.slice(1).map(async (node) => ({ node, received: await readReceived(node) })))
      const [next, ...rest] = standings.toSorted((one, other) => (isAhead(one.received, other.received) ? -1 : 1))
      if (next === undefined) throw new Error('no standby')
      await ask(next.node, 'select pg_promote(true, 10)')
      for (const { node } of rest) {
        await ask(
          node,
          `alter system set primary_conninfo = '${composeSource(node.name, next.node.port)}'`,
          'select pg_reload_conf()',
        )
      }
    },
    close: async () => {
      for (const { server } of nodes) {
        if (server.exitCode !== null || server.signalCode !== null) continue
        const ended = new Promise((resolve) => server.once('exit', resolve))
        signalAll(server.pid ?? 0, 'SIGKILL')
        await ended
      }
      await relay.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** The URL of the database `pawl` at the hosts, encrypted and with the certificate verified. */
export const composeUrl = (hosts: readonly string[], certificateFile: string): string =>
  `postgres://pawl@${hosts.join()}/pawl?sslmode=verify-full&sslrootcert=${certificateFile}`

/** Makes the servers' certificate and its key, and returns the settings that name the files. */
export function writeCertificate(folder: string) {
  const { pem, privateKeyPem } = createCertificate(['DNS:localhost', 'IP:127.0.0.1'])
  const files = { ssl_cert_file: join(folder, 'cert.pem'), ssl_key_file: join(folder, 'key.pem') }
  writeFileSync(files.ssl_cert_file, pem)
  writeFileSync(files.ssl_key_file, privateKeyPem, { mode: 0o600 })
  return { ssl: 'on', ...files }
}

/** Gives the folder and those of the files that are in it to the user that the servers run as. */
export function chownAll(folder: string, files: readonly string[]): void {
  const { uid = 0, gid = 0 } = serverIdentity() ?? {}
  for (const path of [folder, ...files.filter((file) => file.startsWith(folder))]) chownSync(path, uid, gid)
}

/** Runs statements one after the other in one session, and returns the result of the last. */
export async function ask({ port }: Pick<Node, 'port'>, ...statements: readonly string[]) {
  const client = new Client({ host: '127.0.0.1', port, user: 'pawl', database: 'postgres', ssl: { rejectUnauthorized: false } })
  client.on('error', () => undefined)
  await client.connect()
  try {
    const results = []
    for (const statement of statements) results.push(await client.query<Record<string, unknown>>(statement))
    return results.at(-1) ?? { rows: [] }
  } finally {
    await client.end()
  }
}

/** The position in the log that a standby has received, `HIGH/LOW` in hexadecimal digits. */
async function readReceived(node: Node): Promise<string> {
  const { rows } = await ask(node, 'select pg_last_wal_receive_lsn()::text as received')
  return String(rows[0]?.['received'])
}

function isAhead(one: string, other: string): boolean {
  const toNumber = (text: string): bigint => {
    const [high = '0', low = '0'] = text.split('/')
    return (BigInt(`0x${high}`) << 32n) | BigInt(`0x${low}`)
  }
  return toNumber(one) > toNumber(other)
}

const composeSource = (name: string, port: number): string =>
  `host=127.0.0.1 port=${port} user=pawl application_name=${name} connect_timeout=2`

/** Opens a relay to the primary. A cut ends it for good. */
async function openRelay(target: number) {
  const sockets = new Set<Socket>()
  let isCut = false
  const listener = createServer((near) => {
    const far = connect(target, '127.0.0.1')
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('data', (bytes) => {
        if (!isCut) other.write(bytes)
      })
      socket.once('close', () => {
        sockets.delete(socket)
        if (!isCut) other.destroy()
      })
    }
    if (isCut) near.destroy()
  })
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  return {
    port: (listener.address() as AddressInfo).port,
    cut: () => {
      isCut = true
    },
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => listener.close(resolve))
    },
  }
}

const NAMES = ['n1', 'n2', 'n3']
const SETTINGS = {
  listen_addresses: 'localhost',
  synchronous_commit: 'on',
  wal_retrieve_retry_interval: '200ms',
  hot_standby: 'on',
  max_connections: '60',
  shared_buffers: '32MB',
}
// Only HAProxy's check may use a connection without encryption.
const ACCESS = `hostssl all all all trust
hostssl replication all all trust
hostnossl postgres haproxy all trust
`
const WAIT = { timeout: PATIENCE_MS, interval: 100 }
