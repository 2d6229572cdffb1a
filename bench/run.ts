// Runs npm run bench [-- KIND] [OPTIONS]: without a kind it measures the cost of requests over HTTP.
import { explainFault } from '../cli/fault.ts'
import { asksForHelp } from '../scripts/command-line.ts'
import { closeAll } from './http/closing.ts'

const KINDS: Readonly<Record<string, () => Promise<unknown>>> = {
  http: () => import('./http.ts'),
  strangers: () => import('./strangers.ts'),
  doors: () => import('./doors.ts'),
  growth: () => import('./growth.ts'),
  processes: () => import('./processes.ts'),
}
const USAGE = `What each kind of request costs over real HTTP, in processor time and in time:
  npm run bench                                   PostgreSQL in a temporary folder; DATABASE_URL names another one
  npm run bench -- --embedded                     the embedded database
  npm run bench -- --works validate,status        only works whose name holds one of the words
  npm run bench -- --pair REVISION                windows of this checkout and of another revision in turns, and their ratio
  npm run bench -- --pair FOLDER                  the same with another checkout, its packages installed
  npm run bench -- --phones 1000 --clients 16 --windows 5 --seconds 2 --warm-up 1 --json FILE
The client shares the machine with the server, so compare processor time, and only within one run.
  npm run bench -- strangers                      requests that nobody proved anything for, and what users notice of them
  npm run bench -- strangers --works keystore     only requests whose name holds one of the words
  npm run bench -- strangers --works sockets      only what one address with 2,500 sockets takes from others, also through HAProxy
  npm run bench -- doors                          doors beside validate: processor time, statements, longest turns, times of refusals
  npm run bench -- doors --works code,KiB         only what holds one of the words in its name
  npm run bench -- doors --phones 64 --clients 16 --windows 7 --seconds 2 --warm-up 4 --requests 300
  npm run bench -- growth                         a large database in proportion to a small one
  npm run bench -- growth --activations 1000000 --operations 2000000 --audit 5000000 --phones 1000 --small-phones 1000
  npm run bench -- processes                      what a second process behind the same port brings
  npm run bench -- processes --asleep             the same while the client sleeps, with the rate
  npm run bench -- processes --quota 0.3          the same with a share of a processor for each process (root, cgroup v1), with the rate`

const [kind = ''] = process.argv.slice(2)
const isNamed = kind !== '' && !kind.startsWith('-')
const run = KINDS[isNamed ? kind : 'http']

if (asksForHelp(process.argv.slice(2))) process.stdout.write(`${USAGE}\n`)
else if (run === undefined) fail(`no benchmark is called ${kind}: ${Object.keys(KINDS).join(', ')}`)
else {
  if (isNamed) process.argv.splice(2, 1)
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void closeAll().finally(() => process.exit(1)))
  await run().catch((error: unknown) => fail(explainFault(error)))
  await closeAll()
}

function fail(problem: string): void {
  process.stderr.write(`${problem}\n`)
  process.exitCode = 1
}
