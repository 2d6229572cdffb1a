// Plans the steps that make an application's OpenID providers equal to those of a set-up file, without their secrets, which are in no file.
import { toPath } from '../query.ts'
import { OidcProvider, type SetupOidcProvider } from './schema.ts'
import type { Pair } from './plan-application.ts'
import type { ServerOidcProvider } from './state.ts'
import { type Draft, findDifferences, findRest } from './step.ts'

const MEMBERS = Object.keys(OidcProvider.properties).filter((name) => name !== 'providerId')
/** Members whose change needs the client's secret again. */
const OF_SECRET: readonly string[] = ['issuer', 'clientId', 'clientAuthentication', 'tokenEndpoint']

const toSettings = ({ providerId: _id, hasCredentials: _has, ...settings }: ServerOidcProvider) => settings

/** Adds the steps for the providers. A command has to make a provider whose client has a secret, because the command takes the secret. */
export function planOidcProviders(draft: Draft, { file: { id, oidcProviders: given }, path, server }: Pair): void {
  const oidcProviders = given ?? []
  const owner = given && [...path, 'oidcProviders']
  const nameOf = ({ providerId }: Pick<SetupOidcProvider, 'providerId'>): string => `OpenID provider ${providerId} of ${id}`
  const pathOf = ({ providerId }: Pick<SetupOidcProvider, 'providerId'>): string =>
    toPath`/admin/applications/${id}/oidc-providers/${providerId}`
  const all = server?.oidcProviders ?? []
  for (const [index, provider] of oidcProviders.entries()) {
    const { providerId, ...members } = provider
    const found = all.find((one) => one.providerId === providerId)
    const at = [...path, 'oidcProviders', index]
    const hasCredentials = found?.hasCredentials ?? false
    const before = found === undefined ? {} : toSettings(found)
    const differences = findDifferences(MEMBERS, members, before)
    if (found !== undefined && differences.length === 0) continue
    const whole = { ...before, ...members }
    const isSecretNeeded = (whole.clientAuthentication ?? 'client_secret_basic') !== 'none'
    const remedy = `pawl oidc set ${providerId} --app ${id} with --secret-file or --key-file`
    if (isSecretNeeded && !hasCredentials) {
      draft.notes.push(`${nameOf(provider)} is left out: its secret is in no file, and it is made by ${remedy}`)
      continue
    }
    const [changed] = isSecretNeeded ? differences.filter(({ name }) => OF_SECRET.includes(name)) : []
    if (changed !== undefined) {
      const problem = `its secret is for what the server has, and in no file: ${remedy} changes both`
      draft.conflicts.push({ path: [...at, changed.name], kind: 'refused', problem })
      continue
    }
    draft.steps.push({
      sign: found === undefined ? '+' : '~',
      what: nameOf(provider),
      path: at,
      differences,
      run: (bank) => bank.call('PUT', pathOf(provider), whole),
    })
  }
  draft.notInFile.push(...findRest(all, new Set(oidcProviders.map(nameOf)), nameOf, owner, pathOf))
}
