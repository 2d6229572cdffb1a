// Whatever is wrong, a start ends with one line that names the setting, the cause and what to do, and with an exit code; never with a stack. The
// rows with a PostgreSQL run where PAWL_TEST_DATABASE_URL is set, on a server of their own that is set as each needs it.
import { execFile, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Postgres, serverIdentity, startPostgres } from '../../bench/http/postgres.ts'
import { migrations } from '../../migrations/index.ts'
import { ConfigError, parseConfig } from '../../src/config/parser.ts'
import { fromUtf8 } from '../../src/lib/bytes.ts'
import { migrate } from '../../src/storage/database/migrate.ts'
import { openDatabase } from '../../src/storage/database/database.ts'
import { serverUrl, testTemplate } from '../helpers/app.ts'
import { createCertificate } from '../helpers/certificates.ts'
import { signalAll } from '../helpers/children.ts'
import { runAll, urlOf } from '../helpers/hostile.ts'
import { findQuietPort } from '../helpers/ports.ts'
import {
  createInstallation,
  endEverything,
  type Ended,
  type Environment,
  refusePawl,
  runNode,
  startPawl,
} from '../helpers/process.ts'
import { PATIENCE_MS } from '../helpers/patience.ts'

// Fifty starts, and other test files run at the same time.

const root = fileURLToPath(new URL('../..', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'pawl-refused-'))
const KEY = randomBytes(32).toString('base64')
const servers: Server[] = []
const sockets = new Set<Socket>()

afterAll(async () => {
  await endEverything()
  for (const socket of sockets) socket.destroy()
  for (const server of servers) server.close()
  rmSync(folder, { recursive: true, force: true })
})

interface Broken {
  /** What stands in the environment, or has been put where it leads to. */
  readonly env?: () => Environment | Promise<Environment>
  readonly setting: RegExp
  readonly cause: RegExp
  readonly remedy: RegExp
  /** In place of a start with that environment. */
  readonly start?: (env: Environment) => Promise<Ended>
}

/** Node's socket for a port finds no file that is free. How many others a start needs differs from machine to machine. */
const FEW_FILES = `const { Server } = require('node:net')
const { listen } = Server.prototype
Server.prototype.listen = function (...given) {
  if (typeof given[0]?.port !== 'number') return listen.apply(this, given)
  queueMicrotask(() => this.emit('error', Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' })))
  return this
}`

// No server of names is asked for a label of 64 letters, so that the answer takes no time.
const UNKNOWN_NAME = `${'n'.repeat(64)}.invalid`
const NO_DATA = join(folder, 'none')
const database = (url: string, more: Environment = {}): Environment => ({ DATABASE_URL: url, PAWL_MASTER_KEY: KEY, ...more })

