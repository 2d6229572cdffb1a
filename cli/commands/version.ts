// Declares pawl version: prints the versions of pawl and of Node.
import packageJson from '../../package.json' with { type: 'json' }
import { command } from '../command.ts'

export const version = command({
  name: 'version',
  summary: 'Says which version this is, as pawl --version does',
  examples: ['version'],
  run: async () => {
    const { version: pawl } = packageJson
    return { json: { pawl, node: process.versions.node }, text: `pawl ${pawl}, Node ${process.versions.node}\n` }
  },
})
