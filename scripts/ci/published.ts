// Phones of the published client libraries call the endpoints of the example bank, on Fastify and on Express, which ask a pawl of their own:
// test/published is built in a copy and run: node scripts/ci/published.ts [version...]
import { type ChildProcess, spawn } from 'node:child_process'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import fastify, { type FastifyInstance } from 'fastify'
import { pawlGuard } from '../../clients/guard-node/src/fastify.ts'
import { createBank as createExampleBank } from '../../examples/bank/bank.ts'
import { createBank } from '../../test/helpers/bank.ts'
import { asksForHelp } from '../command-line.ts'
import { type CheckedServer, copyProject, project, readLines, runToEnd, withServer } from './server.ts'

const APPLICATION = 'my-app'
const FOREIGN_APPLICATION = 'foreign-app'

if (asksForHelp(process.argv.slice(2))) {
  process.stdout.write(`Phones of the published client libraries call the endpoints of the example bank, which asks a pawl of its own:
  node scripts/ci/published.ts [version...]\n`)
  process.exit(0)
}

await withServer('published', { PAWL_FIRST_APPLICATION: APPLICATION }, async (server) => {
  const place = join(server.folder, 'published')
  copyProject('test/published', place)
  await runToEnd('mvn', ['--quiet', '--batch-mode', 'package'], place)
  const banks = [await openExample(server), await openOther(server)]
  const onExpress = await openOnExpress(server)
  try {
    const [example, other] = await Promise.all(banks.map((bank) => bank.listen({ host: '127.0.0.1', port: 0 })))
    const [expressUrl] = await readLines(onExpress, 1)
    await runToEnd('java', ['-jar', 'target/pawl-published.jar', ...process.argv.slice(2)], place, {
      PAWL_URL: server.url,
      BANK_API_URL: server.url,
      PAWL_ADMIN: server.credential,
      PAWL_APP: APPLICATION,
      BANK_URL: example,
      OTHER_BANK_URL: other,
      EXPRESS_BANK_URL: expressUrl,
    })
  } finally {
    onExpress.kill()
    for (const bank of banks) await bank.close()
  }
})

/** The example, as `npm run example:bank` starts it. */
async function openExample(server: CheckedServer): Promise<FastifyInstance> {
  return createExampleBank(await takeCredential(server, 'example-bank', []))
}

/** The same endpoints by the built guard for Express, as a process of its own. */
async function openOnExpress(server: CheckedServer): Promise<ChildProcess> {
  const place = join(server.folder, 'guard-node')
  copyProject('clients/guard-node', place)
  cpSync(join(project, 'test/published/express-bank.js'), join(place, 'test/express-bank.js'))
  for (const args of [
    ['ci', '--no-audit', '--no-fund'],
    ['run', 'build'],
  ])
    await runToEnd('npm', args, place)
  const { url, username, password } = await takeCredential(server, 'express-bank', [])
  return spawn(process.execPath, ['test/express-bank.js'], {
    cwd: place,
    env: { ...process.env, PAWL_URL: url, GUARD_USERNAME: username, GUARD_PASSWORD: password },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
}

/** Three other credentials: with the right to open envelopes of phones that are not bound, without it, and of another application. */
async function openOther(server: CheckedServer): Promise<FastifyInstance> {
  const bank = fastify({ forceCloseConnections: true })
  for (const [path, rights] of [
    ['/questions', ['envelopes:application']],
    ['/without-right', []],
  ] as const) {
    await bank.register(async (scope) => {
      await scope.register(pawlGuard, await takeCredential(server, `bank${path.replace('/', '-')}`, rights))
      scope.post<{ Body: { question?: unknown } }>(path, scope.encrypted({ scope: 'APPLICATION' }), async ({ body, pawl }) => ({
        asked: body.question,
        by: pawl?.userId,
      }))
    })
  }
  await createBank(server.url, server.credential).createApplication(FOREIGN_APPLICATION)
  const foreign = await takeCredential(server, 'foreign-bank', [], FOREIGN_APPLICATION)
  await bank.register(
    async (scope) => {
      await scope.register(pawlGuard, foreign)
      const serve = async () => ({ served: true })
      scope.post('/login', scope.requireCode({ resourceId: '/login' }), serve)
      scope.get('/accounts', scope.requireToken({ factors: ['POSSESSION'] }), serve)
      scope.post('/statement', scope.encrypted(), serve)
    },
    { prefix: '/foreign' },
  )
  return bank
}

async function takeCredential(
  { url, credential }: CheckedServer,
  username: string,
  rights: readonly string[],
  application = APPLICATION,
) {
  const admin = createBank(url, credential)
  const made = await admin.call('POST', '/admin/users', { username, role: 'verification', application })
  if (rights.length > 0) await admin.call('PATCH', `/admin/users/${username}`, { rights })
  // A machine that checks is busier than a bank's.
  return { url, username, password: (made.json as { password: string }).password, timeoutMs: 30_000 }
}
