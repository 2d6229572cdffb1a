// pawl import: takes over the database of another server.
import { command, flag, type Noun, text } from '../command.ts'

const powerauth = command({
  name: 'powerauth',
  summary: 'Takes over applications, phones, tokens, templates and callbacks of a PowerAuth server 1.9',
  more: 'It only reads the PostgreSQL database of that server, and writes into the database of the settings; an embedded one can be opened only while its server is stopped. It skips rows that are there already, so you may stop it and start it again. Only one import runs at a time. It leaves out and names rows that it cannot take. docs/IMPORT.md has the order of the day.',
  options: {
    from: text('URL', 'its database; by default POWERAUTH_DATABASE_URL, which keeps the password out of the list of processes'),
    masterDbKeyFile: text(
      'FILE',
      'its master DB encryption key in Base64; by default POWERAUTH_SERVER_DB_MASTER_ENCRYPTION_KEY; neither where its records are not encrypted',
    ),
    timeZone: text('ZONE', 'the time zone of its Java process, which its times are in; by default UTC'),
    dryRun: flag('imports nothing and says what would be imported, what left out, and why'),
    liveOnly: flag('leaves out activations that are removed'),
    leftOutFile: text('FILE', 'writes every row that is left out or changed, with what is wrong in it, a JSON object a line'),
  },
  examples: [
    'import powerauth --from postgres://reader@db.internal/powerauth --dry-run',
    'import powerauth --from postgres://reader@db.internal/powerauth --master-db-key-file master-db.key --time-zone Europe/Prague',
  ],
  run: async ({ values, terminal }) => (await import('../import/run.ts')).importPowerauth(terminal, values),
})

export const importFrom: Noun = {
  name: 'import',
  summary: 'Takes over applications and phones from another server',
  commands: [powerauth],
}
