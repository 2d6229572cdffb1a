// Declares pawl oidc: OpenID providers of the bank, whose logins bind phones.
import { APPLICATION_OPTION, bankCommand } from '../bank-command.ts'
import type { Bank } from '../bank.ts'
import { flag, many, type Noun, text } from '../command.ts'
import { Fault, usageFault } from '../fault.ts'
import { answerList } from '../output.ts'
import { compact, toPath } from '../query.ts'
import { readSecret } from '../secret-argument.ts'

const PROVIDER = { '<provider>': 'its id, which the app names' } as const

const list = bankCommand({
  name: 'list',
  summary: 'Lists the OpenID providers of an application',
  options: APPLICATION_OPTION,
  examples: ['oidc list', 'oidc list --app my-app'],
  run: async ({ openBank, application }) => {
    const bank = openBank()
    const columns = ['providerId', 'issuer', 'clientId', 'clientAuthentication', 'hasCredentials', 'userIdClaim', 'isCommitted']
    const path = toPath`/admin/applications/${await application()}/oidc-providers`
    return answerList(await bank.call('GET', path), 'providers', columns)
  },
})

const show = bankCommand({
  name: 'show',
  summary: 'Reads an OpenID provider',
  words: PROVIDER,
  options: APPLICATION_OPTION,
  examples: ['oidc show web-bank'],
  run: async ({ words: [id], openBank, application }) =>
    openBank().answer('GET', toPath`/admin/applications/${await application()}/oidc-providers/${id}`),
})

const set = bankCommand({
  name: 'set',
  summary: 'Makes an OpenID provider, or changes one; settings without an option stay',
  more: 'A new one needs --issuer, --client-id and --redirect-uri. docs/OIDC.md says what to enter at the provider.',
  words: PROVIDER,
  options: {
    ...APPLICATION_OPTION,
    issuer: text('URL', 'as the provider writes it in its tokens'),
    clientId: text('ID', 'of the app at the provider'),
    redirectUri: text('URL', 'where the browser goes back to the app'),
    auth: text('NAME', 'how pawl authenticates: client_secret_basic (by default), client_secret_post, private_key_jwt or none'),
    secretFile: text('FILE', 'a file with the client secret'),
    keyFile: text('FILE', 'a file with the private key of private_key_jwt: PKCS#8 in PEM'),
    keyId: text('ID', 'its kid'),
    scope: many('NAME', 'may be given several times; by default openid alone'),
    authorizationEndpoint: text('URL', 'where what the provider publishes is not to be used'),
    tokenEndpoint: text('URL', 'the same'),
    jwksUri: text('URL', 'the same'),
    algorithm: many('NAME', 'that its ID tokens may be signed with, may be given several times; by default RS256 alone'),
    userIdClaim: text('NAME', 'the claim with the user id; by default sub'),
    flag: many('NAME', 'of the phones that are bound; may be given several times'),
    bankCommits: flag('the bank commits what was bound'),
    committed: flag('phones are active at once, which is the default'),
  },
  examples: [
    'oidc set web-bank --issuer https://login.bank.example --client-id mobile-app --redirect-uri https://app.bank.example/oidc --secret-file secret.txt',
    'oidc set web-bank --user-id-claim customer_number --bank-commits',
  ],
  run: async ({ words: [id], values, openBank, application }) => {
    if (values.bankCommits && values.committed) throw usageFault('--bank-commits and --committed exclude each other')
    const given = compact({
      issuer: values.issuer,
      clientId: values.clientId,
      redirectUri: values.redirectUri,
      clientAuthentication: values.auth,
      clientSecret: readSecret('--secret-file', undefined, values.secretFile),
      privateKey: readSecret('--key-file', undefined, values.keyFile),
      keyId: values.keyId,
      scopes: orUndefined(values.scope),
      authorizationEndpoint: values.authorizationEndpoint,
      tokenEndpoint: values.tokenEndpoint,
      jwksUri: values.jwksUri,
      algorithms: orUndefined(values.algorithm),
      userIdClaim: values.userIdClaim,
      flags: orUndefined(values.flag),
      isCommitted: values.bankCommits ? false : values.committed || undefined,
    })
    const bank = openBank()
    const path = toPath`/admin/applications/${await application()}/oidc-providers/${id}`
    return bank.answer('PUT', path, { ...(await readBefore(bank, path)), ...given })
  },
})

const orUndefined = (list: readonly string[]): readonly string[] | undefined => (list.length === 0 ? undefined : list)

/** The members of the server's answer that a change sends back. */
const toSettings = ({ providerId: _id, hasCredentials: _has, ...settings }: Readonly<Record<string, unknown>>) => settings

/** Reads the settings of the provider; an empty object when the server has no such provider. */
async function readBefore(bank: Bank, path: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    return toSettings(await bank.call('GET', path))
  } catch (error) {
    if (error instanceof Fault && error.kind === 'missing') return {}
    throw error
  }
}

const remove = bankCommand({
  name: 'remove',
  summary: 'Removes an OpenID provider; phones that were bound by it stay',
  words: PROVIDER,
  options: APPLICATION_OPTION,
  examples: ['oidc remove web-bank'],
  run: async ({ words: [id], openBank, application }) =>
    openBank().answer('DELETE', toPath`/admin/applications/${await application()}/oidc-providers/${id}`),
})

export const oidc: Noun = {
  name: 'oidc',
  summary: 'OpenID providers of the bank, whose logins bind phones',
  commands: [list, show, set, remove],
}
