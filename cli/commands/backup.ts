// Declares pawl backup and pawl restore: write the embedded database into one file, and make it from that file.
import { command } from '../command.ts'

export const backup = command({
  name: 'backup',
  summary: 'Writes the embedded database into a file, also while its server runs',
  more:
    'The file has everything that was committed. The master key is not in it: keep master.key of PAWL_DATA_DIR elsewhere, because without it no ' +
    'activation works. PostgreSQL has programs of its own: docs/OPERATIONS.md, "Backup".',
  words: { '<file>': 'where to write it; there must be none of that name' },
  examples: ['backup pawl-2027-01-31.backup'],
  run: async ({ words: [file], terminal }) => (await import('../local/backup.ts')).backUpLocal(terminal, file),
})

export const restore = command({
  name: 'restore',
  summary: 'Makes the embedded database of PAWL_DATA_DIR from a file that pawl backup wrote',
  more:
    'There must be no database yet. Then put master.key beside it, and read docs/OPERATIONS.md, "After a restore": the database has ' +
    'forgotten codes that were accepted since.',
  words: { '<file>': 'what pawl backup wrote' },
  examples: ['restore pawl-2027-01-31.backup'],
  run: async ({ words: [file], terminal }) => (await import('../local/backup.ts')).restoreLocal(terminal, file),
})
