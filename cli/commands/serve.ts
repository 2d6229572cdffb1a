// pawl serve: the server itself. bin/pawl.mjs starts it without this command line, so that it loads nothing else.
import { command, flag, text } from '../command.ts'
import { usageFault } from '../fault.ts'

export const serve = command({
  name: 'serve',
  summary: 'Serves until it is told to stop, as pawl without a command does',
  more:
    'Settings are environment variables, docs/CONFIG.md lists them. With --phone, which is for development on the embedded database, the ' +
    'phones in the network reach what phones call, under TLS with a certificate of this machine; the bank reaches its API as before, on ' +
    'this machine alone.',
  options: {
    phone: flag('serves the phones in the network of this machine as well, and draws what is compiled into the app'),
    phoneHost: text('ADDRESS', 'serves phones at this address of this machine alone; by default at every one'),
    phonePort: text('N', 'the port; by default 8443, and 0 takes a free one'),
  },
  examples: ['serve', 'serve --phone'],
  run: async ({ values, terminal }) => {
    if (values.phone) return (await import('../dev/phones.ts')).servePhones(values, terminal)
    if (values.phoneHost !== undefined || values.phonePort !== undefined)
      throw usageFault('--phone-host and --phone-port belong to --phone')
    await import('../../src/main.ts')
    return undefined
  },
})
