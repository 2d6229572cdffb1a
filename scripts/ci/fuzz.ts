// Sends what schemathesis makes of /openapi.json to a server of its own: no 500, no answer that the document does not know.
//   node scripts/ci/fuzz.ts PATH-OF-SCHEMATHESIS [SECONDS]
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { asksForHelp } from '../command-line.ts'

const CHECKS = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_schema_conformance',
  'response_headers_conformance',
]

if (asksForHelp(process.argv.slice(2))) {
  process.stdout.write(`Sends what schemathesis makes of /openapi.json to a server of its own:
  node scripts/ci/fuzz.ts PATH-OF-SCHEMATHESIS [SECONDS]\n`)
  process.exit(0)
}

const [schemathesis = 'st', seconds = '220'] = process.argv.slice(2)
const project = fileURLToPath(new URL('../..', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'pawl-fuzz-'))
const credential = `admin:${randomBytes(12).toString('hex')}`

const server = spawn(process.execPath, ['bin/pawl.mjs'], {
  cwd: project,
  env: {
    ...process.env,
    PAWL_PORT: '0',
    PAWL_DATA_DIR: join(folder, 'data'),
    PAWL_ADMIN_PASSWORD: credential.slice('admin:'.length),
    PAWL_LOG_LEVEL: 'error',
  },
  stdio: ['ignore', 'pipe', 'inherit'],
})
const ended = new Promise<number | null>((resolve) => server.once('exit', resolve))

try {
  const url = await findUrl()
  // Something to find: without an application nearly everything would end in the same refusal.
  await post(url, '/admin/application', { id: 'my-app' })
  await post(url, '/admin/users', { username: 'bank', role: 'integration', application: 'my-app' })
  await post(url, '/registration', { userId: 'alice' })
  process.exitCode = await fuzz(url)
  // The server must have come through it.
  const answer = await fetch(`${url}/health/ready`)
  if (answer.status !== 200) throw new Error(`after it, /health/ready answers ${answer.status}`)
} catch (error) {
  console.error(`fuzz: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
} finally {
  server.kill('SIGTERM')
  await ended
  rmSync(folder, { recursive: true, force: true })
}

/** The address that the start text names; everything else the server prints is shown. */
function findUrl(): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    server.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
      const [, url] = /^pawl listens on (\S+)$/m.exec(text) ?? []
      if (url !== undefined && text.includes('Create an application:')) resolve(url)
      if (chunk.startsWith('{')) process.stdout.write(chunk)
    })
    void ended.then((code) => reject(new Error(`the server ended with ${code}`)))
  })
}

async function post(url: string, path: string, body: unknown): Promise<void> {
  const headers = { 'content-type': 'application/json', authorization: `Basic ${Buffer.from(credential).toString('base64')}` }
  const answer = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) })
  if (answer.status !== 200) throw new Error(`POST ${path} answers ${answer.status} ${await answer.text()}`)
}

/** Its exit status. A fixed seed, so that a failure comes again. */
function fuzz(url: string): Promise<number> {
  const config = join(folder, 'schemathesis.toml')
  writeFileSync(config, '')
  const args = ['--config-file', config, 'run', `${url}/openapi.json`, '--auth', credential, '--checks', CHECKS.join(',')]
  args.push('--phases', 'examples,coverage,fuzzing', '--max-examples', '20', '--max-time', seconds, '--seed', '1', '--no-color')
  // One worker: with more, Python 3.11 fails now and then when two threads parse at a time ("AST constructor recursion depth mismatch").
  args.push('--generation-database', 'none', '--warnings', 'off', '--suppress-health-check', 'all', '--workers', '1')
  const child = spawn(schemathesis, args, { cwd: folder, stdio: ['ignore', 'inherit', 'inherit'] })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code) => resolve(code ?? 1))
  })
}
