// Pinned certificates and version rules of mobile apps from the command line, through the administration API of a running server, so that
// it works beside the embedded database and takes effect at once.
import { readFileSync } from 'node:fs'
import { BANK_OPTIONS, BANK_USAGE, type BankCall, callBank, readBank } from './bank-api.ts'
import { runCommand, UsageError } from './command-line.ts'

interface Options {
  readonly app: string
  readonly force: boolean
  readonly port: number
}

interface Command {
  readonly usage: string
  /** The last argument may be missing when its name is in brackets. */
  readonly call: (options: Options, ...given: string[]) => BankCall
}

const ofApp = (app: string, rest = ''): string => `/admin/apps/${encodeURIComponent(requireApp(app))}${rest}`
const query = (members: Record<string, string>): string => `?${new URLSearchParams(members).toString()}`

const commands: Record<string, Command> = {
  apps: { usage: '', call: () => ({ method: 'GET', path: '/admin/apps' }) },
  'create-app': {
    usage: '[DISPLAY-NAME]',
    call: ({ app }, displayName) => ({ method: 'POST', path: '/admin/apps', body: { name: requireApp(app), displayName } }),
  },
  list: { usage: '', call: ({ app }) => ({ method: 'GET', path: ofApp(app) }) },
  'add-pem': {
    usage: 'DOMAIN FILE',
    call: ({ app, force }, domain = '', file = '') => ({
      method: 'POST',
      path: ofApp(app, '/certificates/pem'),
      body: { domain, pem: readFileSync(file, 'utf8'), force },
    }),
  },
  'add-fingerprint': {
    usage: 'DOMAIN FINGERPRINT EXPIRES',
    call: ({ app }, domain, fingerprint, expires = '') => ({
      method: 'POST',
      path: ofApp(app, '/certificates/fingerprint'),
      body: { domain, fingerprint, expires: parseTime(expires) },
    }),
  },
  fetch: {
    usage: 'DOMAIN',
    call: ({ app, force, port }, domain) => ({
      method: 'POST',
      path: ofApp(app, '/certificates/auto'),
      body: { domain, port, force },
    }),
  },
  remove: {
    usage: 'DOMAIN [FINGERPRINT]',
    call: ({ app }, domain = '', fingerprint) => ({
      method: 'DELETE',
      path:
        fingerprint === undefined
          ? ofApp(app, `/domains${query({ domain })}`)
          : ofApp(app, `/certificates${query({ domain, fingerprint })}`),
    }),
  },
  'remove-expired': { usage: '', call: () => ({ method: 'DELETE', path: '/admin/certificates/expired' }) },
  versions: { usage: '', call: ({ app }) => ({ method: 'GET', path: ofApp(app, '/versions') }) },
  'add-version': {
    usage: 'JSON',
    call: ({ app }, json = '') => ({ method: 'POST', path: ofApp(app, '/versions'), body: JSON.parse(json) }),
  },
  'remove-version': { usage: 'ID', call: ({ app }, id) => ({ method: 'DELETE', path: ofApp(app, `/versions/${id}`) }) },
  texts: { usage: '', call: () => ({ method: 'GET', path: '/admin/texts' }) },
  'set-text': {
    usage: 'KEY LANGUAGE TEXT',
    call: (_options, messageKey, language, text) => ({
      method: 'POST',
      path: '/admin/texts',
      body: { messageKey, language, text },
    }),
  },
  'remove-text': {
    usage: 'KEY LANGUAGE',
    call: (_options, key = '', language = '') => ({
      method: 'DELETE',
      path: `/admin/texts/${encodeURIComponent(key)}/${language}`,
    }),
  },
}

const WORDS_MAX = 4
const calls = Object.entries(commands).map(([name, { usage }]) => `${name} ${usage}`.trimEnd())
const options = {
  ...BANK_OPTIONS,
  app: { type: 'string', default: '' },
  force: { type: 'boolean', default: false },
  port: { type: 'string', default: '443' },
} as const

await runCommand({ usage: describeUsage(), options, wordsMax: WORDS_MAX }, async ({ values, words: [name = '', ...given] }) => {
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (command === undefined)
    throw new UsageError(`${name === '' ? 'a command is needed' : `${name} is no command`}: ${calls.join('; ')}`)
  if (!fits(command.usage, given.length)) throw new UsageError(`give ${name} ${command.usage}`.trimEnd())
  const bank = readBank(values, process.env)
  const call = command.call({ app: values.app, force: values.force, port: Number(values.port) }, ...given)
  process.stdout.write(`${JSON.stringify(await callBank(bank, call), null, 2)}\n`)
})

function requireApp(app: string): string {
  if (app === '') throw new UsageError('--app NAME is needed')
  return app
}

function fits(usage: string, given: number): boolean {
  const names = usage.split(' ').filter((name) => name !== '')
  return given <= names.length && given >= names.filter((name) => !name.startsWith('[')).length
}

/** Seconds since 1970, given as such or as a date: `openssl x509 -enddate` prints one. */
function parseTime(text: string): number {
  const seconds = /^\d+$/.test(text) ? Number(text) : Math.floor(Date.parse(text) / 1000)
  if (Number.isNaN(seconds)) throw new Error(`${text} is no time: give seconds since 1970, or a date like 2027-01-31T12:00:00Z`)
  return seconds
}

function describeUsage(): string {
  return `Pinned certificates and version rules of mobile apps:
  node scripts/pinning.ts --admin USER:PASSWORD [--url URL] [--app NAME] [--force] [--port N] COMMAND [ARGUMENT ...]
${BANK_USAGE}
Commands:
${calls.map((call) => `  ${call}`).join('\n')}`
}
