// Shows and changes the OpenID providers of an application, whose logins bind phones.
import type { Provider } from '../../api/cloud/admin/oidc-providers.ts'
import { at } from '../api.ts'
import { actionForm, badge, card, checks, type Choice, empty, field, guardedForm, pageHead, select, table } from '../elements.ts'
import { html, type Markup } from '../markup.ts'
import { done, link, type Page, type PageCall, requireUnchanged } from '../page.ts'

const AUTHENTICATIONS: readonly Choice[] = [
  ['client_secret_basic', 'a secret, by HTTP Basic'],
  ['client_secret_post', 'a secret, in the body'],
  ['private_key_jwt', 'a private key'],
  ['none', 'nothing'],
]

const pathOf = ({ application }: PageCall): string => at`/admin/applications/${application}/oidc-providers`
const readProviders = async (call: PageCall) => (await call.api.get<{ providers: readonly Provider[] }>(pathOf(call))).providers
/** The members of an answer that a request to store the provider has, too. */
const toSettings = ({ providerId: _id, hasCredentials: _has, ...settings }: Partial<Provider>) => settings

export const oidc: Page = {
  path: '/oidc',
  section: 'oidc',
  async render(call) {
    const { query, isAdmin } = call
    const providers = await readProviders(call)
    const chosen = providers.find(({ providerId }) => providerId === query['provider'])
    return {
      title: 'OpenID',
      body: html`${pageHead('OpenID', { lead: 'Who logs in at one of these providers of the bank binds a phone without an activation code.' })}
        <div class="columns"><div>${card(
          'Providers',
          table(
            'Providers',
            ['Provider', ['pawl authenticates by', 'side'], 'Phones', ['', 'wide']],
            providers.map((one) => renderRow(call, one)),
            empty('None yet', 'Phones are bound by activation codes.'),
          ),
        )}</div>
        <div>${isAdmin && card(chosen === undefined ? 'New provider' : `Change ${chosen.providerId}`, renderForm(call, providers, chosen))}</div></div>`,
    }
  },
  actions: {
    store: async (call) => {
      const { form, api } = call
      const providers = await readProviders(call)
      requireUnchanged(call, providers)
      const id = form.text('providerId')
      // Members without a line in the form keep their values.
      const settings = toSettings(providers.find(({ providerId }) => providerId === id) ?? {})
      const clientSecret = form.all('clientSecret')[0] || undefined
      await api.send('PUT', `${pathOf(call)}${at`/${id}`}`, {
        ...settings,
        issuer: form.text('issuer'),
        clientId: form.text('clientId'),
        redirectUri: form.text('redirectUri'),
        clientAuthentication: form.text('clientAuthentication'),
        ...(clientSecret !== undefined && { clientSecret }),
        scopes: form.words('scopes'),
        userIdClaim: form.text('userIdClaim'),
        isCommitted: form.isChecked('isCommitted'),
        flags: form.words('flags'),
      })
      return done(call, '/oidc', 'saved')
    },
    remove: async (call) => {
      await call.api.send('DELETE', `${pathOf(call)}${at`/${call.form.text('providerId')}`}`)
      return done(call, '/oidc', 'removed')
    },
  },
}

const renderRow = (call: PageCall, one: Provider) => [
  html`<a href="${link(call, '/oidc', { provider: one.providerId })}">${one.providerId}</a><br><small>${one.issuer}</small>`,
  AUTHENTICATIONS.find(([name]) => name === one.clientAuthentication)?.[1],
  one.isCommitted ? badge('good', 'Active at once') : badge('info', 'Wait for the bank'),
  call.isAdmin &&
    guardedForm(call, 'remove', 'Remove', {
      hidden: { providerId: one.providerId },
      question: `Nobody binds a phone by ${one.providerId} any more. Phones that were bound stay.`,
    }),
]

const renderForm = (call: PageCall, providers: readonly Provider[], one: Provider | undefined): Markup =>
  actionForm(call, 'store', one === undefined ? 'Create' : 'Change', {
    // A provider of the same id is replaced, and the page shows all of them.
    seen: providers,
    fields: (
      own,
    ) => html`${field(own, 'providerId', 'Id', { isRequired: true, value: one?.providerId, placeholder: 'web-bank', hint: 'The app names it; one of this id is replaced.' })}
      ${field(own, 'issuer', 'Issuer', { type: 'url', isRequired: true, value: one?.issuer, placeholder: 'https://login.bank.example' })}
      ${field(own, 'clientId', 'Client', { isRequired: true, value: one?.clientId, placeholder: 'mobile-app' })}
      ${field(own, 'redirectUri', 'Redirect URI', { isRequired: true, value: one?.redirectUri, placeholder: 'https://app.bank.example/oidc' })}
      ${select(own, 'clientAuthentication', 'pawl authenticates by', AUTHENTICATIONS, { value: one?.clientAuthentication, hint: 'The command pawl oidc set stores a private key.' })}
      ${field(own, 'clientSecret', 'Secret', { type: 'password', autocomplete: 'new-password', hint: one?.hasCredentials ? 'Left empty, the one that is there stays.' : undefined })}
      ${field(own, 'scopes', 'Scopes', { isRequired: true, value: one?.scopes?.join(' ') ?? 'openid' })}
      ${field(own, 'userIdClaim', 'Claim with the user id', { isRequired: true, value: one?.userIdClaim ?? 'sub' })}
      ${field(own, 'flags', 'Flags of the phones', { value: one?.flags?.join(' '), hint: 'Separated by spaces.' })}
      ${checks(own, 'isCommitted', 'Phones', [['yes', 'are active at once; else the bank commits them']], { value: (one?.isCommitted ?? true) ? ['yes'] : [] })}`,
  })
