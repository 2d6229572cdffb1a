// Has phones of the published client libraries call the endpoints of the example bank, on Fastify and on Express, which ask a pawl of this check.
// Builds test/published in a copy and runs it: node scripts/ci/published.ts [version...] [devices]
import { type ChildProcess, spawn } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fastify, { type FastifyInstance } from 'fastify'
import { pawlGuard } from '../../clients/guard-node/src/fastify.ts'
import { createBank as createExampleBank } from '../../examples/bank/bank.ts'
import { createBank } from '../../test/helpers/bank.ts'
import { createSearch, createSecrets, type Search } from '../../test/helpers/secret-search.ts'
import { asksForHelp } from '../command-line.ts'
import { type CheckedServer, copyProject, project, readLines, runToEnd, withServer } from './server.ts'

const APPLICATION = 'my-app'
const FOREIGN_APPLICATION = 'foreign-app'
/** Classes of the client library 2.x. */
const CLIENTS = 'v3.PowerAuthRestClient,v4.PowerAuthRestClient'

if (asksForHelp(process.argv.slice(2))) {
  process.stdout.write(`Phones of the published client libraries call the endpoints of the example bank, which asks a pawl of its own:
  node scripts/ci/published.ts [version...] [devices]
The group devices, several phones of one user and phones that a login binds, needs no bank.\n`)
  process.exit(0)
}

/** Texts of bodies and answers, which are sent plain or encrypted. */
const SENT = [
  'můj telefon',
  'Dovolená',
  'Máte hypotéky?',
  '"month":"2026-11"',
  '"text":"Salary"',
  'Current account',
  '"to":"Bob"',
]

const names = process.argv.slice(2)

if (names.length > 0 && names.every((name) => name === 'devices')) await runDevices()
else
  await withServer('published', { PAWL_FIRST_APPLICATION: APPLICATION, PAWL_REFERENCE_API: 'true' }, async (server) => {
    const place = join(server.folder, 'published')
    copyProject('test/published', place)
    for (const folder of [place, join(place, 'spring'), join(place, 'client')]) await build(folder)
    const banks = [await openExample(server), await openOther(server)]
    const onExpress = await openOnExpress(server)
    const reference = await takeReference(server)
    const springBanks = await Promise.all([
      startJava(join(place, 'spring/target/pawl-published-spring.jar'), { ...reference, SERVER_PORT: '0' }),
      startJava(join(place, 'client/target/pawl-published-client.jar'), { ...reference, CLIENTS }),
    ])
    try {
      const [spring, clients] = springBanks.map(({ url }) => url)
      const [example, other] = await Promise.all(banks.map((bank) => bank.listen({ host: '127.0.0.1', port: 0 })))
      const [expressUrl] = await readLines(onExpress, 1)
      await runPhones(place, {
        PAWL_URL: server.url,
        BANK_API_URL: server.url,
        PAWL_ADMIN: server.credential,
        PAWL_APP: APPLICATION,
        OTHER_APP: FOREIGN_APPLICATION,
        BANK_URL: example,
        OTHER_BANK_URL: other,
        EXPRESS_BANK_URL: expressUrl,
        SPRING_URL: spring,
        CLIENTS_URL: clients,
      })
      searchData(join(server.folder, 'data'))
    } finally {
      onExpress.kill()
      for (const bank of [...banks, ...springBanks]) await bank.close()
    }
  })

function build(folder: string): Promise<void> {
  return runToEnd('mvn', ['--quiet', '--batch-mode', 'package'], folder)
}

/** Runs the phones, with the settings of every group. */
async function runPhones(place: string, settings: NodeJS.ProcessEnv): Promise<void> {
  // Loaded here, because the provider's package prints at its import, and --help must print nothing but the help.
  const { withDesk } = await import('./desk.ts')
  await withDesk((more) => runToEnd('java', ['-jar', 'target/pawl-published.jar', ...names], place, { ...settings, ...more }))
}

/** Runs the group `devices`, which has a pawl of its own, and calls no bank. */
async function runDevices(): Promise<void> {
  const place = mkdtempSync(join(tmpdir(), 'pawl-published-'))
  try {
    copyProject('test/published', place)
    await build(place)
    await runPhones(place, {})
  } finally {
    rmSync(place, { recursive: true, force: true })
  }
}

/** Throws when pawl's files contain texts of bodies or answers. They must contain user names, which shows that the search works. */
function searchData(folder: string): void {
  const [sent, users] = [createSecrets(), createSecrets()]
  for (const text of SENT) sent.addText(text, text)
  users.addText('a user', 'published-')
  const [searchSent, searchUsers] = [sent, users].map((one) => createSearch(one.list())) as [Search, Search]
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  const contents = files.map(({ parentPath, name }) => [name, readFileSync(join(parentPath, name))] as const)
  const found = contents.flatMap(([name, content]) => searchSent(name, content))
  if (found.length > 0) throw new Error(`pawl stores what it was only to look at: ${found.join(', ')}`)
  if (!contents.some(([name, content]) => searchUsers(name, content).length > 0)) throw new Error('the data of pawl has no user')
  process.stdout.write(`published: nothing of the bank in ${files.length} files of pawl\n`)
}

/** The settings by which the reference's published clients find pawl, with a credential that has all rights. */
async function takeReference(server: CheckedServer): Promise<NodeJS.ProcessEnv> {
  const rights = ['keys:derive', 'envelopes:application']
  const { url, username, password } = await takeCredential(server, 'spring-bank', rights, APPLICATION, 'integration')
  return { REFERENCE_URL: `${url}/rest`, REFERENCE_TOKEN: username, REFERENCE_SECRET: password }
}

/** Starts a program that prints its address, and ends when its input ends. */
async function startJava(
  jar: string,
  env: NodeJS.ProcessEnv,
): Promise<{ readonly url: string; readonly close: () => Promise<void> }> {
  const child = spawn('java', ['-jar', jar], { env: { ...process.env, ...env }, stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const url = await new Promise<string>((resolve, reject) => {
    let text = ''
    child.once('error', reject).once('exit', (code) => reject(new Error(`${jar} ended with ${String(code)}: ${text}`)))
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
      const [, found] = /^bank listens on (\S+)$/m.exec(text) ?? []
      if (found !== undefined) resolve(found)
    })
  })
  const close = async (): Promise<void> => {
    child.stdin.end()
    await ended
  }
  return { url, close }
}

/** Opens the example bank, as `npm run example:bank` starts it. */
async function openExample(server: CheckedServer): Promise<FastifyInstance> {
  return createExampleBank(await takeCredential(server, 'example-bank', []))
}

/** Starts a process with the same endpoints on the built guard for Express. */
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

/** Opens endpoints of three other credentials: one may open envelopes of unbound phones, one may not, one is of another application. */
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
  role = 'verification',
) {
  const admin = createBank(url, credential)
  const made = await admin.call('POST', '/admin/users', { username, role, application })
  if (rights.length > 0) await admin.call('PATCH', `/admin/users/${username}`, { rights })
  // The time limit is long, because the machine of a check is busier than a bank's.
  return { url, username, password: (made.json as { password: string }).password, timeoutMs: 30_000 }
}
