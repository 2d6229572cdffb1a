// Starts the example bank beside a running pawl: `npm run example:bank`. It gets a credential of its own with the one of `pawl login`.
import { type Bank, openBank } from '../../cli/bank.ts'
import { createBank } from './bank.ts'

const USERNAME = 'example-bank'

/** Creates the credential, or gives it a new password, because the example stores none. Returns the password. */
async function takeCredential(pawl: Bank): Promise<string> {
  const { users } = (await pawl.call('GET', '/admin/users')) as { users: { username: string }[] }
  const { applications } = (await pawl.call('GET', '/admin/applications')) as {
    applications: { id: string; isDefault: boolean }[]
  }
  const application = applications.find(({ isDefault }) => isDefault)?.id
  if (application === undefined) throw new Error('there is no application yet: npm run demo makes one')
  const answer = users.some(({ username }) => username === USERNAME)
    ? await pawl.call('POST', `/admin/users/${USERNAME}/password`, {})
    : await pawl.call('POST', '/admin/users', { username: USERNAME, role: 'verification', application })
  return (answer as { password: string }).password
}

try {
  const pawl = openBank({ url: undefined, admin: undefined, adminFile: undefined }, { env: process.env })
  const bank = await createBank({ url: pawl.url, username: USERNAME, password: await takeCredential(pawl) })
  const address = await bank.listen({ host: '127.0.0.1', port: Number(process.env['BANK_PORT'] ?? 8090) })
  process.stdout.write(`The example bank listens on ${address}\nIt asks pawl at ${pawl.url} as ${USERNAME}.\n`)
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void bank.close())
} catch (error) {
  process.stderr.write(`the example bank cannot start: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}
