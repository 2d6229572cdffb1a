// Declares pawl certificate: the certificates that mobile apps pin, and those that phones trust while an app is developed.
import { APPLICATION_OPTION, bankCommand } from '../bank-command.ts'
import { command, flag, many, type Noun, text } from '../command.ts'
import { readFile } from '../json-argument.ts'
import { toPath, toQuery } from '../query.ts'
import { parseCount, parseSeconds } from '../time.ts'

const NAME = 'the common name of the certificate, by which apps look it up'
const FORCE = { force: flag('pins a certificate for other names too') } as const

const list = bankCommand({
  name: 'list',
  summary: 'Shows pinned domains and certificates of an application, and the key that signs them',
  options: APPLICATION_OPTION,
  examples: ['certificate list', 'certificate list --app my-app --json'],
  run: async ({ openBank, application }) => openBank().answer('GET', toPath`/admin/apps/${await application()}`),
})

const addPem = bankCommand({
  name: 'add-pem',
  summary: 'Pins a certificate from a PEM file',
  words: { '<name>': NAME, '<file>': 'the file' },
  options: { ...APPLICATION_OPTION, ...FORCE },
  examples: ['certificate add-pem api.bank.example leaf.pem', "certificate add-pem '*.bank.example' leaf.pem"],
  run: async ({ words: [domain, file = ''], values: { force }, openBank, application }) => {
    const pem = readFile('the file', file)
    const bank = openBank()
    const path = toPath`/admin/apps/${await application()}/certificates/pem`
    return bank.answer('POST', path, { domain, pem, force })
  },
})

const addFingerprint = bankCommand({
  name: 'add-fingerprint',
  summary: 'Pins a certificate by its fingerprint',
  words: { '<name>': NAME, '<fingerprint>': 'SHA-256', '<expires>': 'seconds since 1970, or a date' },
  options: APPLICATION_OPTION,
  examples: ['certificate add-fingerprint api.bank.example 3b2f… 2030-12-31T12:00:00Z'],
  run: async ({ words: [domain, fingerprint, expires = ''], openBank, application }) => {
    const body = { domain, fingerprint, expires: parseSeconds(expires) }
    return openBank().answer('POST', toPath`/admin/apps/${await application()}/certificates/fingerprint`, body)
  },
})

const fetchLive = bankCommand({
  name: 'fetch',
  summary: 'Pins the certificate that a server shows',
  words: { '<domain>': 'the server' },
  options: { ...APPLICATION_OPTION, ...FORCE, port: text('N', 'its port; by default 443') },
  examples: ['certificate fetch api.bank.example'],
  run: async ({ words: [domain], values: { force, port }, openBank, application }) => {
    const body = { domain, port: parseCount('--port', port ?? '443'), force }
    return openBank().answer('POST', toPath`/admin/apps/${await application()}/certificates/auto`, body)
  },
})

const remove = bankCommand({
  name: 'remove',
  summary: 'Removes a pinned certificate; without a fingerprint, the name with all of its certificates',
  words: { '<name>': 'as it is listed', '[fingerprint]': 'SHA-256' },
  options: APPLICATION_OPTION,
  examples: ['certificate remove api.bank.example 3b2f…', 'certificate remove api.bank.example'],
  run: async ({ words: [domain, fingerprint], openBank, application }) => {
    const bank = openBank()
    const ofApp = toPath`/admin/apps/${await application()}`
    const rest = fingerprint === undefined ? `/domains${toQuery({ domain })}` : `/certificates${toQuery({ domain, fingerprint })}`
    return bank.answer('DELETE', ofApp + rest)
  },
})

const removeExpired = bankCommand({
  name: 'remove-expired',
  summary: 'Removes the certificates of all applications whose time is over',
  examples: ['certificate remove-expired'],
  run: ({ openBank }) => openBank().answer('DELETE', '/admin/certificates/expired'),
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
