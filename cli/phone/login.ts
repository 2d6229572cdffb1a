// The part of a browser in `pawl phone bind --oidc`: the user opens an address, and types the address at which the browser ended.
import type { Handset } from '../../phone/handset.ts'
import { beginLogin, identityOf } from '../../phone/oidc.ts'
import type { Terminal } from '../command.ts'
import { usageFault } from '../fault.ts'

/** Sends the user to a provider, and returns what the browser brought back. */
export async function logIn(phone: Handset, providerId: string, terminal: Terminal): Promise<Readonly<Record<string, string>>> {
  const session = beginLogin(await phone.readOidcConfig(providerId))
  terminal.note(`Log in at\n${session.url}`)
  const question = 'The address at which the browser ended: '
  const address = (await terminal.askSecret(question)) ?? (await terminal.readInput())
  if (!URL.canParse(address.trim())) throw usageFault('the address at which the browser ended is none')
  return identityOf(session, address.trim())
}
