// Checks the guard for Node as a project gets it: builds, tests and packs it, installs it into an empty project, and calls it there with phones.
import { spawn } from 'node:child_process'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { send } from '../../phone/http.ts'
import { bindPhone, type CheckedServer, copyProject, createVerifier, readLines, runToEnd } from './server.ts'

/** A program that is compiled with the types of the package and then run: a bank on each framework. It prints their addresses. */
const USE = `import express from 'express'
import fastify from 'fastify'
import { createExpressGuard } from 'pawl-guard/express'
import { pawlGuard } from 'pawl-guard/fastify'

const options = { url: process.env['PAWL_URL'] ?? '', username: 'guard', password: process.env['GUARD_PASSWORD'] ?? '' }
const app = fastify()
await app.register(pawlGuard, options)
app.post('/transfer', app.requireCode({ resourceId: '/transfer' }), async ({ pawl }) => ({ userId: pawl?.userId }))
app.post('/statement', app.encrypted(), async ({ pawl, body }) => ({ userId: pawl?.userId, body }))
const guard = createExpressGuard(options)
const other = express()
other.post('/transfer', guard.requireCode({ resourceId: '/transfer' }), (request, response) => {
  response.json({ userId: request.pawl?.userId })
})
other.post('/statement', guard.encrypted(), (request, response) => {
  response.json({ userId: request.pawl?.userId, body: request.body })
})
console.log(await app.listen({ host: '127.0.0.1', port: 0 }))
const server = other.listen(0, '127.0.0.1', () => {
  const address = server.address()
  console.log(\`http://127.0.0.1:\${typeof address === 'object' ? address?.port : ''}\`)
})
`

/** Throws at the first fault. */
export async function checkGuard(server: CheckedServer): Promise<void> {
  const place = join(server.folder, 'guard-node')
  copyProject('clients/guard-node', place)
  for (const args of [['ci', '--no-audit', '--no-fund'], ['run', 'build'], ['test'], ['pack']]) await runToEnd('npm', args, place)
  const packed = readdirSync(place).find((name) => name.endsWith('.tgz')) ?? ''
  const use = join(server.folder, 'guard-use')
  mkdirSync(use)
  writeFileSync(join(use, 'package.json'), JSON.stringify({ name: 'use', private: true, type: 'module' }))
  writeFileSync(join(use, 'use.ts'), USE)
  const packages = ['fastify@5.12.8', 'express@5.3.0', '@types/express@5.0.6', '@types/node@22.19.1', 'typescript@5.9.3']
  await runToEnd('npm', ['install', '--no-audit', '--no-fund', join(place, packed), ...packages], use)
  await runToEnd(
    'npx',
    ['tsc', '--strict', '--exactOptionalPropertyTypes', '--module', 'nodenext', '--target', 'es2022', 'use.ts'],
    use,
  )
  await callBanks(server, use)
  process.stdout.write('guard-node: packed, installed and used\n')
}

async function callBanks(server: CheckedServer, use: string): Promise<void> {
  const password = await createVerifier(server, 'guard')
  const { phone, userId } = await bindPhone(server)
  const env = { ...process.env, PAWL_URL: server.url, GUARD_PASSWORD: password }
  const child = spawn(process.execPath, ['use.js'], { cwd: use, env, stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    for (const address of await readLines(child, 2)) {
      const signed = phone.prepareSigned({ path: '/transfer', resourceId: '/transfer', body: '{"amount":1}' })
      const sealed = await phone.prepareEncrypted('/statement', { plaintext: '{"month":"2026-11"}' })
      const replies = [await send(address, signed), await send(address, signed), await send(address, sealed)]
      const [first, again, statement] = replies
      const said = replies.map(({ status, text }) => `${status} ${text}`).join('\n')
      if (first?.status !== 200 || again?.status !== 401 || statement?.status !== 200) throw new Error(said)
      const opened = JSON.stringify(sealed.open(statement))
      if (opened !== JSON.stringify({ userId, body: { month: '2026-11' } }))
        throw new Error(`an answer was sealed wrong: ${opened}`)
    }
  } finally {
    child.kill()
  }
}