function expectOneLine({ code, signal, stdout, stderr }: Ended, { setting, cause, remedy }: Broken): void {
  expect([code, signal], stderr).toEqual([1, null])
  expect(stderr).toMatch(/^pawl (cannot start: |needs Node )[^\n]+\n$/)
  for (const part of [setting, cause, remedy]) expect(stderr).toMatch(part)
  expect(stderr).not.toMatch(/ at .*:\d+:\d+|marked/)
  // A log line may come before, of what was done or waited for, and none is a failure.
  for (const line of stdout.split('\n').filter(Boolean)) expect(line).toMatch(/^\{"level":"(info|warn)",/)
}

/** Starts mostly wait for one another's processors, and some for a time limit. */
const table = (rows: Readonly<Record<string, Broken>>, run = test.concurrent): void => {
  run.each(Object.entries(rows))('%s', async (_, row) => {
    const env = { PAWL_DATA_DIR: NO_DATA, ...(await row.env?.()) }
    expectOneLine(await (row.start ?? refusePawl)(env), row)
  })
}

/** As above, without a start: refused by the parser of settings, whose lines every start prints that it refuses. */
const parsed = (rows: Readonly<Record<string, Omit<Broken, 'start'>>>): void => {
  test.each(Object.entries(rows))('%s', async (_, { env, setting, cause, remedy }) => {
    const problems = findProblems({ PAWL_DATA_DIR: NO_DATA, ...(await env?.()) })
    expect(problems).toHaveLength(1)
    for (const part of [setting, cause, remedy]) expect(problems[0]).toMatch(part)
    expect(problems[0]).not.toMatch(/\n|marked/)
  })
}

function findProblems(env: Environment): readonly string[] {
  try {
    parseConfig(env, (path) => fromUtf8(readFileSync(path)))
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
}

/** A server that does this with each connection; its port. */
async function serve(onConnection: (socket: Socket) => void): Promise<number> {
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    onConnection(socket)
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

const atPort = async (port: number | Promise<number>, options = ''): Promise<Environment> =>
  database(`postgres://pawl:marked@127.0.0.1:${await port}/pawl${options}`)

/** A Vault that takes a request and says nothing. */
const serveVault = async (): Promise<Environment> => vault(await serve(() => undefined))
const vault = (port: number): Environment => ({
  DATABASE_URL: 'postgres://pawl@127.0.0.1:1/pawl',
  PAWL_MASTER_KEY: `vault:v1:${randomBytes(60).toString('base64')}`,
  PAWL_VAULT_KEY_URL: `http://127.0.0.1:${port}/v1/transit/keys/pawl`,
  PAWL_VAULT_TOKEN: 'marked',
})

function write(name: string, text: string | Uint8Array): string {
  const path = join(folder, name)
  writeFileSync(path, text, { mode: 0o600 })
  return path
}

/** A program that does this in a shell, in the place of PAWL_MASTER_KEY. */
function program(name: string, body: string): Environment {
  const path = write(name, `#!/bin/sh\n${body}\n`)
  chmodSync(path, 0o700)
  return { DATABASE_URL: 'postgres://pawl@127.0.0.1:1/pawl', PAWL_MASTER_KEY_COMMAND: path }
}

/** A data directory of an earlier start, or as good as one, that is changed then. */
function dataDir(name: string, change: (path: string) => void): Environment {
  const path = join(folder, name)
  cpSync(join(testTemplate(), 'data'), path, { recursive: true })
  change(path)
  return { PAWL_DATA_DIR: path }
}

/** Mounts of its own, whoever runs the test, so that the full disk ends with the process. */
const IN_MOUNTS = ['unshare', '--user', '--map-root-user', '--mount'] as const
const canMount = spawnSync(IN_MOUNTS[0], [...IN_MOUNTS.slice(1), 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt']).status === 0
const FILL =
  'mount -t tmpfs -o size=256m tmpfs /mnt && cp -a "$1" /mnt/data; shift; dd if=/dev/zero of=/mnt/rest bs=1M 2>/dev/null; exec "$@"'

const startOnFullDisk = ({ PAWL_DATA_DIR: path = '', ...env }: Environment): Promise<Ended> =>
  runUnder([...IN_MOUNTS, 'sh', '-c', FILL, 'sh', path], { ...env, PAWL_DATA_DIR: '/mnt/data' })

function removeFrom(path: string, files: readonly string[]): void {
  for (const file of files) rmSync(join(path, 'database', file), { recursive: true })
}

const certificate = createCertificate(['IP:127.0.0.1'])
const other = createCertificate(['IP:127.0.0.1'])
function tls(name: string, files: { readonly certificate?: string; readonly key?: string; readonly ca?: string }): Environment {
  const { certificate: cert = certificate.pem, key = certificate.privateKeyPem, ca = certificate.pem } = files
  return {
    ...dataDir(`tls-${name}`, () => undefined),
    PAWL_INTERNAL_PORT: '0',
    PAWL_INTERNAL_TLS_CERTIFICATE: cert === '' ? '/nowhere/cert.pem' : write(`${name}-cert.pem`, cert),
    PAWL_INTERNAL_TLS_KEY: write(`${name}-key.pem`, key),
    PAWL_INTERNAL_TLS_CLIENT_CA: write(`${name}-ca.pem`, ca),
  }
}

describe.skipIf(serverUrl() !== undefined)('settings', () => {
  const TOO_FAR = /is not an integer from 1 to 100/
  parsed({
    'a number out of range': {
      env: () => ({ PAWL_DATABASE_POOL_SIZE: '101' }),
      setting: /PAWL_DATABASE_POOL_SIZE: /,
      cause: /"101" is not/,
      remedy: TOO_FAR,
    },
    'a number that is none': {
      env: () => ({ PAWL_DATABASE_POOL_SIZE: 'ten' }),
      setting: /PAWL_DATABASE_POOL_SIZE: /,
      cause: /"ten" is not/,
      remedy: TOO_FAR,
    },
    'a public URL without a scheme': {
      env: () => ({ PAWL_PUBLIC_URL: 'phones.bank.example' }),
      setting: /PAWL_PUBLIC_URL: /,
      cause: /"phones\.bank\.example" is not/,
      remedy: /an http or https URL/,
    },
    'a public URL with a slash too many': {
      env: () => ({ PAWL_PUBLIC_URL: 'https://phones.bank.example/' }),
      setting: /PAWL_PUBLIC_URL: /,
      cause: /ends in a slash/,
      remedy: /leave it out/,
    },
    'a public URL with a port that there is not': {
      env: () => ({ PAWL_PUBLIC_URL: 'https://phones.bank.example:70000' }),
      setting: /PAWL_PUBLIC_URL: /,
      cause: /is not/,
      remedy: /an http or https URL/,
    },
    'a password that everybody guesses': {
      env: () => ({ PAWL_ADMIN_PASSWORD: 'password1234' }),
      setting: /PAWL_ADMIN_PASSWORD: /,
      cause: /easily guessed/,
      remedy: /choose another/,
    },
    'several processes on the embedded database': {
      env: () => ({ PAWL_PROCESSES: '2' }),
      setting: /PAWL_PROCESSES: /,
      cause: /the embedded database takes one process/,
      remedy: /needs DATABASE_URL/,
    },
    'the bank and phones at one address': {
      env: () => ({ PAWL_HOST: '0.0.0.0' }),
      setting: /PAWL_HOST: /,
      cause: /others would reach the bank's API/,
      remedy: /set PAWL_INTERNAL_PORT/,
    },
    'a file with a password in Latin-1': {
      env: () => ({ PAWL_ADMIN_PASSWORD_FILE: write('latin-1', Buffer.from('un mot de passe marked\xe9', 'latin1')) }),
      setting: /PAWL_ADMIN_PASSWORD_FILE: /,
      cause: /is no UTF-8 text/,
      remedy: /latin-1 is no UTF-8 text/,
    },
    'a path of spaces': {
      env: () => ({ PAWL_DATA_DIR: '   ' }),
      setting: /PAWL_DATA_DIR: /,
      cause: /" {3}" is not/,
      remedy: /a path/,
    },
  })

  table({
    'a setting that nobody knows': {
      env: () => ({ PAWL_DATABASE_POOLSIZE: '8' }),
      setting: /PAWL_DATABASE_POOLSIZE: /,
      cause: /no such setting/,
      remedy: /PAWL_DATABASE_POOL_SIZE is the nearest; docs\/CONFIG\.md/,
    },
    'templates that are not there': {
      env: () => ({ PAWL_TEMPLATES_FILE: '/nowhere/templates.json' }),
      setting: /PAWL_TEMPLATES_FILE: /,
      cause: /does not exist/,
      remedy: /\/nowhere\/templates\.json does not exist/,
    },
  })
})

describe.skipIf(serverUrl() !== undefined)('listeners', () => {
  table({
    'a port that is taken': {
      env: async () => ({ ...dataDir('taken', () => undefined), PAWL_PORT: String(await serve(() => undefined)) }),
      setting: /PAWL_PORT/,
      cause: /127\.0\.0\.1:\d+ is in use by another program or by the other listener/,
      remedy: /choose another port/,
    },
    'a process that may open no more files': {
      env: () => dataDir('few-files', () => undefined),
      setting: /too many files are open/,
      cause: /EMFILE/,
      remedy: /let the process open more files: ulimit -n/,
      start: (env) => runNode(['--require', write('few-files.cjs', FEW_FILES), join(root, 'bin/pawl.mjs')], env),
    },
    'a port without the right to it': {
      env: () => ({ ...dataDir('without-right', () => undefined), PAWL_PORT: '81' }),
      start: (env) => runWithoutCapabilities(env),
      setting: /PAWL_PORT/,
      cause: /listening on 127\.0\.0\.1:81 is not permitted/,
      remedy: /choose a port from 1024 on/,
    },
    'an address of another machine': {
      env: () => ({ ...dataDir('address', () => undefined), PAWL_HOST: '192.0.2.1', PAWL_SINGLE_LISTENER: 'true' }),
      setting: /PAWL_HOST/,
      cause: /192\.0\.2\.1 is not an address of this machine/,
      remedy: /choose another/,
    },
    'a name that nobody knows': {
      env: () => ({ ...dataDir('name', () => undefined), PAWL_INTERNAL_HOST: UNKNOWN_NAME, PAWL_INTERNAL_PORT: '0' }),
      setting: /PAWL_INTERNAL_HOST/,
      cause: /n\.invalid cannot be resolved \((ENOTFOUND|EAI_AGAIN)\)/,
      remedy: /give an address of this machine/,
    },
    'a certificate that is not there': {
      env: () => tls('missing', { certificate: '' }),
      setting: /PAWL_INTERNAL_TLS_CERTIFICATE: /,
      cause: /\/nowhere\/cert\.pem does not exist/,
      remedy: /look at its path/,
    },
    'a certificate that is none': {
      env: () => tls('none', { certificate: '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n' }),
      setting: /PAWL_INTERNAL_TLS_CERTIFICATE: /,
      cause: /cannot be used \(ERR_OSSL_/,
      remedy: /look at what it holds/,
    },
    'a key that is a certificate': {
      env: () => tls('swapped', { key: certificate.pem }),
      setting: /PAWL_INTERNAL_TLS_KEY: /,
      cause: /holds no private key/,
      remedy: /in PEM/,
    },
    'the key of another certificate': {
      env: () => tls('other', { key: other.privateKeyPem }),
      setting: /PAWL_INTERNAL_TLS_KEY: /,
      cause: /is not the key of PAWL_INTERNAL_TLS_CERTIFICATE/,
      remedy: /both of one issue/,
    },
    'no authority for callers': {
      env: () => tls('clients', { ca: 'nothing' }),
      setting: /PAWL_INTERNAL_TLS_CLIENT_CA: /,
      cause: /holds no certificate/,
      remedy: /in PEM/,
    },
  })
})

const NO_RANDOMNESS = `import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
crypto.randomBytes = () => { throw new Error('no\\nrandomness') }
syncBuiltinESMExports()`

describe.skipIf(serverUrl() !== undefined)('the embedded database', () => {
  table({
    'a folder that cannot be made': {
      env: () => ({ PAWL_DATA_DIR: '/dev/null/data' }),
      setting: /PAWL_DATA_DIR/,
      cause: /cannot be made or written \(ENOTDIR\)/,
      remedy: /choose another/,
    },
    'a folder on a file system that takes nothing': {
      env: () => ({ PAWL_DATA_DIR: '/proc/pawl' }),
      setting: /PAWL_DATA_DIR/,
      cause: /cannot be made or written \(E[A-Z]+\)/,
      remedy: /choose another/,
    },
    'files that end too early': {
      env: () => dataDir('cut', (path) => truncateSync(join(path, 'database', 'global', 'pg_control'), 100)),
      setting: /PAWL_DATA_DIR: /,
      cause: /the database in \S+cut\/database cannot be opened \(.+\)/,
      remedy: /put back a backup/,
    },
    'files that are missing': {
      env: () => dataDir('without', (path) => rmSync(join(path, 'database', 'base'), { recursive: true })),
      setting: /PAWL_DATA_DIR: /,
      cause: /cannot be opened \(.+\)/,
      remedy: /put back a backup/,
    },
    'files of another PostgreSQL': {
      env: () => dataDir('version', (path) => writeFileSync(join(path, 'database', 'PG_VERSION'), '9\n')),
      setting: /PAWL_DATA_DIR: /,
      cause: /cannot be opened \(.+\)/,
      remedy: /put back a backup/,
    },
    'a file in the place of the folder of files': {
      env: () =>
        dataDir('file', (path) => {
          rmSync(join(path, 'database'), { recursive: true })
          writeFileSync(join(path, 'database'), '')
        }),
      setting: /PAWL_DATA_DIR: /,
      cause: /cannot be opened \(.+\)/,
      remedy: /put back a backup/,
    },
    'files without the one that says what they are': {
      env: () => dataDir('nameless', (path) => removeFrom(path, ['PG_VERSION', 'global'])),
      start: async (env) => {
        const files = () => readdirSync(join(env['PAWL_DATA_DIR'] ?? '', 'database'), { recursive: true }).length
        const before = files()
        const ended = await refusePawl(env)
        expect(files(), 'what is left of it stays').toBe(before)
        return ended
      },
      setting: /PAWL_DATA_DIR: /,
      cause: /cannot be opened \(PG_VERSION is missing\)/,
      remedy: /put back a backup/,
    },
    'a disk that takes nothing of a database that is made': {
      env: () => ({ PAWL_DATA_DIR: join(folder, 'full') }),
      start: async (env) => {
        const ended = await runUnder(['sh', '-c', 'ulimit -f 0; exec "$0" "$@"'], { NODE_DISABLE_COMPILE_CACHE: '1', ...env })
        expect(readdirSync(join(folder, 'full')), 'no half of a database').not.toContain('database')
        return ended
      },
      setting: /PAWL_DATA_DIR: /,
      cause: /cannot be opened \(EFBIG\)/,
      remedy: /the room on the disk/,
    },
    'a process that may open few files': {
      env: () => dataDir('few-files', () => undefined),
      start: (env) => runUnder(['sh', '-c', 'ulimit -n 48; exec "$0" "$@"'], env),
      setting: /PAWL_DATA_DIR: /,
      cause: /cannot be opened \(EMFILE\)/,
      remedy: /let the process open more files/,
    },
    'files that this user may not read': {
      env: () => dataDir('closed', (path) => chmodSync(join(path, 'database', 'base'), 0)),
      start: runWithoutCapabilities,
      setting: /PAWL_DATA_DIR: /,
      cause: /cannot be opened \(.+\); user \d+, who runs this process, may not read and write \S+closed\/database\/base,/,
      remedy: /which belongs to user \d+: chmod -R u\+rwX \S+closed\/database\n$/,
    },
    ...(canMount && {
      'a database that does not open, on a full disk': {
        env: () => dataDir('no-room', (path) => truncateSync(join(path, 'database', 'global', 'pg_control'), 100)),
        start: startOnFullDisk,
        setting: /PAWL_DATA_DIR: /,
        cause: /the database in \/mnt\/data\/database cannot be opened \((?!.*ASSERTIONS).+\)/,
        remedy: /its disk has 0 MB left: make room there/,
      },
    }),
    'a key file that holds no key': {
      env: () => dataDir('no-key', (path) => writeFileSync(join(path, 'master.key'), 'marked')),
      setting: /PAWL_DATA_DIR: /,
      cause: /master\.key is not a master key/,
      remedy: /put it back from the backup/,
    },
    'a key file that is a folder': {
      env: () => dataDir('folder-key', (path) => mkdirSync(join(path, 'master.key'))),
      setting: /PAWL_DATA_DIR: /,
      cause: /master\.key is a folder/,
      remedy: /look at/,
    },
    'what nobody foresaw': {
      env: () => dataDir('unforeseen', () => undefined),
      start: (env) =>
        runNode(['--import', write('no-randomness.mjs', NO_RANDOMNESS), 'bin/pawl.mjs'], { PAWL_PORT: '0', ...env }),
      setting: /pawl cannot start: /,
      cause: /: no randomness; nobody foresaw this/,
      remedy: /PAWL_LOG_LEVEL=debug shows where it comes from/,
    },
  })

  test('a folder that another process has, and a key that is another one', async () => {
    const { env, dataDir: path } = await createInstallation('embedded')
    const first = await startPawl(env)
    expectOneLine(await refusePawl(env), {
      setting: /PAWL_DATA_DIR/,
      cause: /is in use by another pawl process/,
      remedy: /stop it or/,
    })
    await first.end('SIGTERM')
    writeFileSync(join(path, 'master.key'), KEY)
    const wrong = /the master key is not the one this database was written with/
    expectOneLine(await refusePawl(env), { setting: /PAWL_DATA_DIR: /, cause: wrong, remedy: /master\.key back from the backup/ })
    const given = { ...env, PAWL_MASTER_KEY: KEY }
    expectOneLine(await refusePawl(given), {
      setting: /start: PAWL_MASTER_KEY: /,
      cause: wrong,
      remedy: /give the right PAWL_MASTER_KEY/,
    })
    const printed = { ...env, PAWL_MASTER_KEY_COMMAND: program('wrong', `echo ${KEY}`)['PAWL_MASTER_KEY_COMMAND'] ?? '' }
    expectOneLine(await refusePawl(printed), {
      setting: /PAWL_MASTER_KEY_COMMAND: /,
      cause: wrong,
      remedy: /look at what the program prints/,
    })
  })
})

describe.skipIf(serverUrl() !== undefined)('the master key', () => {
  const BY_HAND = /run it by hand/
  parsed({
    'none, on PostgreSQL': {
      env: () => ({ DATABASE_URL: 'postgres://pawl@127.0.0.1:1/pawl' }),
      setting: /PAWL_MASTER_KEY: /,
      cause: /needed together with DATABASE_URL/,
      remedy: /openssl rand -base64 32/,
    },
    'one that is too short': {
      env: () => ({ DATABASE_URL: 'postgres://pawl@127.0.0.1:1/pawl', PAWL_MASTER_KEY: randomBytes(31).toString('base64') }),
      setting: /PAWL_MASTER_KEY: /,
      cause: /not 32 bytes/,
      remedy: /openssl rand -base64 32/,
    },
    'a file of it that is not there': {
      env: () => ({ DATABASE_URL: 'postgres://pawl@127.0.0.1:1/pawl', PAWL_MASTER_KEY_FILE: '/nowhere/key' }),
      setting: /PAWL_MASTER_KEY_FILE: /,
      cause: /does not exist/,
      remedy: /\/nowhere\/key does not exist/,
    },
    'a program of spaces': {
      env: () => ({ DATABASE_URL: 'postgres://pawl@127.0.0.1:1/pawl', PAWL_MASTER_KEY_COMMAND: '  ' }),
      setting: /PAWL_MASTER_KEY_COMMAND: /,
      cause: /" {2}" is not/,
      remedy: /a program and its arguments/,
    },
  })

  table({
    'a program that nobody may run': {
      env: () => {
        const env = program('unexecutable', ':')
        chmodSync(env['PAWL_MASTER_KEY_COMMAND'] ?? '', 0o600)
        return env
      },
      setting: /PAWL_MASTER_KEY_COMMAND: /,
      cause: /cannot be run \(EACCES\)/,
      remedy: /who may execute it/,
    },
    'a program that is killed': {
      env: () => program('killed', 'echo marked >&2; kill -9 $$'),
      setting: /PAWL_MASTER_KEY_COMMAND: /,
      cause: /ended by a signal \(SIGKILL\)/,
      remedy: /log of the system/,
    },
    'a program that waits': {
      env: () => program('waits', 'exec sleep 60'),
      setting: /PAWL_MASTER_KEY_COMMAND: /,
      cause: /did not end within 10 seconds/,
      remedy: BY_HAND,
    },
    'a Vault that does not answer': {
      env: () => serveVault(),
      setting: /PAWL_VAULT_KEY_URL: /,
      cause: /did not answer within 10 s/,
      remedy: /has too much to do/,
    },
  })
})

describe.skipIf(serverUrl() !== undefined)('an address that is no PostgreSQL', () => {
  parsed({
    'of another database': {
      env: () => database('mysql://pawl:marked@127.0.0.1/pawl'),
      setting: /DATABASE_URL: /,
      cause: /not a postgres:/,
      remedy: /postgres:\/\/user:password@host:port/,
    },
    'a password that is not encoded': {
      env: () => database('postgres://pawl:12#marked@127.0.0.1/pawl'),
      setting: /DATABASE_URL: /,
      cause: /a password with/,
      remedy: /%2F %3F %23 %40/,
    },
    'a mode of TLS that there is not': {
      env: () => database('postgres://pawl:marked@127.0.0.1:1/pawl?sslmode=banana'),
      setting: /DATABASE_URL: /,
      cause: /sslmode that is none/,
      remedy: /disable, no-verify, prefer, require, verify-ca, verify-full/,
    },
    'a mode of TLS in capitals': {
      env: () => database('postgres://pawl:marked@127.0.0.1:1/pawl?sslmode=VERIFY-FULL'),
      setting: /DATABASE_URL: /,
      cause: /sslmode that is none/,
      remedy: /verify-full/,
    },
    'an option of TLS that is misspelt': {
      env: () => database('postgres://pawl:marked@127.0.0.1:1/pawl?slmode=verify-full'),
      setting: /DATABASE_URL: /,
      cause: /no option "slmode"/,
      remedy: /sslmode/,
    },
    'TLS that is asked for and declined': {
      env: () => database('postgres://pawl:marked@127.0.0.1:1/pawl?sslmode=verify-full&sslmode=disable'),
      setting: /DATABASE_URL: /,
      cause: /option sslmode twice/,
      remedy: /sslmode/,
    },
  })

  table({
    'nobody there': {
      env: () => atPort(findQuietPort()),
      setting: /DATABASE_URL: postgres:\/\/127\.0\.0\.1:\d+\/pawl/,
      cause: /refuses connections \(ECONNREFUSED\)/,
      remedy: /nothing listens there/,
    },
    'nobody at any of several hosts': {
      env: async () =>
        database(`postgres://pawl:marked@127.0.0.1:${await findQuietPort()},127.0.0.1:${await findQuietPort()}/pawl`),
      setting: /DATABASE_URL: /,
      cause: /no host that takes writes, the last one refuses connections/,
      remedy: /nothing listens there/,
    },
    'a name that nobody knows': {
      env: () => database(`postgres://pawl:marked@${UNKNOWN_NAME}/pawl`),
      setting: /DATABASE_URL: postgres:\/\/n+\.invalid/,
      cause: /cannot be resolved \((ENOTFOUND|EAI_AGAIN)\)/,
      remedy: /look at its name/,
    },
    'one that says nothing': {
      env: () => atPort(serve(() => undefined)),
      setting: /DATABASE_URL: /,
      cause: /did not answer in time/,
      remedy: /a firewall drops/,
    },
    'one that hangs up': {
      env: () => atPort(serve((socket) => socket.end())),
      setting: /DATABASE_URL: /,
      cause: /ended the connection/,
      remedy: /look at host and port/,
    },
    'one that resets': {
      env: () => atPort(serve((socket) => socket.once('data', () => socket.resetAndDestroy()))),
      setting: /DATABASE_URL: /,
      cause: /broke the connection \(ECONNRESET\)/,
      remedy: /its log may say why/,
    },
    'a web server': {
      env: () => atPort(serve((socket) => socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')))),
      setting: /DATABASE_URL: /,
      cause: /ended the connection|does not answer as PostgreSQL does/,
      remedy: /look at host and port/,
    },
    'a web server that is asked for TLS': {
      env: () =>
        atPort(
          serve((socket) => socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))),
          '?sslmode=require',
        ),
      setting: /DATABASE_URL: /,
      cause: /is no PostgreSQL/,
      remedy: /look at host and port/,
    },
    'an authority that is not there': {
      env: () => database('postgres://pawl:marked@127.0.0.1:1/pawl?sslmode=verify-full&sslrootcert=/nowhere/ca.pem'),
      setting: /DATABASE_URL: /,
      cause: /\/nowhere\/ca\.pem, which does not exist/,
      remedy: /look at sslrootcert/,
    },
    'workers whose database is away': {
      env: async () => ({ ...(await atPort(findQuietPort())), PAWL_PROCESSES: '2' }),
      setting: /DATABASE_URL: /,
      cause: /refuses connections/,
      remedy: /nothing listens there/,
    },
  })
})

describe.skipIf(serverUrl() !== undefined)('what pawl is made of', () => {
  /** A copy of the project with these of its packages. */
  function copyProject(name: string, packages: (all: readonly string[]) => readonly string[]): string {
    const path = join(folder, name)
    for (const part of ['bin', 'cli', 'migrations', 'phone', 'src', 'package.json'])
      cpSync(join(root, part), join(path, part), { recursive: true })
    mkdirSync(join(path, 'node_modules'))
    for (const one of packages(readdirSync(join(root, 'node_modules'))))
      symlinkSync(join(root, 'node_modules', one), join(path, 'node_modules', one))
    return path
  }
  const startIn =
    (path: string, words: readonly string[] = []) =>
    (env: Environment) =>
      runNode([join(path, 'bin/pawl.mjs'), ...words], env)
  /** Another Node, as far as it says what it is. */
  const asNode = (version: string, script: string, env: Environment = {}, platform = 'linux'): Promise<Ended> => {
    const change = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })
      Object.defineProperty(process, 'platform', { value: '${platform}' })`
    return runNode(['--require', write(`as-${version}-${platform}.cjs`, change), script], env)
  }

  table({
    'no package at all': {
      start: (env) => startIn(copyProject('bare', () => []))(env),
      setting: /pawl cannot start/,
      cause: /(pino|kysely|ipaddr\.js|@sinclair\/typebox) is not installed/,
      remedy: /run "npm ci" in \S+bare/,
    },
    'a package that only the server needs': {
      start: (env) => startIn(copyProject('without-fastify', (all) => all.filter((one) => one !== 'fastify')))(env),
      setting: /pawl cannot start/,
      cause: /fastify is not installed/,
      remedy: /run "npm ci"/,
    },
    'a package that only commands need': {
      start: (env) =>
        startIn(
          copyProject('without-commander', (all) => all.filter((one) => one !== 'commander')),
          ['doctor'],
        )(env),
      setting: /pawl cannot start/,
      cause: /commander is not installed/,
      remedy: /run "npm ci"/,
    },
    'a package that one command needs': {
      start: (env) =>
        startIn(
          copyProject('without-pg', (all) => all.filter((one) => one !== 'pg')),
          ['migrate'],
        )(env),
      setting: /pawl cannot start/,
      cause: /pg is not installed/,
      remedy: /run "npm ci"/,
    },
    'a Node that is too old, and none among the packages': {
      start: (env) =>
        asNode(
          '20.18.0',
          join(
            copyProject('old', () => []),
            'bin/pawl.mjs',
          ),
          env,
        ),
      setting: /pawl needs Node 26\.10 or newer/,
      cause: /this is 20\.18\.0/,
      remedy: /run "npm start", which installs the package node-linux-/,
    },
    'a Node that is too old to install another': {
      start: (env) =>
        asNode(
          '18.20.4',
          join(
            copyProject('older', (all) => all),
            'bin/pawl.mjs',
          ),
          env,
        ),
      setting: /pawl needs Node 26\.10 or newer/,
      cause: /this is 18\.20\.4/,
      remedy: /needs Node 20 to be installed/,
    },
    'npm start on a Node that is too old to install another': {
      start: (env) =>
        asNode(
          '18.20.4',
          join(
            copyProject('older-start', () => []),
            'bin/prepare.mjs',
          ),
          env,
        ),
      setting: /pawl needs Node 26\.10 or newer/,
      cause: /this is 18\.20\.4/,
      remedy: /needs Node 20 to be installed/,
    },
    'a machine for which no package has a Node': {
      start: (env) =>
        asNode(
          '22.1.0',
          join(
            copyProject('darwin', () => []),
            'bin/pawl.mjs',
          ),
          env,
          'darwin',
        ),
      setting: /pawl needs Node 26\.10 or newer/,
      cause: /no package brings one for darwin/,
      remedy: /install it/,
    },
  })

  test('who has asked to see everything sees where it comes from, behind the one line', async () => {
    for (const [level, is] of [
      ['debug', true],
      ['info', false],
    ] as const) {
      const { code, stderr } = await refusePawl({ ...(await atPort(findQuietPort())), PAWL_LOG_LEVEL: level })
      expect(code).toBe(1)
      expect(stderr).toMatch(/^pawl cannot start: DATABASE_URL: .*\n/)
      expect(/\n {4}at .*pawl-bundles\/\w+\/dist\/\w+\.js:\d+/.test(stderr)).toBe(is)
      expect(stderr.match(/^pawl cannot start/gm)).toHaveLength(1)
      expect(stderr).not.toContain('marked')
    }
  })
})

describe.skipIf(serverUrl() === undefined)('a PostgreSQL', () => {
  let postgres: Postgres
  let url = ''
  const authority = createCertificate([], { commonName: 'authority' })
  const shown = createCertificate(['DNS:db.bank.example'], { commonName: 'db.bank.example', issuer: authority })

  beforeAll(async () => {
    const identity = serverIdentity()
    const place = (name: string, text: string): string => {
      const path = write(name, text)
      if (identity !== undefined) chownSync(path, identity.uid, identity.gid)
      return path
    }
    chmodSync(folder, 0o755)
    const access = [
      'host all banned all reject',
      'hostssl all covered all trust',
      'host all covered all reject',
      'host all secret all scram-sha-256',
      'host all all all trust',
    ]
    postgres = await startPostgres([
      `hba_file=${place('pg_hba.conf', access.join('\n'))}`,
      'ssl=on',
      `ssl_cert_file=${place('server.pem', shown.pem)}`,
      `ssl_key_file=${place('server.key', shown.privateKeyPem)}`,
    ])
    url = postgres.createDatabase('pawl')
    await runAll(url, [
      ...['banned', 'covered', 'narrow', 'poor'].map((role) => `create role ${role} login`),
      `create role secret login password 'right'`,
      'alter role narrow connection limit 0',
      `create database latin template template0 encoding 'LATIN1' locale 'C'`,
      'create database standing',
      'alter database standing set default_transaction_read_only = on',
      'create database newer',
      'create database older',
      'create database poor',
      'create database keyed',
    ])
    const known = Object.entries(migrations)
    for (const [name, some] of [
      ['newer', known],
      ['older', known.slice(0, -1)],
    ] as const) {
      const { db, close } = await openDatabase({ databaseUrl: urlOf(url, { database: name }), dataDir: '', poolSize: 1 })
      await migrate(db, { known: Object.fromEntries(some) })
      await close()
    }
    const [last = ''] = Object.keys(migrations).slice(-1)
    await runAll(
      urlOf(url, { database: 'newer' }),
      [1, 2].map((i) => `insert into kysely_migration values ('${last}-${i}', '2026-01-01T00:00:00.000Z')`),
    )
  })
  afterAll(() => postgres.close())

  const as = (role: string, password?: string, databaseName?: string): Environment =>
    database(
      urlOf(url, {
        role,
        ...(password !== undefined && { password }),
        ...(databaseName !== undefined && { database: databaseName }),
      }),
    )
  const on = (name: string): Environment => database(urlOf(url, { database: name }))
  const over = (options: string): Environment => database(`${url}?${options}`)

  table(
    {
      'a wrong password': {
        env: () => as('secret', 'marked'),
        setting: /DATABASE_URL: postgres:\/\/127\.0\.0\.1:\d+\/pawl/,
        cause: /refuses the password \(28P01: password authentication failed for user "secret"\)/,
        remedy: /look at user and password/,
      },
      'no password': {
        env: () => as('secret'),
        setting: /DATABASE_URL: /,
        cause: /asks for a password/,
        remedy: /there is none in it/,
      },
      'a role that there is not': {
        env: () => as('nobody'),
        setting: /DATABASE_URL: /,
        cause: /28000: role "nobody" does not exist/,
        remedy: /look at the user/,
      },
      'a role that may not come from here': {
        env: () => as('banned'),
        setting: /DATABASE_URL: /,
        cause: /28000: pg_hba\.conf rejects/,
        remedy: /pg_hba\.conf of the server/,
      },
      'a role that may come over TLS alone': {
        env: () => as('covered'),
        setting: /DATABASE_URL: /,
        cause: /28000: .*no encryption/,
        remedy: /pg_hba\.conf of the server/,
      },
      'a database that there is not': {
        env: () => on('nothing'),
        setting: /DATABASE_URL: postgres:\/\/127\.0\.0\.1:\d+\/nothing/,
        cause: /3D000: database "nothing" does not exist/,
        remedy: /create database/,
      },
      'no room for a connection': {
        env: () => as('narrow'),
        setting: /DATABASE_URL: /,
        cause: /53300: too many connections for role "narrow"/,
        remedy: /raise max_connections.*PAWL_DATABASE_POOL_SIZE/,
      },
      'too few rights': {
        env: () => as('poor', undefined, 'poor'),
        setting: /DATABASE_URL: /,
        cause: /42501: permission denied for schema public/,
        remedy: /own the database, or grant it create/,
      },
      'tables of another owner': {
        env: () => as('poor', undefined, 'newer'),
        setting: /DATABASE_URL: /,
        cause: /42501: permission denied for table/,
        remedy: /owner of the tables/,
      },
      'a database that takes no writes': {
        env: () => on('standing'),
        setting: /DATABASE_URL: /,
        cause: /25006: cannot execute CREATE TABLE in a read-only transaction/,
        remedy: /default_transaction_read_only = off/,
      },
      'one that is to be the primary, and takes no writes': {
        env: () => database(`${urlOf(url, { database: 'standing' })}?target_session_attrs=read-write`),
        setting: /DATABASE_URL: /,
        cause: /no host that takes writes, the last one takes no writes/,
        remedy: /name the primary/,
      },
      'a database in LATIN1': {
        env: () => on('latin'),
        setting: /DATABASE_URL: /,
        cause: /the encoding of the database is LATIN1/,
        remedy: /create database \.\.\. encoding 'UTF8'/,
      },
      'a schema of a newer version': {
        env: () => on('newer'),
        setting: /DATABASE_URL: /,
        cause: /2 migrations .* that this version of pawl does not know/,
        remedy: /start the version that made it/,
      },
      'a migration that nobody is to run': {
        env: () => ({ ...on('older'), PAWL_MIGRATE: 'never' }),
        setting: /PAWL_MIGRATE=start/,
        cause: /the database lacks migration/,
        remedy: /run pawl migrate/,
      },
      'a certificate of an authority that nobody knows': {
        env: () => over('sslmode=verify-full'),
        setting: /DATABASE_URL: /,
        cause: /shows a certificate that nobody vouches for \([A-Z_]+\)/,
        remedy: /sslrootcert/,
      },
      'the same where TLS is merely required': {
        env: () => over('sslmode=require'),
        setting: /DATABASE_URL: /,
        cause: /shows a certificate that nobody vouches for \([A-Z_]+\)/,
        remedy: /sslrootcert/,
      },
      'a certificate of another name': {
        env: () => over(`sslmode=verify-full&sslrootcert=${encodeURIComponent(write('authority.pem', authority.pem))}`),
        setting: /DATABASE_URL: /,
        cause: /shows the certificate of another name \(ERR_TLS_CERT_ALTNAME_INVALID\)/,
        remedy: /by a name that its certificate has/,
      },
      'an authority that is no certificate': {
        env: () => over(`sslmode=verify-full&sslrootcert=${encodeURIComponent(write('nothing.pem', 'nothing'))}`),
        setting: /DATABASE_URL: /,
        cause: /shows a certificate that nobody vouches for|one is none/,
        remedy: /sslrootcert/,
      },
      'a server that stands still': {
        env: () => {
          signalAll(postgres.pid, 'SIGSTOP')
          return database(url)
        },
        start: (env) => refusePawl(env).finally(() => signalAll(postgres.pid, 'SIGCONT')),
        setting: /DATABASE_URL: /,
        cause: /did not answer in time/,
        remedy: /it stands still/,
      },
    },
    test,
  )

  test('another key, and another one of a program', async () => {
    const first = await startPawl(on('keyed'))
    await first.end('SIGTERM')
    const wrong = /the master key is not the one this database was written with/
    const key = { ...on('keyed'), PAWL_MASTER_KEY: randomBytes(32).toString('base64') }
    expectOneLine(await refusePawl(key), { setting: /PAWL_MASTER_KEY: /, cause: wrong, remedy: /give the right PAWL_MASTER_KEY/ })
    const printed = {
      ...program('other-key', `echo ${randomBytes(32).toString('base64')}`),
      DATABASE_URL: urlOf(url, { database: 'keyed' }),
    }
    expectOneLine(await refusePawl(printed), {
      setting: /PAWL_MASTER_KEY_COMMAND: /,
      cause: wrong,
      remedy: /look at what the program prints/,
    })
  })

  test('a command says the same in one line', async () => {
    for (const [env, says] of [
      [as('secret', 'marked'), /^DATABASE_URL: \S+ refuses the password \(28P01: .*\): look at user and password/],
      [on('nothing'), /^DATABASE_URL: \S+ has no such database \(3D000: /],
      [on('latin'), /^DATABASE_URL: the encoding of the database is LATIN1/],
      [as('poor', undefined, 'poor'), /^DATABASE_URL: .*42501: permission denied for schema public/],
      [over('sslmode=verify-full'), /^DATABASE_URL: \S+ shows a certificate that nobody vouches for/],
    ] as const) {
      const { code, stderr } = await runNode(['bin/pawl.mjs', 'migrate'], env)
      expect([code, stderr.split('\n').length], stderr).toEqual([3, 2])
      expect(stderr).toMatch(says)
      expect(stderr).not.toContain('marked')
    }
  })

  // The last: it takes connections no more.
  test('a server that is about to stop', async () => {
    const client = new pg.Client({ connectionString: url })
    client.on('error', () => undefined)
    await client.connect()
    // It waits for those who are there, as this one is until it is told to wait no longer.
    process.kill(postgres.pid, 'SIGTERM')
    const row = {
      setting: /DATABASE_URL: /,
      cause: /57P03: the database system is shutting down/,
      remedy: /wait until it has started/,
    }
    await vi.waitFor(async () => expect(await isShuttingDown(url)).toBe(true), { timeout: PATIENCE_MS })
    expectOneLine(await refusePawl(database(url)), row)
  })
})

async function isShuttingDown(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  try {
    await client.connect()
    await client.end()
    return false
  } catch (error) {
    return (error as { code?: unknown }).code === '57P03'
  }
}

/** As a user that is not root, who may not listen below 1024, nor read every file. */
const runWithoutCapabilities = (env: Environment): Promise<Ended> =>
  runUnder(process.getuid?.() === 0 ? ['setpriv', '--bounding-set=-all', '--inh-caps=-all', '--'] : [], env)

/** A start as what another program, with these words, ends in. */
async function runUnder(program: readonly string[], env: Environment): Promise<Ended> {
  const { PATH = '', HOME = '' } = process.env
  const [command, ...args] = [...program, process.execPath, join(root, 'bin/pawl.mjs')]
  const options = { env: { PATH, HOME, ...env }, timeout: PATIENCE_MS, killSignal: 'SIGKILL' } as const
  return new Promise((resolve) =>
    execFile(command, args, options, (error, stdout, stderr) => {
      const { code = 0, signal = null } = error ?? {}
      resolve({ code: Number(code), signal: signal as NodeJS.Signals | null, stdout, stderr })
    }),
  )
}
