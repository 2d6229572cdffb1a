// A first verified request: binds a virtual phone to a user of a running server and prints a signed request as a curl command.
//   npm run demo -- --admin admin:PASSWORD [--url http://127.0.0.1:8080] [--application demo] [--algorithm EC_P384]
// The phone speaks 3.3, or 4.0 in the algorithm that is given.
import { parseArgs } from 'node:util'
import { createBank } from '../test/helpers/bank.ts'
import type { HttpReply } from '../phone/http.ts'
import { PHONE_ALGORITHMS } from '../phone/v4-crypto.ts'
import { openPhonesV4 } from '../test/helpers/world-v4.ts'
import { openWorld } from '../test/helpers/world.ts'

const { values } = parseArgs({
  options: {
    admin: { type: 'string' },
    url: { type: 'string', default: 'http://127.0.0.1:8080' },
    application: { type: 'string' },
    algorithm: { type: 'string' },
  },
})
const { admin, url } = values
if (admin === undefined) throw new Error('--admin USER:PASSWORD is needed: the credential that the first start printed')

const algorithm = PHONE_ALGORITHMS.find((name) => name === values.algorithm)
if (values.algorithm !== undefined && algorithm === undefined)
  throw new Error(`--algorithm must be one of ${PHONE_ALGORITHMS.join(', ')}`)

const print = (line: string): void => {
  process.stdout.write(`${line}\n`)
}

const world = await openWorld(
  { urls: [url], admin, advance: () => undefined, close: async () => undefined },
  await chooseApplication(),
)
const bound = algorithm === undefined ? await world.activePhone('3.3') : await (await openPhonesV4(world)).activePhone(algorithm)
const { userId, phone } = bound
print(`User ${userId} is bound to activation ${phone.state.activationId}.`)
const request = phone.prepareValidation({ body: '{"amount":"100","currency":"EUR"}' })
print('This request is signed with possession and knowledge. Paste it twice: the first is verified, the second is refused.\n')
const headers = Object.entries({ 'Content-Type': 'application/json', ...request.headers }).map(
  ([name, value]) => `-H '${name}: ${value}'`,
)
print(`curl -X POST ${url}${request.path} ${headers.join(' ')} -d '${Buffer.from(request.body).toString()}'`)

/** The administrator acts on the default application: the given one, else the server's default, else a first one called demo. */
async function chooseApplication(): Promise<string> {
  if (values.application !== undefined) return values.application
  const reply: HttpReply = await createBank(url, admin).call('GET', '/admin/applications')
  if (reply.status !== 200) throw new Error(`GET /admin/applications: HTTP ${reply.status} ${reply.text}`)
  const { applications } = reply.json as { applications: { id: string; isDefault: boolean }[] }
  return applications.find(({ isDefault }) => isDefault)?.id ?? 'demo'
}
