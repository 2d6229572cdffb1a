// Reads the state of a server, as far as a set-up file describes it, through the bank's API.
import type { Bank } from '../bank.ts'
import { toPath } from '../query.ts'
import type {
  SetupApplication,
  SetupOidcProvider,
  SetupRule,
  SetupTemplate,
  SetupText,
  SetupUser,
  SetupWebhook,
} from './schema.ts'

type Item = NonNullable<SetupApplication['config']>[number]
type Settings = Pick<
  SetupApplication,
  | 'algorithms'
  | 'isProtocol3Admitted'
  | 'minimumProtocolVersion'
  | 'isMultiDevice'
  | 'vaultFactors'
  | 'roles'
  | 'customObject'
  | 'transfers'
>

export interface ServerPin {
  /** Base64. */
  readonly fingerprint: string
  /** Seconds since 1970. */
  readonly expires: number
  readonly isExpired: boolean
}

export interface ServerWebhook extends Required<SetupWebhook> {
  readonly id: string
  readonly application: string
  readonly createdAt: number
  /** The user name with which the receiver is called. Nobody can read the password back. */
  readonly basicUsername?: string
}

export interface ServerApplication extends Required<Settings> {
  readonly id: string
  /** The id when no name was given. */
  readonly name: string
  readonly isDefault: boolean
  readonly versions: readonly { readonly name: string; readonly isSupported: boolean }[]
  readonly config: readonly Item[]
  readonly rules: readonly (SetupRule & { readonly id: number })[]
  readonly domains: readonly { readonly name: string; readonly port: number; readonly certificates: readonly ServerPin[] }[]
  readonly webhooks: readonly ServerWebhook[]
  readonly oidcProviders: readonly ServerOidcProvider[]
}

/** A provider of the server, which never returns its secret. */
export interface ServerOidcProvider extends SetupOidcProvider {
  readonly clientAuthentication: NonNullable<SetupOidcProvider['clientAuthentication']>
  readonly hasCredentials: boolean
}

export interface ServerUser extends Pick<SetupUser, 'username' | 'role' | 'application'> {
  readonly isDisabled: boolean
  /** Milliseconds since 1970. */
  readonly expiresAt?: number
  readonly rights: readonly string[]
  readonly allowedAddresses: readonly string[]
  readonly certificates: readonly string[]
}

export interface ServerState {
  readonly applications: readonly ServerApplication[]
  readonly texts: readonly SetupText[]
  readonly templates: readonly SetupTemplate[]
  readonly users: readonly ServerUser[]
}

/** Reads the whole state, one list after the other. Throws a Fault when the server refuses a call. */
export async function readState(bank: Bank): Promise<ServerState> {
  const read = <T>(path: string): Promise<T> => bank.call<T>('GET', path)
  const { applications } = await read<{ applications: readonly { id: string }[] }>('/admin/applications')
  const webhooks = await listWebhooks(bank)
  const whole: ServerApplication[] = []
  for (const { id } of applications)
    whole.push(
      await readApplication(
        read,
        id,
        webhooks.filter(({ application }) => application === id),
      ),
    )
  const { texts } = await read<{ texts: readonly SetupText[] }>('/admin/texts')
  const { templates } = await read<{ templates: readonly TemplateAnswer[] }>('/admin/templates')
  const { users } = await read<{
    users: readonly (Partial<ServerUser> & Pick<ServerUser, 'username' | 'role' | 'isDisabled'>)[]
  }>('/admin/users')
  return {
    applications: whole,
    texts,
    templates: templates.map(({ source: _source, warning: _warning, ...template }) => template),
    users: users.map((user) => ({ rights: [], allowedAddresses: [], certificates: [], ...user })),
  }
}

type TemplateAnswer = SetupTemplate & { readonly source: string; readonly warning?: string }

export const listWebhooks = async (bank: Bank): Promise<readonly ServerWebhook[]> =>
  (await bank.call<{ webhooks: readonly ServerWebhook[] }>('GET', '/admin/webhooks')).webhooks

type Read = <T>(path: string) => Promise<T>

async function readApplication(read: Read, id: string, webhooks: readonly ServerWebhook[]): Promise<ServerApplication> {
  const { responseObject: settings } = await read<{ responseObject: ApplicationAnswer }>(toPath`/admin/applications/${id}`)
  const app = await read<{ displayName: string; domains: ServerApplication['domains'] }>(toPath`/admin/apps/${id}`)
  const rules = await read<{ applicationVersions: ServerApplication['rules'] }>(toPath`/admin/apps/${id}/versions`)
  const { config } = await read<{ config: readonly Item[] }>(toPath`/admin/applications/${id}/config`)
  const oidc = await read<{ providers: readonly (ServerOidcProvider & { pkceEnabled: true })[] }>(
    toPath`/admin/applications/${id}/oidc-providers`,
  )
  // Members are copied one by one, because the answer has the application secret, too.
  return {
    id,
    name: app.displayName,
    isDefault: settings.isDefault,
    algorithms: settings.algorithms,
    isProtocol3Admitted: settings.isProtocol3Admitted,
    minimumProtocolVersion: settings.minimumProtocolVersion ?? null,
    isMultiDevice: settings.isMultiDevice,
    vaultFactors: settings.vaultFactors,
    roles: settings.roles,
    customObject: settings.customObject ?? null,
    // A server of an earlier version has no transfers.
    transfers: settings.transfers ?? [],
    versions: settings.versions,
    config,
    rules: rules.applicationVersions,
    domains: app.domains,
    webhooks,
    oidcProviders: oidc.providers.map(({ pkceEnabled: _, ...provider }) => provider),
  }
}

type ApplicationAnswer = Pick<ServerApplication, 'isDefault' | 'versions'> &
  Omit<Required<Settings>, 'minimumProtocolVersion' | 'customObject' | 'transfers'> &
  Pick<Settings, 'minimumProtocolVersion' | 'customObject' | 'transfers'>

/** Splits a URL into the part to show and its query, which may hold a secret of the receiver. The query is empty or begins with `?`. */
export function splitUrl(url: string): { readonly shown: string; readonly query: string } {
  const at = url.indexOf('?')
  return at === -1 ? { shown: url, query: '' } : { shown: url.slice(0, at), query: url.slice(at) }
}
