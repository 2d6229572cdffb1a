// Declares pawl app: applications, their versions, the values that are compiled into the mobile app, and the version rules for users.
import { chooseApplication, readApplication, sdkConfigOf } from '../applications.ts'
import { APPLICATION_OPTION, bankCommand } from '../bank-command.ts'
import { flag, many, type Noun, text } from '../command.ts'
import { usageFault } from '../fault.ts'
import { readJsonArgument, readLooseJson } from '../json-argument.ts'
import { answerList } from '../output.ts'
import { drawAs } from '../qr-code.ts'
import { compact, toPath, toQuery } from '../query.ts'
import { keepKeys, KEYS_OF_ALGORITHM } from '../sdk-config.ts'
import { parseCount } from '../time.ts'

const list = bankCommand({
  name: 'list',
  summary: 'Lists applications',
  examples: ['app list', 'app list --json'],
  run: async ({ openBank }) => answerList(await openBank().call('GET', '/admin/applications'), 'applications'),
})

const create = bankCommand({
  name: 'create',
  summary: 'Creates an application',
  words: { '<id>': 'its id' },
  options: {
    name: text('TEXT', 'what people call its mobile app; makes the key that signs pinned certificates'),
  },
  examples: ['app create my-app', "app create my-app --name 'My bank'"],
  run: async ({ words: [id], values, openBank }) => {
    const bank = openBank()
    if (values.name === undefined) return bank.answer('POST', '/admin/application', { id })
    return bank.answer('POST', '/admin/apps', { name: id, displayName: values.name })
  },
})

const show = bankCommand({
  name: 'show',
  summary: 'Shows settings and versions of an application, and the values that are compiled into its mobile app',
  words: { '[id]': 'the application; by default the default one' },
  options: { version: text('NAME', 'the version whose keys are shown') },
  examples: ['app show', 'app show my-app --version 2.0'],
  run: async ({ words: [id], values, openBank }) => {
    const bank = openBank()
    const json = await readApplication(bank, await chooseApplication(bank, id), values.version)
    return { json }
  },
})

const change = bankCommand({
  name: 'change',
  summary: 'Changes the settings of an application',
  words: { '<id>': 'the application' },
  options: {
    default: flag('makes it the default one'),
    algorithm: many('NAME', 'an algorithm of protocol 4.0 that phones may use; all that are not given are taken away'),
    role: many('NAME', 'a role of the application; all that are not given are taken away'),
    protocol3: text('yes|no', 'whether phones of protocol 3 are admitted'),
    multiDevice: text('yes|no', 'whether a user may have several phones'),
    minimumProtocolVersion: text('VERSION', 'older phones are refused; none takes every version'),
    moveTo: many('ID', 'an application to which a phone may move; takes away all that are not given, with --spawn'),
    spawn: many('ID', 'one that a phone may let be bound beside its own'),
    set: text('JSON', 'settings as PATCH /admin/applications/{id} takes them, or @FILE'),
  },
  examples: [
    'app change my-app --default',
    'app change my-app --minimum-protocol-version 3.2',
    'app change my-app --algorithm EC_P384_ML_L3',
    'app change my-app --multi-device yes',
    'app change my-app --move-to new-app --spawn junior-app',
  ],
  run: async ({ words: [id], values, openBank }) => {
    const { minimumProtocolVersion: minimum } = values
    const body = {
      ...(values.set === undefined ? {} : readJsonArgument('--set', values.set)),
      ...compact({
        isDefault: values.default || undefined,
        algorithms: values.algorithm.length === 0 ? undefined : values.algorithm,
        roles: values.role.length === 0 ? undefined : values.role,
        isProtocol3Admitted: readYesNo('--protocol3', values.protocol3),
        isMultiDevice: readYesNo('--multi-device', values.multiDevice),
        minimumProtocolVersion: minimum === 'none' ? null : minimum,
        transfers: toTransfers(values.moveTo, values.spawn),
      }),
    }
    if (Object.keys(body).length === 0) throw usageFault('no setting is given')
    return openBank().answer('PATCH', toPath`/admin/applications/${id}`, body)
  },
})

function readYesNo(name: string, given: string | undefined): boolean | undefined {
  if (given !== undefined && given !== 'yes' && given !== 'no') throw usageFault(`${name} is yes or no`)
  return given === undefined ? undefined : given === 'yes'
}

/** The transfers that the options name; undefined when they name none, so that the stored ones stay. */
function toTransfers(moveTo: readonly string[], spawn: readonly string[]) {
  const transfers = [
    { targets: moveTo, type: 'MOVE' },
    { targets: spawn, type: 'SPAWN' },
  ].filter(({ targets }) => targets.length > 0)
  return transfers.length === 0 ? undefined : transfers
}

const addVersion = bankCommand({
  name: 'add-version',
  summary: 'Adds a version, which has keys of its own',
  words: { '<id>': 'the application', '<version>': 'its name' },
  examples: ['app add-version my-app 2.0'],
  run: ({ words: [id, name], openBank }) => openBank().answer('POST', toPath`/admin/applications/${id}/versions`, { name }),
})

const setVersion = bankCommand({
  name: 'set-version',
  summary: 'Switches a version on or off; phones with a version that is off are refused',
  words: { '<id>': 'the application', '<version>': 'its name', '<state>': 'on or off' },
  examples: ['app set-version my-app 1.0 off'],
  run: async ({ words: [id, version, state], openBank }) => {
    if (state !== 'on' && state !== 'off') throw usageFault('the state is on or off')
    const path = toPath`/admin/applications/${id}/versions/${version}`
    return openBank().answer('PATCH', path, { isSupported: state === 'on' })
  },
})

