// Makes both clients from the description that a server serves, compiles them, and uses the web back ends that are their examples. Then checks
// the guard for Node, and compiles the lines for apps: node scripts/ci/clients.ts [typescript] [java] [guard-node] [react-native]
import { cpSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sendJson } from '../../phone/http.ts'
import { asksForHelp } from '../command-line.ts'
import { checkBackend } from './backend.ts'
import { checkGuard } from './guard.ts'
import { type CheckedServer, copyProject, project, runToEnd, withServer } from './server.ts'
import { checkSnippets } from './snippets.ts'

interface Language {
  /** The commands of the build, in their order. They run in a copy of the client's folder that has openapi.json. */
  readonly build: readonly (readonly [string, ...string[]])[]
  readonly run: readonly [string, ...string[]]
}

const LANGUAGES: Readonly<Record<string, Language>> = {
  typescript: {
    build: [
      ['npm', 'ci', '--no-audit', '--no-fund'],
      ['npm', 'run', 'generate'],
      ['npm', 'run', 'build'],
      ['npm', 'test'],
    ],
    run: [process.execPath, 'dist/backend.js'],
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
  process.stdout.write(`Makes both clients and uses their examples, tries the guard for Node, and compiles the lines for apps of docs/start:
  node scripts/ci/clients.ts [typescript] [java] [guard-node] [react-native]\n`)
  process.exit(0)
}

/** Checks other than those of clients. */
const OTHERS: Readonly<Record<string, (server: CheckedServer) => Promise<void>>> = {
  'guard-node': checkGuard,
  'react-native': checkSnippets,
}
const known = [...Object.keys(LANGUAGES), ...Object.keys(OTHERS)]
const chosen = process.argv.length > 2 ? process.argv.slice(2) : known

await withServer('clients', SETTINGS, async (server) => {
  const description = (await sendJson(server.url, 'GET', '/openapi.json')).text
  cpSync(join(project, 'examples/backend'), join(server.folder, 'examples/backend'), { recursive: true })
  for (const name of chosen) {
    const [check, language] = [OTHERS[name], LANGUAGES[name]]
    if (check !== undefined) {
      await check(server)
      continue
    }
    if (language === undefined) throw new Error(`no client is called ${name}: ${known.join(', ')}`)
    // The copy is at the same path as in the project, because the examples look for their page relative to it.
    const place = join(server.folder, 'clients', name)
    await build(name, language, place, description)
    await checkBackend(name, language.run, place, server)
    process.stdout.write(`${name}: compiled, and its example was used\n`)
  }
})

async function build(name: string, { build: commands }: Language, place: string, description: string): Promise<void> {
  copyProject(`clients/${name}`, place)
  writeFileSync(join(place, 'openapi.json'), description)
  for (const [command, ...args] of commands) await runToEnd(command, args, place)
}
