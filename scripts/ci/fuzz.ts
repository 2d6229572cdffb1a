// Sends requests that schemathesis makes from /openapi.json to a server, and fails on a 500, or on an answer that the document does not have.
//   node scripts/ci/fuzz.ts PATH-OF-SCHEMATHESIS [SECONDS]
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { asksForHelp } from '../command-line.ts'
import { type CheckedServer, withServer } from './server.ts'

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

await withServer('fuzz', {}, async (server) => {
  // Without an application, nearly every request would end in the same refusal.
  await post(server, '/admin/application', { id: 'my-app' })
  await post(server, '/admin/users', { username: 'bank', role: 'integration', application: 'my-app' })
  await post(server, '/registration', { userId: 'alice' })
  process.exitCode = await fuzz(server)
  // The server must still serve.
  const answer = await fetch(`${server.url}/health/ready`)
  if (answer.status !== 200) throw new Error(`after it, /health/ready answers ${answer.status}`)
})

async function post({ url, credential }: CheckedServer, path: string, body: unknown): Promise<void> {
  const headers = { 'content-type': 'application/json', authorization: `Basic ${Buffer.from(credential).toString('base64')}` }
  const answer = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) })
  if (answer.status !== 200) throw new Error(`POST ${path} answers ${answer.status} ${await answer.text()}`)
}

/** Runs schemathesis, and returns its exit status. The seed is fixed, so that a failure repeats. */
function fuzz({ url, credential, folder }: CheckedServer): Promise<number> {
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
