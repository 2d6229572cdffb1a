// Starts three PostgreSQL servers under Patroni, as deploy/patroni/patroni.yml sets them up, and one etcd. Patroni itself notices the loss of
// the primary, and promotes a standby.
import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { vi } from 'vitest'
import { newestBin, serverIdentity } from '../../bench/http/postgres.ts'
import { signalAll } from '../helpers/children.ts'
import { findQuietPort } from '../helpers/ports.ts'
import { ask, chownAll, type Cluster, composeUrl, writeCertificate } from './cluster.ts'
import { PATIENCE_MS } from '../helpers/patience.ts'

const PATRONI = '/usr/bin/patroni'
const ETCD = '/usr/bin/etcd'
// Patroni needs a package to speak to etcd, which Debian's package of Patroni does not depend on.
const CLIENT = '/usr/lib/python3/dist-packages/etcd'
export const hasPatroni = [PATRONI, ETCD, CLIENT].every((path) => existsSync(path))

interface Node {
  readonly port: number
  readonly apiPort: number
  readonly data: string
  readonly file: string
  agent: ChildProcess
}

export interface RestartableCluster extends Cluster {
  /** Starts the killed agent of the first primary again, as after a reset of its machine, and waits until its server follows. */
  readonly restartPrimary: () => Promise<unknown>
}

