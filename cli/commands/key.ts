// Declares pawl key: makes, checks and rotates the master key, which encrypts the secrets in the database.
import { randomBytes } from 'node:crypto'
import { command, flag, type Noun } from '../command.ts'

const create = command({
  name: 'create',
  summary: 'Makes a master key and prints it, for PAWL_MASTER_KEY or the file of PAWL_MASTER_KEY_FILE',
  more: 'Without it no activation works any more: keep it apart from the database.',
  options: { wrapped: flag('has the key service of PAWL_VAULT_KEY_URL make one, which nobody sees but wrapped') },
  examples: ['key create >master.key', 'key create --wrapped >master.key'],
  run: async ({ terminal, values: { wrapped } }) => {
    const key = wrapped
      ? await (await import('../local/key-service.ts')).createWrappedKey(terminal)
      : randomBytes(32).toString('base64')
    return { json: { key }, text: `${key}\n` }
  },
})

const check = command({
  name: 'check',
  summary: 'Says whether the configured master key opens the configured database',
  more: 'An embedded database can be opened only while its server is stopped.',
  examples: ['key check'],
  run: async ({ terminal }) => (await import('../local/keys.ts')).checkKey(terminal),
})

const list = command({
  name: 'list',
  summary: 'Lists the master keys by id, and how many values of the database are sealed under each',
  more: 'It looks at every sealed value. A key without values may be removed from the settings. An embedded database can be opened only while its server is stopped.',
  examples: ['key list', 'key list --json'],
  run: async ({ terminal }) => (await import('../local/key-rotation.ts')).listKeys(terminal),
})

const rotate = command({
  name: 'rotate',
  summary: 'Seals every value of the database anew under the first master key of the settings',
  more:
    'Servers go on meanwhile. It may be ended at any moment and be run again: what is done stays done. Every server must have the first ' +
    'key before: docs/OPERATIONS.md, "A new master key". An embedded database only while its server is stopped.',
  examples: ['key rotate'],
  run: async ({ terminal }) => (await import('../local/key-rotation.ts')).rotateKeys(terminal),
})

const bind = command({
  name: 'bind',
  summary: 'Binds the sealed records of a database of an earlier version to their users',
  more:
    'Only once no process of the version before runs: it reads no bound record, and there is no way back. Two minutes later servers seal ' +
    'anew what is there, while they go on; pawl doctor says how much is left. A new database has all records bound, and an embedded one ' +
    'begins at its start. docs/UPGRADE.md, "Several processes, without an interruption".',
  examples: ['key bind'],
  run: async ({ terminal }) => (await import('../local/record-binding.ts')).bindRecords(terminal),
})

export const key: Noun = {
  name: 'key',
  summary: 'The master key, which encrypts the secrets in the database',
  commands: [create, check, list, rotate, bind],
}
