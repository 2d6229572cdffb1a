// Runs the login of `pawl phone bind --oidc`: the user opens an address in a browser, and types the address at which the browser ended.
import type { Handset } from '../../phone/handset.ts'
import { beginLogin, identityOf } from '../../phone/oidc.ts'
import type { Terminal } from '../command.ts'
import { usageFault } from '../fault.ts'

/** Sends the user to a provider, and returns the identity attributes for the activation, made from the address that the user types. */
export async function logIn(phone: Handset, providerId: string, terminal: Terminal): Promise<Readonly<Record<string, string>>> {
  const session = beginLogin(await phone.readOidcConfig(providerId))
  terminal.note(`Log in at\n${session.url}`)
  const question = 'The address at which the browser ended: '
  const address = (await terminal.askSecret(question)) ?? (await terminal.readInput())
  if (!URL.canParse(address.trim())) throw usageFault('the address at which the browser ended is none')
  return identityOf(session, address.trim())
}
