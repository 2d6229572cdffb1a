// pawl demo: binds a phone and has it approve, in one command.
import { BANK_OPTIONS } from '../bank.ts'
import { command, flag, text } from '../command.ts'

export const demo = command({
  name: 'demo',
  summary: 'Binds a phone to a user and lets it approve two payments, one without a connection, and reject a third',
  more: 'Each step of the bank is printed as the curl command that does the same. The phone stays, for use with pawl phone. The application is the default one of the server; if there is none, the demo creates PAWL_FIRST_APPLICATION or my-app. If no server runs and there is no data, the demo starts a server of its own.',
  options: {
    ...BANK_OPTIONS,
    user: text('NAME', 'whose phone it is; by default alice'),
    phonesUrl: text('URL', 'where phones reach the server; by default --url, or on this machine at PAWL_PORT or 8080'),
    algorithm: text('NAME', 'a phone of 4.0: EC_P384, EC_P384_ML_L3 or EC_P384_ML_L5; without it, of 3.3'),
    webhookServer: flag(
      'shows a webhook in any case: where the server may not send to this machine, at one that is started for it and thrown away',
    ),
    store: text('FILE', 'where the phone is kept, as pawl phone has it'),
  },
  examples: ['demo', 'demo --admin admin:THE-PASSWORD --algorithm EC_P384_ML_L3'],
  run: async ({ values, terminal, isJson }) =>
    (await import('../demo/demo.ts')).runDemo({ ...values, insecureStore: true }, terminal, isJson),
})