/** Starts etcd and the three servers, first the one that becomes the primary, and waits until one of the standbys is synchronous. */
export async function openPatroniCluster(): Promise<RestartableCluster> {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-patroni-'))
  chmodSync(folder, 0o755)
  const certificate = writeCertificate(folder)
  if (serverIdentity() !== undefined) chownAll(folder, Object.values(certificate))
  const etcd = await startEtcd(folder)
  const nodes: Node[] = []
  const close = async () => {
    for (const node of nodes) {
      const ended = hasEnded(node.agent)
      signalNode(node, 'SIGKILL')
      await ended
    }
    const ended = hasEnded(etcd.server)
    etcd.server.kill('SIGKILL')
    await ended
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
  }
  try {
    for (const name of NAMES) {
      nodes.push(await startNode({ name, folder, etcdPort: etcd.port, certificate }))
      if (nodes.length === 1) await vi.waitFor(() => expectRole(nodes[0], 'primary'), WAIT)
    }
    const [primary, ...standbys] = nodes
    if (primary === undefined) throw new Error('no node')
    await vi.waitFor(() => Promise.all(standbys.map((node) => expectRole(node, 'replica'))), WAIT)
    await vi.waitFor(() => Promise.any(standbys.map((node) => expectRole(node, 'synchronous'))), WAIT)
    await ask(primary, 'create database pawl')
    const ports = nodes.map(({ port }) => port)
    return {
      ports,
      urlOf: (hosts = ports.map((port) => `localhost:${port}`)) => composeUrl(hosts, certificate.ssl_cert_file),
      signalPrimary: (signal) => signalNode(primary, signal),
      promote: () => vi.waitFor(() => Promise.any(standbys.map(expectPromoted)), WAIT),
      restartPrimary: () => {
        primary.agent = startAgent(primary.file)
        return vi.waitFor(() => expectRole(primary, 'replica'), WAIT)
      },
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

async function startEtcd(folder: string): Promise<{ port: number; server: ChildProcess }> {
  const [port, peerPort] = [await findQuietPort(), await findQuietPort()]
  const [url, peerUrl] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${peerPort}`]
  const addresses = {
    'listen-client-urls': url,
    'advertise-client-urls': url,
    'listen-peer-urls': peerUrl,
    'initial-advertise-peer-urls': peerUrl,
    'initial-cluster': `default=${peerUrl}`,
    'data-dir': join(folder, 'etcd'),
  }
  const args = Object.entries(addresses).map(([name, value]) => `--${name}=${value}`)
  const server = spawn(ETCD, args, { stdio: 'ignore' })
  await vi.waitFor(async () => {
    const { status } = await fetch(`${url}/health`)
    if (status !== 200) throw new Error(`etcd: ${status}`)
  }, WAIT)
  return { port, server }
}

interface NodeOptions {
  readonly name: string
  readonly folder: string
  readonly etcdPort: number
  readonly certificate: ReturnType<typeof writeCertificate>
}

/**
 * Starts Patroni with the shipped file and the addresses of a test. There is no watchdog, because a machine that runs tests has no such device.
 * The test resets a server in its place.
 */
async function startNode({ name, folder, etcdPort, certificate }: NodeOptions): Promise<Node> {
  const [port, apiPort] = [await findQuietPort(), await findQuietPort()]
  const home = join(folder, name)
  mkdirSync(home)
  const identity = serverIdentity()
  if (identity !== undefined) chownSync(home, identity.uid, identity.gid)
  const data = join(home, 'data')
  const replaced: Readonly<Record<string, string>> = {
    'name: db1': `name: ${name}`,
    'hosts: 10.0.0.21:2379,10.0.0.22:2379,10.0.0.23:2379': `hosts: 127.0.0.1:${etcdPort}`,
    '10.0.0.11:8008': `127.0.0.1:${apiPort}`,
    'listen: 10.0.0.11:5432': `listen: localhost:${port}`,
    '10.0.0.11:5432': `127.0.0.1:${port}`,
    '/var/lib/postgresql/15/main': data,
    '/usr/lib/postgresql/15/bin': newestBin(),
    'username: postgres': 'username: pawl',
    '/etc/postgresql/server.crt': certificate.ssl_cert_file,
    '/etc/postgresql/server.key': certificate.ssl_key_file,
    '/var/run/postgresql': home,
    'local all postgres peer': 'local all all trust',
    '10.0.0.0/24 scram-sha-256': 'all trust',
    'mode: required': 'mode: "off"',
  }
  const text = Object.entries(replaced).reduce((config, [from, to]) => config.replaceAll(from, to), SHIPPED)
  const file = join(home, 'patroni.yml')
  writeFileSync(file, text)
  return { port, apiPort, data, file, agent: startAgent(file) }
}

function startAgent(file: string): ChildProcess {
  return spawn(PATRONI, [file], { stdio: 'ignore', env: { PATH: '/usr/bin:/bin', HOME: dirname(file) }, ...serverIdentity() })
}

/** Throws unless the agent says that its server has the role. */
async function expectRole(node: Node | undefined, role: 'primary' | 'replica' | 'synchronous'): Promise<void> {
  const { status } = await fetch(`http://127.0.0.1:${node?.apiPort}/${role}`, { signal: AbortSignal.timeout(1_000) })
  if (status !== 200) throw new Error(`${role}: ${status}`)
}

/** Throws unless the server is the primary and the other one follows it. Before that, every commit waits. */
async function expectPromoted(node: Node): Promise<void> {
  await expectRole(node, 'primary')
  const { rows } = await ask(node, `select 1 from pg_stat_replication where state = 'streaming'`)
  if (rows.length === 0) throw new Error('nobody follows')
}

/** Sends a signal to the agent and to its server, which is no child of the agent. */
function signalNode({ agent, data }: Node, signal: NodeJS.Signals): void {
  const file = join(data, 'postmaster.pid')
  const [pid = ''] = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : []
  signalAll(agent.pid ?? 0, signal)
  if (pid !== '') signalAll(Number(pid), signal)
}

const hasEnded = (child: ChildProcess): Promise<unknown> =>
  child.exitCode === null && child.signalCode === null ? new Promise((resolve) => child.once('exit', resolve)) : Promise.resolve()

const SHIPPED = readFileSync(fileURLToPath(new URL('../../deploy/patroni/patroni.yml', import.meta.url)), 'utf8')
const NAMES = ['n1', 'n2', 'n3']
const WAIT = { timeout: PATIENCE_MS, interval: 100 }
