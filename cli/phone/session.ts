// Begins every command about a phone: opens the file of phones, finds the phone, asks for the password of its user.
import type { Handset, HandsetRecord, Unlock } from '../../phone/handset.ts'
import { openHandset } from '../../phone/handset-open.ts'
import type { Terminal } from '../command.ts'
import { explainFault, Fault, usageFault } from '../fault.ts'
import type { PhoneValues } from './options.ts'
import { openStore, phonesPath, type PhoneStore } from './store.ts'

/** Opens the file of phones. With `mustExist` false it begins a missing file. */
export const openPhones = ({ store, insecureStore }: PhoneValues, terminal: Terminal, mustExist = true): Promise<PhoneStore> =>
  openStore({
    path: store ?? phonesPath(terminal.env),
    isInsecure: insecureStore,
    mustExist,
    passphrase: async () => {
      const given = terminal.env['PAWL_PHONE_PASSPHRASE'] || (await terminal.askSecret('Passphrase of the file of phones: '))
      if (!given) throw usageFault('PAWL_PHONE_PASSPHRASE is needed where nobody can be asked')
      return given
    },
  })

/** The phone that was named, or the only one of the file. Throws a Fault when there is none. */
function choosePhone({ path, phones }: PhoneStore, named: string | undefined): readonly [string, HandsetRecord] {
  const names = [...phones.keys()]
  const name = named ?? (names.length === 1 ? names[0] : undefined)
  if (name === undefined)
    throw names.length === 0
      ? new Fault('missing', `there is no phone in ${path}: pawl phone bind makes one`)
      : usageFault(`--phone is one of ${names.join(', ')}`)
  const record = phones.get(name)
  if (record === undefined)
    throw new Fault(
      'missing',
      `there is no phone ${name} in ${path}: ${names.length === 0 ? 'pawl phone bind makes one' : `it has ${names.join(', ')}`}`,
    )
  return [name, record]
}

export interface Session {
  readonly name: string
  readonly phone: Handset
  readonly store: PhoneStore
}

/** Runs `work` with the phone that the options name, or the only one. Throws a Fault when the server refuses or does not answer. */
export async function withPhone<T>(values: PhoneValues, terminal: Terminal, work: (session: Session) => Promise<T>): Promise<T> {
  const store = await openPhones(values, terminal)
  try {
    const [name, record] = choosePhone(store, values.phone)
    return await work({ name, phone: openHandset(record, store.save), store }).catch((error: unknown) => {
      throw toFault(error, record.identity.url)
    })
  } finally {
    store.close()
  }
}

/** Turns an error of a phone into a Fault that names its server. */
export function toFault(error: unknown, url: string): unknown {
  if (error instanceof Fault || !(error instanceof Error)) return error
  const said = explainFault(error)
  if (error instanceof URIError) return usageFault('the query has a % that nobody can decode: a % itself is written %25')
  // Node refuses a method or header that no request can have.
  if (error instanceof TypeError && 'code' in error) return usageFault(`the request cannot be sent: ${said}`)
  if ('syscall' in error || 'code' in error)
    return new Fault('unreachable', `${url} does not answer the phone: ${said}; check that it runs, and that this is its address`)
  return new Fault(
    said.startsWith('HTTP 404') ? 'missing' : 'refused',
    said.startsWith('HTTP ') ? `${url} refuses: ${said}` : said,
  )
}

/** The password of the phone, from the environment or from its user. */
export async function readPassword(
  terminal: Terminal,
  question = 'Password of the phone: ',
  name = 'PAWL_PHONE_PASSWORD',
): Promise<string> {
  const given = terminal.env[name] || (await terminal.askSecret(question))
  if (!given) throw usageFault(`${name} is needed where nobody can be asked`)
  return given
}

/** Biometry when the command line says so, else the password. Whoever types the password is shown `meant` first: what it approves. */
export const readUnlock = async (isByBiometry: boolean, terminal: Terminal, meant = ''): Promise<Unlock> =>
  isByBiometry ? { isByBiometry } : { password: await readPassword(terminal, `${meant}Password of the phone: `) }
