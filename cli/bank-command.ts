// Declares commands that call the cloud API.
import { chooseApplication } from './applications.ts'
import { type Bank, BANK_OPTIONS, openBank } from './bank.ts'
import { type Answer, type Command, command, type Given, type Options, text } from './command.ts'

/** The option of every command about one application. */
export const APPLICATION_OPTION = { app: text('ID', 'the application; by default the default one of the server') } as const

export type BankGiven<O extends Options> = Given<typeof BANK_OPTIONS & O> & {
  /** Finds server and credential, as openBank does. */
  readonly openBank: () => Bank
  /** The application of --app, else the default one of the server, as chooseApplication finds it. */
  readonly application: () => Promise<string>
}

interface BankCommand<O extends Options> extends Omit<Command<O>, 'run'> {
  readonly run: (given: BankGiven<O>) => Promise<Answer | undefined>
}

/** Declares a command of the cloud API. It has BANK_OPTIONS before its own; a command about one application has APPLICATION_OPTION. */
export const bankCommand = <const O extends Options = typeof BANK_OPTIONS>({ run, ...one }: BankCommand<O>): Command =>
  command<typeof BANK_OPTIONS & O>({
    ...one,
    options: { ...BANK_OPTIONS, ...(one.options as O) },
    run: (given) => {
      let bank: Bank | undefined
      // Once, because the file of a credential may be a pipe.
      const open = (): Bank => (bank ??= openBank(given.values, given.terminal))
      const { app } = given.values as { readonly app?: string }
      return run({ ...given, openBank: open, application: () => chooseApplication(open(), app) })
    },
  })
