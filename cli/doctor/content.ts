// Finds things in a database that will soon stop working. The caller reads the input from the tables, or from the server that has them.
import { explainFault } from '../fault.ts'
import { type Finding, fault, type Instruments, judgeEnd, ok, warning } from './finding.ts'

export interface Pin {
  readonly app: string
  readonly domain: string
  readonly expiresAt: Date
  /** The reason why apps do not find the pin under its domain. */
  readonly warning?: string | undefined
}

export interface Receiver {
  readonly id: string
  readonly name: string
  readonly url: string
  readonly isEnabled: boolean
  /** The reason why pawl itself switched the webhook off. */
  readonly disabledReason?: string | undefined
  /** The number of deliveries that pawl gave up. */
  readonly dead: number
}

/** An OpenID provider of an application. */
export interface LoginProvider {
  readonly app: string
  readonly providerId: string
  readonly issuer: string
}

export interface Holder {
  readonly username: string
  readonly rights?: readonly string[]
}

/** Whether there is an application, and which domains are about to be without a pinned certificate. `now`: milliseconds since 1970. */
export function judgeApplications(applications: readonly string[], pins: readonly Pin[], now: number): readonly Finding[] {
  if (applications.length === 0)
    return [warning('applications', 'there is no application', 'pawl app create my-app'), ok('certificates', 'none is pinned')]
  // A domain is in trouble when its last certificate ends.
  const domains = Map.groupBy(pins, ({ app, domain }) => JSON.stringify([app, domain]))
  const ends = [...domains.values()].map((list) => list.reduce((a, b) => (a.expiresAt > b.expiresAt ? a : b)))
  const late = ends.map((pin) => judgeLast(pin, now)).filter(({ state }) => state !== 'ok')
  return [
    ok('applications', applications.length === 1 ? 'there is one' : `there are ${applications.length}`),
    ...(late.length === 0 ? [ok('certificates', sayPinned(pins.length, domains.size))] : []),
    ...pins
      .filter(({ warning: why }) => why !== undefined)
      .map(({ app, domain, warning: why }) =>
        warning(
          'certificates',
          `the pin of ${domain} (${app}) is not found: ${why}`,
          'pin the certificate under its common name',
        ),
      ),
    ...late,
  ]
}

const sayPinned = (pins: number, domains: number): string =>
  `${pins === 1 ? 'one is' : `${pins} are`} pinned, for ${domains === 1 ? 'one domain' : `${domains} domains`}`

function judgeLast({ app, domain, expiresAt: endsAt }: Pin, now: number): Finding {
  const says = `the last pinned certificate of ${domain} (${app}) ends ${endsAt.toISOString()}`
  const todo = /^[\w.-]+$/.test(domain)
    ? `pawl certificate fetch ${domain} --app ${app} pins the one that it shows now`
    : `pawl certificate add-pem '${domain}' FILE --app ${app} pins the next one`
  return judgeEnd('certificates', says, todo, { endsAt, now })
}

/** Finds credentials with rights beyond their role. Whoever has such a credential can read what phones send to pawl. */
export function judgeRights(holders: readonly Holder[]): Finding {
  const said = [...RIGHTS].flatMap(([right, does]) => {
    const names = holders.filter(({ rights = [] }) => rights.includes(right)).map(({ username }) => username)
    return names.length === 0 ? [] : [`${does}: ${names.join(', ')}`]
  })
  return ok('rights', said.length === 0 ? 'no credential may derive keys or open envelopes of an application' : said.join('; '))
}

const RIGHTS: ReadonlyMap<string, string> = new Map([
  ['keys:derive', 'who may derive keys'],
  ['envelopes:application', 'who may open envelopes of an application'],
])

/** Finds webhooks that are switched off, have given up deliveries, or have a receiver that takes no connection from here. */
export async function judgeWebhooks(webhooks: readonly Receiver[], { connect }: Instruments): Promise<readonly Finding[]> {
  if (webhooks.length === 0) return [ok('webhooks', 'there are none')]
  return (await Promise.all(webhooks.map((webhook) => judgeWebhook(webhook, connect)))).flat()
}

async function judgeWebhook(
  { id, name, url, isEnabled, disabledReason, dead }: Receiver,
  connect: Instruments['connect'],
): Promise<readonly Finding[]> {
  const which = `${JSON.stringify(name)} (${id})`
  if (!isEnabled && disabledReason !== undefined)
    return [
      fault(
        'webhooks',
        `${which} was switched off: ${disabledReason}`,
        `mend the receiver, then pawl webhook change ${id} --enabled`,
      ),
    ]
  if (!isEnabled) return [ok('webhooks', `${which} is switched off`)]
  const lost = dead === 0 ? [] : [warning('webhooks', `${which}: ${dead} deliveries were given up`, `pawl webhook replay ${id}`)]
  // The API shows a credential that may only read an empty text in place of such an address.
  if (!URL.canParse(url))
    return [...lost, fault('webhooks', `${which} has no address: ${ALTERED}`, `pawl webhook change ${id} --to gives it one`)]
  const target = new URL(url)
  try {
    await connect(target)
    return lost.length === 0 ? [ok('webhooks', `${which} takes connections`)] : lost
  } catch (error) {
    const says = `${which}: ${target.hostname} takes no connection (${explainFault(error)})`
    return [...lost, fault('webhooks', says, 'start the receiver, or let this machine reach it')]
  }
}

const ALTERED = 'somebody altered it in the database'

/** Finds OpenID providers that take no connection from here. */
export async function judgeLogins(providers: readonly LoginProvider[], { connect }: Instruments): Promise<readonly Finding[]> {
  if (providers.length === 0) return [ok('logins', 'there are no OpenID providers')]
  return Promise.all(
    providers.map(async ({ app, providerId, issuer }) => {
      if (!URL.canParse(issuer)) {
        const todo = `pawl oidc set ${providerId} --app ${app} stores it again: until then no phone is bound by its login`
        return fault('logins', `${providerId} of ${app} has no issuer: ${ALTERED}`, todo)
      }
      const target = new URL(issuer)
      try {
        await connect(target)
        return ok('logins', `${providerId} of ${app} takes connections`)
      } catch (error) {
        const says = `${providerId} of ${app}: ${target.hostname} takes no connection (${explainFault(error)})`
        return fault('logins', says, 'let this machine reach the provider: until then no phone is bound by its login')
      }
    }),
  )
}
