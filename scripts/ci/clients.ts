// Makes both clients from the description that a server of its own serves, compiles them, and runs their examples against it:
//   node scripts/ci/clients.ts [typescript] [java]
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { member, sendJson } from '../../phone/http.ts'
import { createPhone } from '../../phone/virtual-phone.ts'
import { createBank, readApplication } from '../../test/helpers/bank.ts'
import { asksForHelp } from '../command-line.ts'

interface Language {
  /** Commands one after the other, in a copy of the folder of the client that has openapi.json. */
  readonly build: readonly (readonly [string, ...string[]])[]
  readonly run: readonly [string, ...string[]]
}

const LANGUAGES: Readonly<Record<string, Language>> = {
  typescript: {
    build: [
      ['npm', 'ci', '--no-audit', '--no-fund'],
      ['npm', 'run', 'generate'],
      ['npm', 'run', 'build'],
    ],
    run: [process.execPath, 'dist/example.js'],
  },
  java: {
    build: [['mvn', '--quiet', '--batch-mode', 'package']],
    run: ['java', '-jar', 'target/pawl-example.jar'],
  },
}

if (asksForHelp(process.argv.slice(2))) {
  process.stdout.write(`Makes both clients from the description of a server, compiles them, and runs their examples against it:
  node scripts/ci/clients.ts [typescript] [java]\n`)
  process.exit(0)
}

const chosen = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(LANGUAGES)
const project = fileURLToPath(new URL('../..', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'pawl-clients-'))
const credential = `admin:${randomBytes(12).toString('hex')}`
const server = spawn(process.execPath, ['bin/pawl.mjs'], {
  cwd: project,
  env: {
    ...process.env,
    PAWL_PORT: '0',
    PAWL_DATA_DIR: join(folder, 'data'),
    PAWL_ADMIN_PASSWORD: credential.slice('admin:'.length),
    PAWL_LOG_LEVEL: 'error',
    PAWL_FIRST_APPLICATION: 'my-app',
    PAWL_WEBHOOK_ALLOW_HTTP: 'true',
    PAWL_WEBHOOK_ALLOW_PRIVATE_ADDRESSES: 'true',
  },
  stdio: ['ignore', 'pipe', 'inherit'],
})
const ended = new Promise<number | null>((resolve) => server.once('exit', resolve))

try {
  const url = await findUrl()
  const description = (await sendJson(url, 'GET', '/openapi.json')).text
  for (const name of chosen) {
    const language = LANGUAGES[name]
    if (language === undefined) throw new Error(`no client is called ${name}: ${Object.keys(LANGUAGES).join(', ')}`)
    await build(name, language, description)
    await runExample(name, language, url)
    process.stdout.write(`${name}: compiled, and its example ran\n`)
  }
} catch (error) {
  console.error(`clients: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
} finally {
  server.kill('SIGTERM')
  await ended
  rmSync(folder, { recursive: true, force: true })
}

/** The address that the start text names. */
function findUrl(): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    server.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
      const [, url] = /^pawl listens on (\S+)$/m.exec(text) ?? []
      if (url !== undefined && text.includes('Create an application:')) resolve(url)
    })
    void ended.then((code) => reject(new Error(`the server ended with ${code}`)))
  })
}

async function build(name: string, { build: commands }: Language, description: string): Promise<void> {
  const place = join(folder, name)
  const made = /node_modules|\/dist$|\/target$/
  cpSync(join(project, 'clients', name), place, { recursive: true, filter: (path) => !made.test(path.slice(project.length)) })
  writeFileSync(join(place, 'openapi.json'), description)
  for (const [command, ...args] of commands) {
    const child = spawn(command, args, { cwd: place, stdio: ['ignore', 'inherit', 'inherit'] })
    const code = await endOf(child)
    if (code !== 0) throw new Error(`${name}: ${command} ${args.join(' ')} ended with ${code}`)
  }
}

/** Runs the example, whose lines say when a phone is wanted: `code CODE` and `operation ID`. The phone approves. */
async function runExample(name: string, { run: [command, ...args] }: Language, url: string): Promise<void> {
  const bank = createBank(url, credential)
  const app = readApplication(await bank.call('GET', '/admin/application?id=my-app'))
  const phone = createPhone({ url, app, version: '3.3' })
  const child = spawn(command, args, {
    cwd: join(folder, name),
    env: { ...process.env, PAWL_URL: url, PAWL_ADMIN: credential, PAWL_APP: 'my-app' },
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: 120_000,
  })
  const acts: Readonly<Record<string, (word: string) => Promise<unknown>>> = {
    code: (code) => phone.activate(code.split('#')[0] ?? ''),
    operation: async (id) => {
      // The data that the code covers is in the list of the phone alone.
      const listed = await phone.send(await phone.prepareTokenCall('list', await phone.createToken('possession')))
      const operations = member(listed.json, 'responseObject') as { readonly id: string; readonly data: string }[]
      const data = operations.find((operation) => operation.id === id)?.data
      const reply = await phone.send(phone.prepareAuthorize({ id, data }))
      if (reply.status !== 200) throw new Error(`the phone could not approve: ${reply.status} ${reply.text}`)
    },
  }
  const said: string[] = []
  const acting: Promise<unknown>[] = []
  let rest = ''
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (rest + chunk).split(/\r?\n/)
    rest = lines.pop() ?? ''
    for (const line of lines) {
      process.stdout.write(`${name}: ${line}\n`)
      said.push(line)
      const [word = '', ...others] = line.split(' ')
      const act = acts[word]
      if (act) {
        const acted = act(others.join(' '))
        // Without the phone the example would wait to its end.
        acted.catch(() => child.kill())
        acting.push(acted)
      }
    }
  })
  const code = await endOf(child)
  await Promise.all(acting)
  const operation = said.find((line) => line.startsWith('operation '))?.slice('operation '.length)
  for (const line of ['status APPROVED', `webhook approved ${operation}`, 'done']) {
    if (!said.includes(line)) throw new Error(`${name}: the example did not say "${line}"`)
  }
  if (code !== 0) throw new Error(`${name}: the example ended with ${code}`)
}

function endOf(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', resolve)
  })
}
