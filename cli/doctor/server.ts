// Examines an embedded database through the server that has it open. Its start has proved some points; a credential reads the others.
import { type Bank, openBank } from '../bank.ts'
import { bankUrl } from '../environment.ts'
import { explainFault } from '../fault.ts'
import { toPath } from '../query.ts'
import {
  type Holder,
  judgeApplications,
  judgeLogins,
  judgeRights,
  judgeWebhooks,
  type LoginProvider,
  type Pin,
  type Receiver,
} from './content.ts'
import { type Finding, type Instruments, ok, skipped } from './finding.ts'

/** Asks the server of this environment with the credential of PAWL_ADMIN or of `pawl login`. */
export async function examineThroughServer(instruments: Instruments): Promise<readonly Finding[]> {
  return [
    ok('database', 'a server has the embedded database'),
    ok('clock', 'the embedded database has the clock of this machine'),
    ok('migrations', 'the server that runs brought the schema up to date when it started'),
    ok('keys', 'the server that runs has opened the database with its key'),
    ok('records', 'the server that runs binds sealed records to their users, if any are left'),
    ...(await examineContent(instruments)),
  ]
}

async function examineContent(instruments: Instruments): Promise<readonly Finding[]> {
  try {
    const { env } = instruments
    const bank = openBank({ url: bankUrl(env), admin: undefined, adminFile: undefined }, { env })
    const { applications } = await bank.call<{ applications: readonly { id: string }[] }>('GET', '/admin/applications')
    const ids = applications.map(({ id }) => id)
    const pins = (await Promise.all(ids.map((id) => readPins(bank, id)))).flat()
    const { webhooks } = await bank.call<{ webhooks: readonly Receiver[] }>('GET', '/admin/webhooks')
    const { users } = await bank.call<{ users: readonly Holder[] }>('GET', '/admin/users')
    const applicationsAndPins = judgeApplications(ids, pins, instruments.now())
    const logins = (await Promise.all(ids.map((id) => readProviders(bank, id)))).flat()
    return [
      judgeRights(users),
      ...applicationsAndPins,
      ...(await judgeWebhooks(webhooks, instruments)),
      ...(await judgeLogins(logins, instruments)),
    ]
  } catch (error) {
    const why = `the server that has the database does not tell (${explainFault(error)})`
    return ['rights', 'applications', 'certificates', 'webhooks', 'logins'].map((check) => skipped(check, why))
  }
}

async function readPins(bank: Bank, app: string): Promise<readonly Pin[]> {
  const { domains } = await bank.call<{
    domains: readonly { name: string; certificates: readonly { expires: number; warning?: string }[] }[]
  }>('GET', toPath`/admin/apps/${app}`)
  return domains.flatMap(({ name, certificates }) =>
    certificates.map(({ expires, warning }) => ({ app, domain: name, expiresAt: new Date(expires * 1000), warning })),
  )
}

async function readProviders(bank: Bank, app: string): Promise<readonly LoginProvider[]> {
  const path = toPath`/admin/applications/${app}/oidc-providers`
  const { providers } = await bank.call<{ providers: readonly Omit<LoginProvider, 'app'>[] }>('GET', path)
  return providers.map(({ providerId, issuer }) => ({ app, providerId, issuer }))
}