const sdkConfig = bankCommand({
  name: 'sdk-config',
  summary: 'Prints the configuration text that is compiled into a mobile app, or draws it as a QR code',
  options: {
    ...APPLICATION_OPTION,
    version: text('NAME', 'the version whose keys are meant'),
    algorithm: text('NAME', 'leaves out the keys that other algorithms need, which makes it short enough for a QR code'),
    qr: text('terminal|svg', 'draws it'),
  },
  examples: ['app sdk-config', 'app sdk-config --app my-app --algorithm EC_P384 --qr terminal'],
  run: async ({ values: { version, algorithm, qr }, openBank, application }) => {
    const kept = algorithm === undefined ? undefined : KEYS_OF_ALGORITHM.get(algorithm)
    if (algorithm !== undefined && kept === undefined)
      throw usageFault(`--algorithm is one of ${[...KEYS_OF_ALGORITHM.keys()].join(', ')}`)
    const bank = openBank()
    const whole = sdkConfigOf(await readApplication(bank, await application(), version))
    const mobileSdkConfig = kept === undefined ? whole : keepKeys(whole, kept)
    const text = qr === undefined ? `${mobileSdkConfig}\n` : drawAs(qr, mobileSdkConfig, QR_HINT)
    return { json: { mobileSdkConfig }, text }
  },
})

const QR_HINT = 'choose --algorithm EC_P384 or EC_P384_ML_L3, or hand over the text'

const rules = bankCommand({
  name: 'rules',
  summary: 'Lists the rules about versions of the mobile app that users run',
  options: APPLICATION_OPTION,
  examples: ['app rules', 'app rules --app my-app'],
  run: async ({ openBank, application }) => openBank().answer('GET', toPath`/admin/apps/${await application()}/versions`),
})

const addRule = bankCommand({
  name: 'add-rule',
  summary: 'Adds a rule: which version of the mobile app is suggested or required',
  options: {
    ...APPLICATION_OPTION,
    platform: text('NAME', 'ANDROID or IOS'),
    suggested: text('VERSION', 'older ones are told of a newer one'),
    required: text('VERSION', 'older ones must not go on'),
    os: text('N', 'only for this major version of the system'),
    message: text('KEY', 'the text that is shown; pawl app set-text writes it'),
  },
  examples: ['app add-rule --platform IOS --suggested 2.1.0 --required 2.0.0 --message update'],
  run: async ({ values: { platform, suggested, required, os, message }, openBank, application }) => {
    if (platform === undefined) throw usageFault('--platform is needed')
    const body = compact({
      platform,
      suggestedVersion: suggested,
      requiredVersion: required,
      majorOsVersion: os === undefined ? undefined : parseCount('--os', os),
      messageKey: message,
    })
    return openBank().answer('POST', toPath`/admin/apps/${await application()}/versions`, body)
  },
})

const removeRule = bankCommand({
  name: 'remove-rule',
  summary: 'Removes a rule',
  words: { '<id>': 'the id that pawl app rules shows' },
  options: APPLICATION_OPTION,
  examples: ['app remove-rule 3'],
  run: async ({ words: [id], openBank, application }) =>
    openBank().answer('DELETE', toPath`/admin/apps/${await application()}/versions/${id}`),
})

const texts = bankCommand({
  name: 'texts',
  summary: 'Lists the texts of rules',
  examples: ['app texts'],
  run: async ({ openBank }) => answerList(await openBank().call('GET', '/admin/texts'), 'texts'),
})

const setText = bankCommand({
  name: 'set-text',
  summary: 'Stores a text of rules',
  words: { '<key>': 'its key', '<language>': 'two small letters', '<text>': 'what is shown' },
  examples: ["app set-text update en 'Please update the app'"],
  run: ({ words: [messageKey, language, shown], openBank }) =>
    openBank().answer('POST', '/admin/texts', { messageKey, language, text: shown }),
})

const removeText = bankCommand({
  name: 'remove-text',
  summary: 'Removes a text of rules',
  words: { '<key>': 'its key', '<language>': 'two small letters' },
  examples: ['app remove-text update en'],
  run: ({ words: [key, language], openBank }) => openBank().answer('DELETE', toPath`/admin/texts/${key}/${language}`),
})

const items = bankCommand({
  name: 'config',
  summary: 'Lists the configuration items of an application',
  options: APPLICATION_OPTION,
  examples: ['app config'],
  run: async ({ openBank, application }) => openBank().answer('GET', toPath`/admin/applications/${await application()}/config`),
})

const setItem = bankCommand({
  name: 'set-config',
  summary: 'Stores or, without a value, removes a configuration item of an application',
  words: { '<key>': 'its key', '[value]': 'JSON, or text that is none' },
  options: { ...APPLICATION_OPTION, scope: text('NAME', 'APPLICATION, which is the default, or ACTIVATION') },
  examples: ['app set-config limit 500', 'app set-config limit'],
  run: async ({ words: [key, value], values: { scope }, openBank, application }) => {
    const bank = openBank()
    const path = toPath`/admin/applications/${await application()}/config/${key}` + toQuery({ scope })
    if (value === undefined) return bank.answer('DELETE', path)
    return bank.answer('PUT', path, { value: readLooseJson(value) })
  },
})

export const app: Noun = {
  name: 'app',
  summary: 'Applications: settings, versions, the text that is compiled into the mobile app, and rules about its versions',
  commands: [
    list,
    create,
    show,
    change,
    addVersion,
    setVersion,
    sdkConfig,
    rules,
    addRule,
    removeRule,
    texts,
    setText,
    removeText,
    items,
    setItem,
  ],
}
