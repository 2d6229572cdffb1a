// Declares pawl user: credentials of back ends and of people who call the bank's API, and the export and erasure of a user of the bank.
import { X509Certificate } from 'node:crypto'
import { bankCommand } from '../bank-command.ts'
import { command, flag, many, type Noun, text } from '../command.ts'
import { Fault, usageFault } from '../fault.ts'
import { readBytes } from '../json-argument.ts'
import { answerList } from '../output.ts'
import { compact, toPath } from '../query.ts'
import { parseCount, parseMilliseconds } from '../time.ts'

const list = bankCommand({
  name: 'list',
  summary: 'Lists credentials',
  examples: ['user list'],
  run: async ({ openBank }) => answerList(await openBank().call('GET', '/admin/users'), 'users'),
})

const show = bankCommand({
  name: 'show',
  summary: 'A credential: its role, its application, when it ends',
  words: { '<name>': 'the user name' },
  examples: ['user show bank'],
  run: async ({ words: [name = ''], openBank }) => {
    const { users } = await openBank().call<{ users: readonly { username: string }[] }>('GET', '/admin/users')
    const found = users.find(({ username }) => username === name)
    if (found === undefined) throw new Fault('missing', `there is no credential ${name}`)
    return { json: found }
  },
})

const create = bankCommand({
  name: 'create',
  summary: 'Creates a credential; its password is shown this once',
  words: { '<name>': 'the user name', '<role>': 'admin, integration, verification, internal or read-only' },
  options: {
    app: text('ID', 'the application of an integration or verification'),
    from: many('ADDRESS', 'an address or CIDR range it may be used from; by default from anywhere'),
    expires: text('TIME', 'when it ends: milliseconds since 1970, or a date'),
    passwordStdin: flag('reads the password from stdin instead of having one made'),
  },
  examples: ['user create bank integration --app my-app', 'user create auditor read-only --expires 2027-12-31'],
  run: async ({ words: [username, role], values: { app, from, expires, passwordStdin }, terminal, openBank }) => {
    const body = compact({
      username,
      role,
      application: app,
      allowedAddresses: from.length === 0 ? undefined : from,
      expiresAt: expires === undefined ? undefined : parseMilliseconds(expires),
      password: passwordStdin ? (await terminal.readInput()).replace(/\r?\n$/, '') : undefined,
    })
    return openBank().answer('POST', '/admin/users', body)
  },
})

const allow = bankCommand({
  name: 'allow',
  summary: 'Sets the addresses that a credential may be used from; those set before are gone',
  more: 'Without --from it may be used from anywhere.',
  words: { '<name>': 'the user name' },
  options: { from: many('ADDRESS', 'an address or CIDR range; may be given several times') },
  examples: ['user allow bank --from 10.20.0.0/16 --from 10.30.1.7'],
  run: async ({ words: [name], values: { from }, openBank }) => {
    const path = toPath`/admin/users/${name}/allowed-addresses`
    return openBank().answer('PUT', path, { allowedAddresses: from })
  },
})

const certificate = bankCommand({
  name: 'certificate',
  summary: 'Says which client certificates stand for a credential, in place of those there were',
  more: 'Without --file none does. During a renewal name the old and the new one.',
  words: { '<name>': 'the user name' },
  options: { file: many('FILE', 'a certificate as PEM; may be given several times') },
  examples: ['user certificate bank --file bank-2026.pem --file bank-2027.pem'],
  run: async ({ words: [name], values: { file }, openBank }) => {
    const certificates = file.map(readFingerprint)
    return openBank().answer('PUT', toPath`/admin/users/${name}/certificates`, { certificates })
  },
})

/** SHA-256 of the first certificate in a file. */
function readFingerprint(path: string): string {
  const file = readBytes('--file', path)
  try {
    return new X509Certificate(file).fingerprint256.replaceAll(':', '').toLowerCase()
  } catch {
    throw usageFault(`--file: ${path} holds no certificate`)
  }
}

const rights = bankCommand({
  name: 'rights',
  summary: 'Says what a credential may do beside its role, in place of what was said before',
  more: 'Without --right nothing. docs/DOORS.md, "Encrypted endpoints", and docs/REFERENCE-API.md, "What it gives away", say what they open.',
  words: { '<name>': 'the user name' },
  options: { right: many('RIGHT', 'envelopes:application or keys:derive; may be given several times') },
  examples: ['user rights bank --right envelopes:application', 'user rights bank'],
  run: ({ words: [name], values: { right }, openBank }) =>
    openBank().answer('PATCH', toPath`/admin/users/${name}`, { rights: right }),
})

const password = bankCommand({
  name: 'password',
  summary: 'Gives a credential a new password, which is shown this once',
  words: { '<name>': 'the user name' },
  options: {
    keepPreviousSeconds: text('N', 'how long the old one is good too'),
    passwordStdin: flag('reads the password from stdin instead of having one made'),
  },
  examples: ['user password bank --keep-previous-seconds 3600'],
  run: async ({ words: [name], values: { keepPreviousSeconds: keep, passwordStdin }, terminal, openBank }) => {
    const body = compact({
      keepPreviousSeconds: keep === undefined ? undefined : parseCount('--keep-previous-seconds', keep),
      password: passwordStdin ? (await terminal.readInput()).replace(/\r?\n$/, '') : undefined,
    })
    return openBank().answer('POST', toPath`/admin/users/${name}/password`, body)
  },
})

const remove = bankCommand({
  name: 'remove',
  summary: 'Removes a credential',
  words: { '<name>': 'the user name' },
  examples: ['user remove bank'],
  run: async ({ words: [name], openBank }) => openBank().answer('DELETE', toPath`/admin/users/${name}`),
})

const exportData = command({
  name: 'export',
  summary: 'Prints as JSON everything that the configured database stores on a user of the bank, without what is secret',
  more: 'In all applications. The embedded database only while its server is stopped.',
  words: { '<user>': 'the user, as the bank names it: no credential' },
  examples: ['user export alice', 'user export alice --json'],
  run: async ({ words: [userId = ''], terminal }) => (await import('../local/user-data.ts')).exportLocal(terminal, userId),
})

const erase = command({
  name: 'erase',
  summary: 'Erases a user of the bank from the configured database; a phone that is bound to the user verifies nothing any more',
  more:
    'In all applications, and there is no way back. In the audit log a pseudonym takes the place of the user, and the log still verifies. ' +
    'Until two seconds after its end servers refuse to write about the user. ' +
    'docs/OPERATIONS.md, "A user asks for their data, or to be forgotten", names what it does not reach. The embedded database only while its server is stopped.',
  words: { '<user>': 'the user, as the bank names it: no credential' },
  options: { yes: flag('erases: without it nothing is done') },
  examples: ['user erase alice --yes'],
  run: async ({ words: [userId = ''], values: { yes }, terminal }) => {
    if (!yes) throw usageFault('there is no way back: add --yes to erase the user')
    return (await import('../local/user-data.ts')).eraseLocal(terminal, userId)
  },
})

export const user: Noun = {
  name: 'user',
  summary: "Users of the bank's API, back ends and people; and what is stored on a user of the bank",
  commands: [list, show, create, allow, certificate, rights, password, remove, exportData, erase],
}
