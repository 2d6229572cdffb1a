// Makes a machine for docs/start/production.md in a scratch folder: a shell of root, and a replacement of systemd. PostgreSQL, HAProxy, Prometheus
// and pawl are the real programs. It ends the processes that it has started, by pid.
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { newestBin, serverIdentity } from '../../bench/http/postgres.ts'
import { HAPROXY } from './haproxy.ts'
import { PATIENCE_MS } from './patience.ts'

export const PROMETHEUS = '/usr/bin/prometheus'
const root = fileURLToPath(new URL('../..', import.meta.url))

export interface Machine {
  readonly folder: string
  /** The output of the services so far. */
  readonly journal: () => string
  /** Types a command in the shell. Throws with its output when its status is not 0. `answer`: the text to type when it asks. */
  readonly type: (command: string, answer?: string) => Promise<string>
  /** Does the work of systemctl with these words. */
  readonly systemctl: (...words: readonly string[]) => Promise<void>
  /** Ends all processes, and removes the folder. */
  readonly close: () => Promise<void>
}

export interface MachineSpecification {
  /** Changes a text of the page, or a file of deploy, for this machine. */
  readonly here: (text: string) => string
  readonly folder: string
  /** The account of pawl, which the page makes. */
  readonly account: string
  readonly postgresqlPort: string
  readonly prometheusPort: string
}

/** Makes the folder of a machine. Every account may enter it. */
export function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-machine-'))
  chmodSync(folder, 0o755)
  // Accounts of the machine must be able to read its files. An earlier test may have set another umask, as an embedded database in a folder does.
  process.umask(0o022)
  return folder
}

