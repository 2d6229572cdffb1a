// Makes both clients from the description that a server of its own serves, compiles them, and runs their examples against it; then tries the
// guard for Node, and compiles the lines for apps: node scripts/ci/clients.ts [typescript] [java] [guard-node] [react-native]
import { type ChildProcess, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { member, sendJson } from '../../phone/http.ts'
import { createPhone } from '../../phone/v3/virtual-phone.ts'
import { createBank, readApplication } from '../../test/helpers/bank.ts'
import { asksForHelp } from '../command-line.ts'
import { checkGuard } from './guard.ts'
import { type CheckedServer, copyProject, runToEnd, withServer } from './server.ts'
import { checkSnippets } from './snippets.ts'

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

const SETTINGS = {
  PAWL_FIRST_APPLICATION: 'my-app',
  PAWL_WEBHOOK_ALLOW_HTTP: 'true',
  PAWL_WEBHOOK_ALLOW_PRIVATE_ADDRESSES: 'true',
}

if (asksForHelp(process.argv.slice(2))) {
  process.stdout.write(`Makes both clients and runs their examples, tries the guard for Node, and compiles the lines for apps of docs/start:
  node scripts/ci/clients.ts [typescript] [java] [guard-node] [react-native]\n`)
  process.exit(0)
}

/** Checks of their own. */
const OTHERS: Readonly<Record<string, (server: CheckedServer) => Promise<void>>> = {
  'guard-node': checkGuard,
  'react-native': checkSnippets,
}
const known = [...Object.keys(LANGUAGES), ...Object.keys(OTHERS)]
const chosen = process.argv.length > 2 ? process.argv.slice(2) : known

await withServer('clients', SETTINGS, async (server) => {
  const description = (await sendJson(server.url, 'GET', '/openapi.json')).text
  for (const name of chosen) {
    const [check, language] = [OTHERS[name], LANGUAGES[name]]
    if (check !== undefined) {
      await check(server)
      continue
    }
    if (language === undefined) throw new Error(`no client is called ${name}: ${known.join(', ')}`)
    const place = join(server.folder, name)
    await build(name, language, place, description)
    await runExample(name, language, place, server)
    process.stdout.write(`${name}: compiled, and its example ran\n`)
  }
})

async function build(name: string, { build: commands }: Language, place: string, description: string): Promise<void> {
  copyProject(`clients/${name}`, place)
  writeFileSync(join(place, 'openapi.json'), description)
  for (const [command, ...args] of commands) await runToEnd(command, args, place)
}

/** Runs the example, whose lines say when a phone is wanted: `code CODE` and `operation ID`. The phone approves. */
async function runExample(
  name: string,
  { run: [command, ...args] }: Language,
  place: string,
  { url, credential }: CheckedServer,
): Promise<void> {
  const bank = createBank(url, credential)
  const app = readApplication(await bank.call('GET', '/admin/application?id=my-app'))
  const phone = createPhone({ url, app, version: '3.3' })
  const child = spawn(command, args, {
    cwd: place,
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

/** After all that it printed was read, which `exit` does not wait for. */
function endOf(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
}
