// Finds things that a set-up file has twice, because nobody can say which of them is meant.
import type { Setup } from './schema.ts'
import type { Path } from './yaml.ts'

interface Repeated {
  readonly path: Path
  readonly problem: string
}

/** Returns each repeated thing, with the place of the first one. */
export function findRepeated({ applications = [], texts = [], templates = [], users = [] }: Setup): readonly Repeated[] {
  const found: Repeated[] = []
  const once = <T>(items: readonly T[], at: Path, nameOf: (item: T, index: number) => string, member: string): void => {
    const first = new Map<string, number>()
    for (const [index, item] of items.entries()) {
      const name = nameOf(item, index)
      const before = first.get(name)
      if (before === undefined) first.set(name, index)
      else found.push({ path: [...at, index, member], problem: `${name} stands at [${before}] already: keep one of them` })
    }
  }
  once(applications, ['applications'], ({ id }) => id, 'id')
  once(
    applications,
    ['applications'],
    ({ isDefault }, index) => (isDefault ? 'the default application' : String(index)),
    'isDefault',
  )
  for (const [index, application] of applications.entries()) {
    const at = ['applications', index]
    const { versions = [], config = [], rules = [], domains = [], webhooks = [], oidcProviders = [] } = application
    once(versions, [...at, 'versions'], ({ name }) => name, 'name')
    once(config, [...at, 'config'], ({ key, scope = 'APPLICATION' }) => `${key} in ${scope}`, 'key')
    once(rules, [...at, 'rules'], ({ platform, majorOsVersion = 'any version' }) => `${platform} ${majorOsVersion}`, 'platform')
    once(domains, [...at, 'domains'], ({ name }) => name, 'name')
    for (const [place, { certificates }] of domains.entries())
      once(certificates, [...at, 'domains', place, 'certificates'], ({ fingerprint }) => fingerprint, 'fingerprint')
    once(oidcProviders, [...at, 'oidcProviders'], ({ providerId }) => providerId, 'providerId')
    once(webhooks, [...at, 'webhooks'], ({ kind, name }) => `${kind} ${name}`, 'name')
  }
  once(texts, ['texts'], ({ messageKey, language }) => `${messageKey} in ${language}`, 'messageKey')
  once(templates, ['templates'], ({ templateName }) => templateName, 'templateName')
  once(users, ['users'], ({ username }) => username, 'username')
  return found
}