/** Makes a fresh machine: folders, the checkout, and a PostgreSQL server as Debian's package installs it. */
export async function openMachine({
  here,
  folder,
  account,
  postgresqlPort,
  prometheusPort,
}: MachineSpecification): Promise<Machine> {
  for (const name of [
    'etc/systemd/system',
    'etc/haproxy',
    'etc/prometheus',
    'etc/cron.daily',
    'usr/local/sbin',
    'var/backups',
    'run',
    'root',
  ])
    mkdirSync(join(folder, name), { recursive: true })
  makeCheckout(join(folder, 'opt/pawl-1'), here)
  const file = (name: string): string => join(folder, name)
  const log = openSync(file('journal'), 'a', 0o600)
  const journal = (): string => readFileSync(file('journal'), 'utf8')
  const services = new Map<string, ChildProcess>()
  const launch = (name: string, [program = '', ...words]: readonly string[], options: object = {}): void => {
    const child = spawn(program, words, { cwd: folder, stdio: ['ignore', log, log], ...options })
    services.set(name, child)
    child.once('close', () => services.get(name) === child && services.delete(name))
  }
  const end = async (name: string, signal: NodeJS.Signals): Promise<void> => {
    const child = services.get(name)
    if (child === undefined) return
    const ended = new Promise((resolve) => child.once('close', resolve))
    child.kill(signal)
    await ended
  }
  const start = (unit: string): void => {
    if (unit === 'haproxy') launch(unit, [HAPROXY, '-W', '-f', file('etc/haproxy/haproxy.cfg')])
    else if (unit === 'prometheus') launch(unit, prometheus(folder, prometheusPort))
    else launch(unit, ...readUnit(file('etc/systemd/system/pawl@.service'), unit.replace('pawl@', ''), account, file('run')))
  }
  launch('postgresql', ...makeCluster(file('postgresql'), postgresqlPort))
  await waitFor(() => spawnSync(join(newestBin(), 'pg_isready'), ['-h', file('postgresql'), '-p', postgresqlPort]).status === 0)

  const shell = openShell(folder, {
    PATH: `${file('usr/local/sbin')}:/usr/sbin:/usr/bin:/sbin:/bin`,
    HOME: file('root'),
    PGHOST: file('postgresql'),
    PGPORT: postgresqlPort,
  })
  return {
    folder,
    journal,
    type: shell.type,
    systemctl: async (verb, ...words) => {
      const units = words.filter((word) => !word.startsWith('--'))
      if (verb === 'daemon-reload') verifyUnits(file('etc/systemd/system'))
      else if (verb === 'reload') for (const unit of units) services.get(unit)?.kill('SIGUSR2')
      else if (verb === 'stop') for (const unit of units) await end(unit, 'SIGTERM')
      else if (verb === 'restart') for (const unit of units) await end(unit, 'SIGTERM').then(() => start(unit))
      else if (verb === 'start' || verb === 'enable') units.forEach(start)
      else throw new Error(`systemctl ${verb} is not known here`)
    },
    close: async () => {
      await shell.close()
      const others = [...services.keys()].filter((name) => name !== 'postgresql')
      await Promise.all(others.map((name) => end(name, 'SIGTERM')))
      await end('postgresql', 'SIGINT')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Makes a copy of this checkout by links, with the files of deploy changed for this machine. */
function makeCheckout(checkout: string, here: (text: string) => string): void {
  mkdirSync(checkout, { recursive: true })
  for (const name of readdirSync(root)) if (name !== 'deploy') symlinkSync(join(root, name), join(checkout, name))
  cpSync(join(root, 'deploy'), join(checkout, 'deploy'), { recursive: true })
  for (const name of [
    'systemd/pawl',
    'systemd/pawl@.service',
    'haproxy/haproxy.cfg',
    'prometheus/pawl.rules.yml',
    'prometheus/prometheus.yml',
    'cron/pawl',
  ]) {
    const path = join(checkout, 'deploy', name)
    writeFileSync(path, here(readFileSync(path, 'utf8')))
  }
}

/** Makes a cluster with the access rules of Debian's package: its account over the socket, passwords over TCP. Returns its start command. */
function makeCluster(folder: string, port: string): [readonly string[], object] {
  const identity = serverIdentity()
  mkdirSync(folder)
  if (identity !== undefined) chownSync(folder, identity.uid, identity.gid)
  const data = join(folder, 'data')
  const access = ['--auth-local=peer', '--auth-host=scram-sha-256', '--username=postgres']
  const words = ['--encoding=UTF8', '--locale=C.UTF-8', '--no-sync', ...access]
  execFileSync(join(newestBin(), 'initdb'), ['-D', data, ...words], { stdio: 'ignore', ...identity })
  const settings = ['listen_addresses=127.0.0.1', `unix_socket_directories=${folder}`].flatMap((setting) => ['-c', setting])
  return [[join(newestBin(), 'postgres'), '-D', data, '-p', port, ...settings], { ...identity, cwd: folder }]
}

/** The command with which Debian's package starts Prometheus, as its own account, at this port. */
function prometheus(folder: string, port: string): readonly string[] {
  const data = join(folder, 'prometheus')
  execFileSync('install', ['-d', '-o', 'prometheus', data])
  const words = [`--config.file=${join(folder, 'etc/prometheus/prometheus.yml')}`, `--storage.tsdb.path=${data}`]
  return [...asAccount('prometheus'), PROMETHEUS, ...words, `--web.listen-address=127.0.0.1:${port}`]
}

const asAccount = (account: string): readonly string[] =>
  `setpriv --reuid=${account} --regid=${account} --clear-groups --no-new-privs --bounding-set=-all`.split(' ')

/** Has systemd check the units. Throws with its complaint. */
function verifyUnits(folder: string): void {
  for (const name of readdirSync(folder)) {
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', join(folder, name)], { encoding: 'utf8' })
    if (status !== 0 || stderr !== '') throw new Error(`${name}: ${stderr}`)
  }
}

/** The command of a unit, with its account, folder, environment and credentials. */
function readUnit(path: string, instance: string, account: string, run: string): [readonly string[], object] {
  const credentials = join(run, `credentials-${instance}`)
  const lines = readFileSync(path, 'utf8').replaceAll('%i', instance).replaceAll('%d', credentials).split('\n')
  const valuesOf = (key: string): string[] =>
    lines.filter((line) => line.startsWith(`${key}=`)).map((line) => line.slice(key.length + 1))
  const [user = '', command = ''] = [valuesOf('User')[0], valuesOf('ExecStart')[0]]
  if (user !== account) throw new Error(`${path} runs as ${user}`)
  execFileSync('install', ['-d', '-m', '500', '-o', account, credentials])
  for (const credential of valuesOf('LoadCredential')) {
    const [name = '', source = ''] = credential.split(':')
    execFileSync('install', ['-m', '400', '-o', account, source, join(credentials, name)])
  }
  const files = valuesOf('EnvironmentFile').flatMap((name) => readFileSync(name, 'utf8').split('\n'))
  const pairs = [...valuesOf('Environment'), ...files.filter((line) => /^\w+=/.test(line))]
  const env = Object.fromEntries(pairs.map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]))
  const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
  return [[...asAccount(account), ...command.split(' ')], { cwd: valuesOf('WorkingDirectory')[0], env: { PATH, ...env } }]
}

/** Opens one shell for all commands, so that it keeps variables as a terminal does. */
function openShell(folder: string, env: NodeJS.ProcessEnv): Pick<Machine, 'type' | 'close'> {
  const bash = spawn('bash', [], { cwd: folder, env, stdio: ['pipe', 'pipe', 'ignore'] })
  let printed = ''
  bash.stdout.setEncoding('utf8').on('data', (more: string) => {
    printed += more
  })
  bash.stdin.write('exec 2>&1\numask 022\n')
  const [script, answers] = [join(folder, 'typed'), join(folder, 'answers')]
  return {
    type: async (command, answer = '') => {
      printed = ''
      writeFileSync(script, `${command}\n`, { mode: 0o600 })
      writeFileSync(answers, answer, { mode: 0o600 })
      bash.stdin.write(`. ${script} <${answers}\necho "$?${END_OF_COMMAND}"\n`)
      const end = new RegExp(`^(\\d+)${END_OF_COMMAND}$`, 'm')
      await waitFor(() => end.test(printed) || bash.exitCode !== null)
      const [line = '', status] = end.exec(printed) ?? []
      if (status !== '0') throw new Error(`${command}\n${status}: ${printed}`)
      return printed.replace(line, '').trimEnd().concat('\n')
    },
    close: async () => {
      const ended = new Promise((resolve) => bash.once('close', resolve))
      bash.stdin.end()
      await ended
    },
  }
}

const END_OF_COMMAND = ' was the status of the command'

async function waitFor(isThere: () => boolean): Promise<void> {
  const until = performance.now() + PATIENCE_MS
  while (!isThere()) {
    if (performance.now() > until) throw new Error(`nothing after ${PATIENCE_MS} ms`)
    await sleep(20)
  }
}
