// Plans the steps that make an application of a server equal to that of a set-up file: settings, versions, items, rules and pins.
import { Fault } from '../fault.ts'
import { toPath, toQuery } from '../query.ts'
import type { SetupApplication, SetupRule } from './schema.ts'
import type { ServerApplication } from './state.ts'
import { bodyOf, type Draft, findDifferences, findRest, noApplication } from './step.ts'
import type { Path } from './yaml.ts'

const SETTINGS = [
  'isDefault',
  'algorithms',
  'isProtocol3Admitted',
  'minimumProtocolVersion',
  'isMultiDevice',
  'vaultFactors',
  'roles',
  'customObject',
]

/** The versions of a new application. */
const NEW_VERSIONS: ServerApplication['versions'] = [{ name: 'default', isSupported: true }]

/** An application of the file, and the server's application with the same id, if any. */
export interface Pair {
  readonly file: SetupApplication
  readonly path: Path
  readonly server: ServerApplication | undefined
}

/** Adds the steps for an application, other than those for transfers, webhooks and providers. `now`: milliseconds since 1970. */
export function planApplication(draft: Draft, pair: Pair, now: number): void {
  planSettings(draft, pair)
  planVersions(draft, pair)
  planItems(draft, pair)
  planRules(draft, pair)
  planPins(draft, pair, now)
}

function planSettings(draft: Draft, { file, path, server }: Pair): void {
  const { id, name } = file
  // The server always adds these factors to those that open the vault.
  const given = {
    ...file,
    ...(file.vaultFactors && { vaultFactors: [...new Set([...file.vaultFactors, 'POSSESSION_KNOWLEDGE'])] }),
  }
  const what = `application ${id}`
  const change = toPath`/admin/applications/${id}`
  if (server === undefined) {
    const settings = findDifferences(SETTINGS, given)
    draft.steps.push({
      sign: '+',
      what,
      path,
      differences: [...findDifferences(['name'], file), ...settings],
      run: async (bank) => {
        if (name === undefined) await bank.call('POST', '/admin/application', { id })
        else await bank.call('POST', '/admin/apps', { name: id, displayName: name })
        if (settings.length > 0) await bank.call('PATCH', change, bodyOf(settings))
      },
    })
    return
  }
  if (name !== undefined && name !== server.name)
    draft.conflicts.push({
      path: [...path, 'name'],
      kind: 'refused',
      problem: `the server calls the application ${JSON.stringify(server.name)}, which stays as it is: write that, or leave name out`,
    })
  const differences = findDifferences(SETTINGS, given, { ...server })
  if (differences.length === 0) return
  const run: Draft['steps'][number]['run'] = (bank) => bank.call('PATCH', change, bodyOf(differences))
  draft.steps.push({ sign: '~', what, path, differences, run })
}

/** Adds the step for transfers, which comes after all applications exist. `known`: ids of the applications of file and server. */
export function planTransfers(draft: Draft, { file, path, server }: Pair, known: ReadonlySet<string>): void {
  const differences = findDifferences(['transfers'], file, { transfers: server?.transfers ?? [] })
  if (differences.length === 0) return
  for (const [index, { targets }] of (file.transfers ?? []).entries())
    for (const [place, target] of targets.entries()) {
      if (known.has(target)) continue
      const at = [...path, 'transfers', index, 'targets', place]
      draft.conflicts.push({ path: at, kind: 'missing', problem: noApplication(target) })
    }
  draft.steps.push({
    sign: '~',
    what: `transfers of ${file.id}`,
    path: [...path, 'transfers'],
    differences,
    run: (bank) => bank.call('PATCH', toPath`/admin/applications/${file.id}`, bodyOf(differences)),
  })
}

function planVersions(draft: Draft, { file: { id, versions = [] }, path, server }: Pair): void {
  const there = server?.versions ?? NEW_VERSIONS
  for (const [index, version] of versions.entries()) {
    const { name, isSupported } = version
    const found = there.find((one) => one.name === name)
    const differences = findDifferences(['isSupported'], version, found ?? { isSupported: true })
    if (found !== undefined && differences.length === 0) continue
    draft.steps.push({
      sign: found === undefined ? '+' : '~',
      what: `version ${name} of ${id}`,
      path: [...path, 'versions', index],
      differences,
      run: async (bank) => {
        if (found === undefined) await bank.call('POST', toPath`/admin/applications/${id}/versions`, { name })
        if (differences.length === 0) return
        await bank.call('PATCH', toPath`/admin/applications/${id}/versions/${name}`, { isSupported })
      },
    })
  }
  const nameOf = ({ name }: { readonly name: string }): string => `version ${name} of ${id}`
  // No call removes a version, because installed apps hold its keys.
  draft.notInFile.push(...findRest(server?.versions ?? [], new Set(versions.map(nameOf)), nameOf))
}

function planItems(draft: Draft, { file: { id, config: given }, path, server }: Pair): void {
  const config = given ?? []
  const owner = given && [...path, 'config']
  const nameOf = ({ key, scope = 'APPLICATION' }: { readonly key: string; readonly scope?: string }): string =>
    `configuration item ${key}${scope === 'APPLICATION' ? '' : ` for ${scope}`} of ${id}`
  for (const [index, item] of config.entries()) {
    const { key, scope, value } = item
    const found = (server?.config ?? []).find((one) => nameOf(one) === nameOf(item))
    const differences = findDifferences(['value'], item, found)
    if (differences.length === 0) continue
    draft.steps.push({
      sign: found === undefined ? '+' : '~',
      what: nameOf(item),
      path: [...path, 'config', index],
      differences,
      run: (bank) => bank.call('PUT', toPath`/admin/applications/${id}/config/${key}` + toQuery({ scope }), { value }),
    })
  }
  const removalOf = ({ key, scope }: { readonly key: string; readonly scope?: string }): string =>
    toPath`/admin/applications/${id}/config/${key}` + toQuery({ scope })
  draft.notInFile.push(...findRest(server?.config ?? [], new Set(config.map(nameOf)), nameOf, owner, removalOf))
}

