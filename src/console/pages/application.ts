// Shows one application: the values for its mobile app, its protocols, and its versions.
import type { ApplicationDetailWithKeys } from '../../api/cloud/admin/applications.ts'
import {
  actionForm,
  backTo,
  badge,
  card,
  checks,
  type Choice,
  code,
  facts,
  field,
  fitsQrCode,
  guardedForm,
  more,
  pageHead,
  qr,
  select,
  table,
} from '../elements.ts'
import { at, parseJsonField, unlessRefused } from '../api.ts'
import { html, type Markup } from '../markup.ts'
import { done, link, type Page, type PageCall, requireUnchanged } from '../page.ts'

type Detail = ApplicationDetailWithKeys['responseObject']

const ALGORITHMS: readonly Choice[] = [
  ['EC_P384', 'EC_P384: P-384 alone'],
  ['EC_P384_ML_L3', 'EC_P384_ML_L3: with ML-KEM and ML-DSA, level 3'],
  ['EC_P384_ML_L5', 'EC_P384_ML_L5: the same, level 5'],
]
const VERSIONS: readonly Choice[] = [
  ['', 'any'],
  ...['3.0', '3.1', '3.2', '3.3', '4.0'].map((version): Choice => [version, version]),
]
const FACTORS: readonly Choice[] = [
  ['POSSESSION', 'the phone alone'],
  ['POSSESSION_KNOWLEDGE', 'phone and PIN (always)'],
  ['POSSESSION_BIOMETRY', 'phone and biometry'],
]

const pathOf = ({ params }: PageCall): string => at`/admin/applications/${params.id}`
/** Reads the application with the values of the version in the query. A version that is switched off has none: then those of another version. */
async function read(call: PageCall): Promise<Detail> {
  const get = (version?: string) => call.api.get<ApplicationDetailWithKeys>(pathOf(call), { version })
  const { responseObject } = (await unlessRefused(get(call.query['version']))) ?? (await get())
  return responseObject
}

const home = ({ params }: PageCall): string => at`/applications/${params.id}`

/** The stored values that the form shows and replaces. */
const settingsOf = (detail: Detail) => [
  detail.algorithms,
  detail.isProtocol3Admitted,
  detail.minimumProtocolVersion,
  detail.isMultiDevice,
  detail.vaultFactors,
  detail.roles,
  detail.customObject,
  detail.transfers,
]

export const application: Page = {
  path: '/applications/:id',
  section: 'applications',
  async render(call) {
    const detail = await read(call)
    const back = backTo(link(call, '/applications'), 'Applications')
    return {
      title: detail.id,
      body: html`${pageHead(detail.id, { back, lead: detail.isDefault ? 'The default application: administrators act on it where they name none.' : undefined })}
        <div class="columns"><div>${renderValues(call, detail)}${card('Versions', renderVersions(call, detail))}</div>
        <div>${card('Settings', renderSettings(call, detail))}</div></div>`,
    }
  },
  actions: {
    settings: async (call) => {
      const { form, api } = call
      requireUnchanged(call, settingsOf(await read(call)))
      const customObject = form.optional('customObject')
      await api.send('PATCH', pathOf(call), {
        algorithms: form.all('algorithms'),
        isProtocol3Admitted: form.isChecked('isProtocol3Admitted'),
        minimumProtocolVersion: form.optional('minimumProtocolVersion') ?? null,
        isMultiDevice: form.isChecked('isMultiDevice'),
        vaultFactors: form.all('vaultFactors'),
        roles: form.words('roles'),
        customObject: customObject === undefined ? null : parseJsonField('customObject', customObject),
        transfers: parseJsonField('transfers', form.optional('transfers') ?? '[]'),
      })
      return done(call, home(call), 'saved')
    },
    default: async (call) => {
      await call.api.send('PATCH', pathOf(call), { isDefault: true })
      return done(call, home(call), 'saved')
    },
    version: async (call) => {
      await call.api.send('POST', `${pathOf(call)}/versions`, { name: call.form.text('name') })
      return done(call, home(call), 'created')
    },
    support: async (call) => {
      const path = `${pathOf(call)}${at`/versions/${call.form.text('version')}`}`
      await call.api.send('PATCH', path, { isSupported: call.form.text('isSupported') === 'true' })
      return done(call, home(call), 'saved')
    },
  },
}

