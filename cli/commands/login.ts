// pawl login: keeps a credential for the commands that call the bank's API.
import { type Bank, connectBank } from '../bank.ts'
import { command, flag, type Terminal, text } from '../command.ts'
import { forgetCredential, storeCredential } from '../credential-store.ts'
import { bankUrl, readUrl } from '../environment.ts'
import { Fault, usageFault } from '../fault.ts'

export const login = command({
  name: 'login',
  summary: 'Checks a credential and keeps it for other commands, in a file that only this account may read',
  more: 'The password is asked for, or read from stdin where nobody can be asked.',
  options: {
    url: text('URL', "where the bank's API is; by default PAWL_URL, or on this machine at PAWL_INTERNAL_PORT, PAWL_PORT or 8080"),
    user: text('NAME', 'the user name; by default admin'),
    forget: flag('removes what is kept'),
  },
  examples: ['login', 'login --url https://pawl.internal:8081 --user ops', 'login --user bank <password-file', 'login --forget'],
  run: async ({ values: { url: given, user = 'admin', forget }, terminal }) => {
    if (forget) {
      const isForgotten = forgetCredential(terminal.env)
      return { json: { isForgotten }, text: isForgotten ? 'forgotten\n' : 'nothing was kept\n' }
    }
    if (user.includes(':')) throw usageFault('a user name has no colon')
    const url = readUrl(given || terminal.env['PAWL_URL'] || bankUrl(terminal.env))
    const admin = `${user}:${await readPassword(terminal, `Password of ${user} at ${url}: `)}`
    await check(connectBank(url, admin, terminal.env))
    const path = storeCredential(terminal.env, { url, admin })
    return { json: { url, user, path }, text: `${user} at ${url}, kept in ${path}\n` }
  },
})

async function readPassword(terminal: Terminal, question: string): Promise<string> {
  const password = (await terminal.askSecret(question)) ?? (await terminal.readInput()).replace(/\r?\n$/, '')
  if (password === '') throw new Fault('credential', 'no password was given: type it, or pass it with pawl login <FILE')
  return password
}

/** Checks the credential. HTTP 403 means that the password is right, and that the role may not list applications. */
async function check(bank: Bank): Promise<void> {
  try {
    await bank.call('GET', '/admin/applications')
  } catch (error) {
    if (!(error instanceof Fault && error.message.includes('HTTP 403'))) throw error
  }
}
