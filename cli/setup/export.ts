// Writes a server as a set-up file: everything that apply can set, sorted, without secrets.
import { Fault } from '../fault.ts'
import { formatSeconds } from './plan-application.ts'
import { formatTime } from './plan.ts'
import { describeFault, readTemplate } from './template.ts'
import { API_VERSION, type Setup, type SetupApplication } from './schema.ts'
import { type ServerApplication, type ServerState, type ServerWebhook, splitUrl } from './state.ts'
import { formatYaml } from './yaml.ts'

export interface ExportedSetup {
  readonly setup: Setup
  /** Notes about things that the file cannot hold, and how to bring them to another server. */
  readonly notes: readonly string[]
  /** False where a template is left out that apply would refuse. */
  readonly isWhole: boolean
}

/**
 * Makes the set-up of a server. Throws a Fault when two things have the same name. Where apply would refuse a template, the file has no list of
 * templates, because apply --prune would remove what such a list does not name.
 */
export function exportSetup(state: ServerState): ExportedSetup {
  const notes: string[] = []
  const templates = sorted(state.templates, ({ templateName }) => templateName)
  const isWhole = templates.filter((template) => isTaken(template, notes)).length === templates.length
  if (!isWhole)
    notes.push('the file has no templates, so that apply --prune removes none: pawl template export prints the others')
  const setup: Setup = {
    apiVersion: API_VERSION,
    ...lists({
      applications: sorted(state.applications, ({ id }) => id).map((application) => toApplication(application, notes)),
      texts: sorted(state.texts, ({ messageKey, language }) => `${messageKey}\0${language}`).map(
        ({ messageKey, language, text }) => ({ messageKey, language, text }),
      ),
      templates: isWhole ? templates : [],
      users: sorted(state.users, ({ username }) => username).map(
        ({ username, role, application, expiresAt, rights, allowedAddresses, certificates, isDisabled }) => {
          if (isDisabled) notes.push(`user ${username} is disabled, which is not in the file`)
          return {
            username,
            role,
            ...(application !== undefined && { application }),
            ...(expiresAt !== undefined && { expiresAt: formatTime(expiresAt) }),
            rights: rights.toSorted(),
            allowedAddresses: allowedAddresses.toSorted(),
            certificates: certificates.toSorted(),
          }
        },
      ),
    }),
  } as Setup
  return { setup, notes, isWhole }
}

/** The text of the file. */
export const formatSetup = (setup: Setup): string =>
  `# A set-up file of pawl: pawl apply -f takes it, docs/SETUP-FILE.md describes it.\n${formatYaml(setup)}`

function isTaken(template: ServerState['templates'][number], notes: string[]): boolean {
  const read = readTemplate(template)
  if ('faults' in read)
    notes.push(`template ${template.templateName} is left out, because apply refuses it: ${describeFault(read)}`)
  return 'template' in read
}

function toApplication({ id, name, isDefault, ...application }: ServerApplication, notes: string[]): SetupApplication {
  return {
    id,
    ...(name !== id && { name }),
    ...(isDefault && { isDefault }),
    algorithms: application.algorithms.toSorted(),
    isProtocol3Admitted: application.isProtocol3Admitted,
    minimumProtocolVersion: application.minimumProtocolVersion,
    isMultiDevice: application.isMultiDevice,
    vaultFactors: application.vaultFactors.toSorted(),
    roles: application.roles.toSorted(),
    customObject: application.customObject,
    transfers: application.transfers,
    ...lists({
      versions: sorted(application.versions, (one) => one.name).map((one) => ({ name: one.name, isSupported: one.isSupported })),
      config: sorted(application.config, ({ key, scope }) => `${key}\0${scope}`).map(({ key, scope, value }) => ({
        key,
        scope,
        value,
      })),
      rules: sorted(
        application.rules,
        ({ platform, majorOsVersion }) => `${platform}${String(majorOsVersion ?? '').padStart(9, '0')}`,
      ).map(({ id: _id, ...rule }) => rule),
      domains: toDomains(id, application.domains, notes),
      webhooks: toWebhooks(id, application.webhooks, notes),
      oidcProviders: toOidcProviders(id, application.oidcProviders, notes),
    }),
  } as SetupApplication
}

function toDomains(id: string, domains: ServerApplication['domains'], notes: string[]): SetupApplication['domains'] {
  return sorted(domains, ({ name }) => name).flatMap(({ name, port, certificates }) => {
    if (port !== 443)
      notes.push(`domain ${name} of ${id} is watched at port ${port}, which is not in the file: pawl certificate fetch sets it`)
    const live = certificates.filter(({ isExpired }) => !isExpired)
    if (live.length < certificates.length) notes.push(`pins of ${name} in ${id} have ended: they are left out`)
    if (live.length === 0) return []
    const pins = live.map(({ fingerprint, expires }) => ({ fingerprint, expires: formatSeconds(expires) }))
    return [{ name, certificates: sorted(pins, ({ fingerprint, expires }) => `${expires}\0${fingerprint}`) }]
  })
}

function toWebhooks(id: string, webhooks: readonly ServerWebhook[], notes: string[]): SetupApplication['webhooks'] {
  const names = new Set<string>()
  return sorted(webhooks, ({ kind, name }) => `${kind}\0${name}`).map(
    ({ kind, name, url, attributes, isEnabled, basicUsername, ...rest }) => {
      const what = `webhook ${kind} ${name} of ${id}`
      if (names.has(what))
        throw new Fault(
          'refused',
          `there are several of the name ${what}: pawl webhook change ${rest.id} --name gives one another`,
        )
      names.add(what)
      const { shown, query } = splitUrl(url)
      if (query !== '')
        notes.push(`${what}: the query of its URL may be secret and is not in the file: pawl webhook change --to sets it`)
      if (basicUsername !== undefined)
        notes.push(`${what}: the password of ${basicUsername} is not in the file: pawl webhook change --user-file sets it`)
      return { kind, name, url: shown, attributes: attributes.toSorted(), isEnabled }
    },
  )
}

function toOidcProviders(
  id: string,
  providers: ServerApplication['oidcProviders'],
  notes: string[],
): SetupApplication['oidcProviders'] {
  return sorted(providers, ({ providerId }) => providerId).map(
    ({ hasCredentials, scopes = [], algorithms = [], flags = [], ...one }) => {
      if (hasCredentials)
        notes.push(
          `OpenID provider ${one.providerId} of ${id}: what its client shows is not in the file: pawl oidc set --secret-file or --key-file sets it`,
        )
      return { ...one, scopes: scopes.toSorted(), algorithms: algorithms.toSorted(), flags: flags.toSorted() }
    },
  )
}

/** The members whose list is not empty. */
const lists = <T extends Readonly<Record<string, readonly unknown[] | undefined>>>(all: T): Partial<T> =>
  Object.fromEntries(Object.entries(all).filter(([, list]) => list !== undefined && list.length > 0)) as Partial<T>

/** Sorts by code units, which do not depend on a locale. */
const sorted = <T>(items: readonly T[], keyOf: (item: T) => string): T[] =>
  items.toSorted((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1))