function renderValues({ isAdmin }: PageCall, detail: Detail): Markup {
  const { serviceBaseUrl, appKey, appSecret, masterServerPublicKey, mobileSdkConfig, qrSignatureCurve } = detail
  const values = facts([
    ['Base URL', code(serviceBaseUrl, 'the base URL')],
    ['Application key', code(appKey, 'the application key')],
    [
      'Application secret',
      appSecret === undefined
        ? html`<span class="soft">${isAdmin ? 'altered in the database: add a version' : 'for administrators only'}</span>`
        : code(appSecret, 'the application secret'),
    ],
    ['Master public key', html`${code(masterServerPublicKey, 'the master public key')} <small>${qrSignatureCurve}</small>`],
    mobileSdkConfig !== undefined && ['SDK configuration', more('Show', code(mobileSdkConfig, 'the SDK configuration'))],
  ])
  const fits = mobileSdkConfig !== undefined && fitsQrCode(mobileSdkConfig)
  // With keys of ML-DSA the configuration is too long for any QR code. Phones of protocol 3 need only the other values.
  const scanned = fits ? mobileSdkConfig : JSON.stringify({ serviceBaseUrl, appKey, appSecret, masterServerPublicKey })
  const what = fits ? 'the SDK configuration' : 'the first four values, as JSON'
  return card(
    'What the mobile app needs',
    appSecret === undefined
      ? values
      : html`<div class="phones">${qr(scanned, `QR code of ${what}`)}<p class="hint">The QR code holds ${what}, for an app that is being developed. The SDK configuration holds them all; with one algorithm alone it fits into a QR code too.</p></div>${values}`,
  )
}

const renderVersions = (call: PageCall, { versions }: Detail): Markup =>
  html`${table(
    'Versions',
    ['Version', 'Application key', ['State', 'side'], ['', 'wide']],
    versions.map(({ name, appKey, isSupported }) => [
      isSupported ? html`<a href="${link(call, home(call), { version: name })}">${name}</a>` : name,
      html`<code>${appKey}</code>`,
      isSupported ? badge('good', 'Supported') : badge('off', 'Switched off'),
      call.isAdmin && renderSwitch(call, name, isSupported),
    ]),
  )}${call.isAdmin && actionForm(call, 'version', 'Add version', { tone: 'plain', fields: (own) => field(own, 'name', 'Name of a new version', { isRequired: true, placeholder: '2.0' }) })}`

const renderSwitch = (call: PageCall, version: string, isSupported: boolean): Markup =>
  isSupported
    ? guardedForm(call, 'support', 'Switch off', {
        hidden: { version, isSupported: 'false' },
        question: `Phones with version ${version} are refused from then on.`,
      })
    : actionForm(call, 'support', 'Switch on', { tone: 'plain', hidden: { version, isSupported: 'true' } })

function renderSettings(call: PageCall, detail: Detail): Markup {
  const {
    algorithms,
    isProtocol3Admitted,
    minimumProtocolVersion,
    vaultFactors,
    roles,
    customObject,
    transfers,
    isDefault,
    isMultiDevice,
  } = detail
  if (!call.isAdmin) {
    return facts([
      ['Protocol 3', isProtocol3Admitted ? 'admitted' : 'not admitted'],
      ['Algorithms of 4', algorithms.join(', ')],
      ['Oldest version', minimumProtocolVersion ?? 'any'],
      ['A user has', isMultiDevice ? 'several phones' : 'one phone'],
      ['Vault opens with', vaultFactors.join(', ')],
      roles.length > 0 && ['Roles', roles.join(', ')],
      transfers.length > 0 && ['Hands over to', html`<code>${JSON.stringify(transfers)}</code>`],
    ])
  }
  const custom = customObject === undefined ? '' : JSON.stringify(customObject, undefined, 2)
  const handsOver = transfers.length === 0 ? '' : JSON.stringify(transfers, undefined, 2)
  return html`${actionForm(call, 'settings', 'Save', {
    seen: settingsOf(detail),
    fields: (
      own,
    ) => html`${checks(own, 'isProtocol3Admitted', 'Admits', [['true', 'protocol 3 (3.0 to 3.3)']], { value: isProtocol3Admitted ? ['true'] : [], hint: 'Without it, QR codes are signed for phones of 4.0 only.' })}
      ${checks(own, 'algorithms', 'Algorithms of protocol 4', ALGORITHMS, { value: algorithms, hint: 'Where none is chosen, all are admitted.' })}
      ${select(own, 'minimumProtocolVersion', 'Oldest version', VERSIONS, { value: minimumProtocolVersion ?? '', hint: 'Older phones are not bound, and what they sign is refused.' })}
      ${checks(own, 'isMultiDevice', 'A user may have', [['true', 'several phones']], { value: isMultiDevice ? ['true'] : [], hint: 'It stays on while a user has several phones.' })}
      ${checks(own, 'vaultFactors', 'The vault opens with', FACTORS, { value: vaultFactors })}
      ${field(own, 'roles', 'Roles', { value: roles.join(' '), hint: 'For the back end, separated by spaces.' })}
      ${field(own, 'customObject', 'Custom object', { value: custom, rows: 4, hint: 'JSON that anybody may read in the status of an activation.' })}
      ${field(own, 'transfers', 'Hands over to', { value: handsOver, rows: 4, hint: 'JSON, for instance [{"targets":["new-app"],"type":"MOVE"}]. A phone may bind these applications too: SPAWN binds one beside this application, MOVE in its place.' })}`,
  })}${!isDefault && actionForm(call, 'default', 'Make it the default', { tone: 'plain' })}`
}
