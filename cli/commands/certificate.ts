// Declares pawl certificate: the certificates that mobile apps pin, and those that phones trust while an app is developed.
import { APPLICATION_OPTION, chooseApplication } from '../applications.ts'
import { BANK_OPTIONS, openBank } from '../bank.ts'
import { command, flag, many, type Noun, text } from '../command.ts'
import { readFile } from '../json-argument.ts'
import { toPath, toQuery } from '../query.ts'
import { parseCount, parseSeconds } from '../time.ts'

const OPTIONS = { ...BANK_OPTIONS, ...APPLICATION_OPTION } as const
const NAME = 'the common name of the certificate, by which apps look it up'
const FORCE = { force: flag('pins a certificate for other names too') } as const

const list = command({
  name: 'list',
  summary: 'Shows pinned domains and certificates of an application, and the key that signs them',
  options: OPTIONS,
  examples: ['certificate list', 'certificate list --app my-app --json'],
  run: async ({ values, terminal }) => {
    const bank = openBank(values, terminal)
    return { json: await bank.call('GET', toPath`/admin/apps/${await chooseApplication(bank, values.app)}`) }
  },
})

const addPem = command({
  name: 'add-pem',
  summary: 'Pins a certificate from a PEM file',
  words: { '<name>': NAME, '<file>': 'the file' },
  options: { ...OPTIONS, ...FORCE },
  examples: ['certificate add-pem api.bank.example leaf.pem', "certificate add-pem '*.bank.example' leaf.pem"],
  run: async ({ words: [domain, file = ''], values: { force, app, ...values }, terminal }) => {
    const pem = readFile('the file', file)
    const bank = openBank(values, terminal)
    const path = toPath`/admin/apps/${await chooseApplication(bank, app)}/certificates/pem`
    return { json: await bank.call('POST', path, { domain, pem, force }) }
  },
})

const addFingerprint = command({
  name: 'add-fingerprint',
  summary: 'Pins a certificate by its fingerprint',
  words: { '<name>': NAME, '<fingerprint>': 'SHA-256', '<expires>': 'seconds since 1970, or a date' },
  options: OPTIONS,
  examples: ['certificate add-fingerprint api.bank.example 3b2f… 2027-01-31T12:00:00Z'],
  run: async ({ words: [domain, fingerprint, expires = ''], values: { app, ...values }, terminal }) => {
    const body = { domain, fingerprint, expires: parseSeconds(expires) }
    const bank = openBank(values, terminal)
    return {
      json: await bank.call('POST', toPath`/admin/apps/${await chooseApplication(bank, app)}/certificates/fingerprint`, body),
    }
  },
})

const fetchLive = command({
  name: 'fetch',
  summary: 'Pins the certificate that a server shows',
  words: { '<domain>': 'the server' },
  options: { ...OPTIONS, ...FORCE, port: text('N', 'its port; by default 443') },
  examples: ['certificate fetch api.bank.example'],
  run: async ({ words: [domain], values: { force, app, port, ...values }, terminal }) => {
    const body = { domain, port: parseCount('--port', port ?? '443'), force }
    const bank = openBank(values, terminal)
    return { json: await bank.call('POST', toPath`/admin/apps/${await chooseApplication(bank, app)}/certificates/auto`, body) }
  },
})

const remove = command({
  name: 'remove',
  summary: 'Removes a pinned certificate; without a fingerprint, the name with all of its certificates',
  words: { '<name>': 'as it is listed', '[fingerprint]': 'SHA-256' },
  options: OPTIONS,
  examples: ['certificate remove api.bank.example 3b2f…', 'certificate remove api.bank.example'],
  run: async ({ words: [domain, fingerprint], values: { app, ...values }, terminal }) => {
    const bank = openBank(values, terminal)
    const ofApp = toPath`/admin/apps/${await chooseApplication(bank, app)}`
    const rest = fingerprint === undefined ? `/domains${toQuery({ domain })}` : `/certificates${toQuery({ domain, fingerprint })}`
    return { json: await bank.call('DELETE', ofApp + rest) }
  },
})

const removeExpired = command({
  name: 'remove-expired',
  summary: 'Removes the certificates of all applications whose time is over',
  options: BANK_OPTIONS,
  examples: ['certificate remove-expired'],
  run: async ({ values, terminal }) => ({ json: await openBank(values, terminal).call('DELETE', '/admin/certificates/expired') }),
})

const dev = command({
  name: 'dev',
  summary: 'Makes an authority and a certificate for development, and says how phones trust them',
  more:
    'The certificate is for localhost, 127.0.0.1, ::1, 10.0.2.2 (what an emulator of Android calls this machine), the addresses of this ' +
    'machine, and what --name adds. pawl serve --phone makes them as well, where there are none.',
  options: {
    name: many('NAME', 'another host name or address'),
    folder: text('DIR', 'where they are kept; by default phone-tls in PAWL_DATA_DIR, where pawl serve --phone looks for them'),
    force: flag('replaces those that are there; phones have to trust the new authority'),
  },
  examples: ['certificate dev', 'certificate dev --name laptop.local', 'certificate dev --force'],
  run: async ({ values, terminal }) => (await import('../dev/make.ts')).makeCertificates(values, terminal),
})

export const certificate: Noun = {
  name: 'certificate',
  summary: 'Certificates that mobile apps pin, and those of development',
  commands: [list, addPem, addFingerprint, fetchLive, remove, removeExpired, dev],
}