const RULE = ['suggestedVersion', 'requiredVersion', 'messageKey']

function planRules(draft: Draft, { file: { id, rules: given }, path, server }: Pair): void {
  const rules = given ?? []
  const owner = given && [...path, 'rules']
  const rulesPath = toPath`/admin/apps/${id}/versions`
  const nameOf = ({ platform, majorOsVersion }: SetupRule): string =>
    `rule for ${platform}${majorOsVersion === undefined ? '' : ` ${majorOsVersion}`} of ${id}`
  for (const [index, rule] of rules.entries()) {
    const found = (server?.rules ?? []).find((one) => nameOf(one) === nameOf(rule))
    // A rule is compared as a whole: a member that the file leaves out is null.
    const whole = (one: SetupRule) => Object.fromEntries(RULE.map((name) => [name, one[name as keyof SetupRule] ?? null]))
    const differences = found === undefined ? findDifferences(RULE, rule) : findDifferences(RULE, whole(rule), whole(found))
    if (found !== undefined && differences.length === 0) continue
    draft.steps.push({
      sign: found === undefined ? '+' : '~',
      what: nameOf(rule),
      path: [...path, 'rules', index],
      differences,
      run: async (bank) => {
        // No call changes a rule, so it is replaced. The new one was checked when the file was read.
        if (found !== undefined) await bank.call('DELETE', `${rulesPath}/${found.id}`).catch(ifGone)
        await bank.call('POST', rulesPath, rule)
      },
    })
  }
  draft.notInFile.push(
    ...findRest(server?.rules ?? [], new Set(rules.map(nameOf)), nameOf, owner, (rule) => `${rulesPath}/${rule.id}`),
  )
}

/** Ignores the fault of a rule that somebody else has removed at the same time. */
function ifGone(error: unknown): void {
  if (!(error instanceof Fault) || error.kind !== 'missing') throw error
}

function planPins(draft: Draft, { file: { id, domains: given }, path, server }: Pair, now: number): void {
  const domains = given ?? []
  const owner = given && [...path, 'domains']
  const nameOf = (domain: string, { fingerprint }: { readonly fingerprint: string }): string =>
    `pin ${fingerprint} of ${domain} in ${id}`
  const named = new Set<string>()
  for (const [index, { name: domain, certificates }] of domains.entries()) {
    const pinned = (server?.domains ?? []).find(({ name }) => name === domain)?.certificates ?? []
    for (const [place, { fingerprint, expires: text }] of certificates.entries()) {
      const what = nameOf(domain, { fingerprint })
      const at = [...path, 'domains', index, 'certificates', place]
      const expires = Date.parse(text) / 1000
      const found = pinned.find((one) => one.fingerprint === fingerprint)
      named.add(what)
      if (found !== undefined && found.expires !== expires) {
        const until = formatSeconds(found.expires)
        const problem = `the server has it until ${until}: write that, or pawl certificate remove takes the pin away first`
        draft.conflicts.push({ path: [...at, 'expires'], kind: 'refused', problem })
      }
      if (found !== undefined) continue
      if (expires * 1000 < now) {
        draft.notes.push(`${what} has ended: it is left out`)
        continue
      }
      draft.steps.push({
        sign: '+',
        what,
        path: at,
        differences: findDifferences(['expires'], { expires: text }),
        run: (bank) => bank.call('POST', toPath`/admin/apps/${id}/certificates/fingerprint`, { domain, fingerprint, expires }),
      })
    }
  }
  const all = (server?.domains ?? []).flatMap(({ name: domain, certificates }) =>
    certificates.map(({ fingerprint }) => ({ domain, fingerprint })),
  )
  // Apps refuse a domain without a pin. When all pins of a domain in the file have ended, the server's pins stay.
  const ended = new Set(
    domains.filter(({ certificates }) => certificates.every(({ expires }) => Date.parse(expires) < now)).map(({ name }) => name),
  )
  const removalOf = (pin: { readonly domain: string; readonly fingerprint: string }): string | undefined =>
    ended.has(pin.domain) ? undefined : toPath`/admin/apps/${id}/certificates` + toQuery({ ...pin })
  draft.notInFile.push(...findRest(all, named, (pin) => nameOf(pin.domain, pin), owner, removalOf))
  const nameOfDomain = ({ name }: { readonly name: string }): string => `domain ${name} of ${id}`
  const removalOfDomain = ({ name }: { readonly name: string }): string =>
    toPath`/admin/apps/${id}/domains` + toQuery({ domain: name })
  draft.notInFile.push(
    ...findRest(server?.domains ?? [], new Set(domains.map(nameOfDomain)), nameOfDomain, owner, removalOfDomain),
  )
}

/** Formats a time in seconds since 1970. */
export const formatSeconds = (seconds: number): string => new Date(seconds * 1000).toISOString().replace('.000Z', 'Z')
