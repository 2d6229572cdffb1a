// pawl serve: the server itself. bin/pawl.mjs starts it without this command line, so that it loads nothing else.
import { command } from '../command.ts'

export const serve = command({
  name: 'serve',
  summary: 'Serves until it is told to stop, as pawl without a command does',
  more: 'Settings are environment variables, docs/CONFIG.md lists them.',
  examples: ['serve'],
  run: async () => {
    await import('../../src/main.ts')
    return undefined
  },
})
