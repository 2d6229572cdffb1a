// Writes docs/CLI.md from the commands of pawl.
import { writeFileSync } from 'node:fs'
import { type Command, renderFlag } from '../cli/command.ts'
import { ENTRIES } from '../cli/entries.ts'
import { EXIT_CODES } from '../cli/fault.ts'
import { isNoun } from '../cli/program.ts'
import { runCommand } from './command-line.ts'

/** The text of docs/CLI.md. */
export const renderCliDocument = (): string => `# The command line

Made from the commands by \`node scripts/cli-docs.ts\`; \`test/docs.test.ts\` fails when it is out of date. \`npx pawl\` runs it in a checkout,
\`pawl\` in the image; \`--help\` behind any command says the same. Without a command pawl serves.

Every command takes \`--json\`, for programs: JSON on stdout, and a fault as \`{"error","exitCode"}\` on stderr. Else a fault is one line on
stderr, which the stack follows for code 7 with PAWL_LOG_LEVEL=debug.

| exit code | meaning |
|---|---|
${Object.values(EXIT_CODES)
  .map(([code, meaning]) => `| ${code} | ${meaning} |`)
  .join('\n')}

Commands that call a running server take its URL and the credential from the first of these: \`--url\` and \`--admin\` or \`--admin-file\`;
\`PAWL_URL\` and \`PAWL_ADMIN\`; the values that \`pawl login\` stored, which only that server gets; for the URL, the settings of a server on this machine.

Commands that open the database read the settings of the server ([CONFIG](CONFIG.md)): \`admin\`, \`audit export\`, \`audit verify\`, \`backup\`, \`import\`,
\`key\`, \`migrate\`, \`registration fence\`, \`restore\`, \`template import\`, \`user export\`, \`user erase\`, and commands with \`--local\`. They
can open an embedded database only while its server is stopped, except for \`backup\`.

| environment | what commands take from it |
|---|---|
| \`PAWL_URL\`, \`PAWL_ADMIN\` | the server, and the credential as \`USER:PASSWORD\` |
| \`PAWL_OTP\` | the one-time password of \`pawl registration create\` and \`commit\`, and of \`pawl operation offline\` |
| \`PAWL_CLIENT_CERTIFICATE\`, \`PAWL_CLIENT_KEY\` | PEM files that are shown to a server with [TLS](spec/cloud.md#23-client-certificates); \`NODE_EXTRA_CA_CERTS\` names its authority |
| \`PAWL_PHONES\` | the file of \`pawl phone\` |
| \`PAWL_PHONE_PASSPHRASE\`, \`PAWL_PHONE_PASSWORD\`, \`PAWL_PHONE_NEW_PASSWORD\` | what \`pawl phone\` would ask for |
| \`POWERAUTH_DATABASE_URL\`, \`POWERAUTH_SERVER_DB_MASTER_ENCRYPTION_KEY\` | what \`pawl import powerauth\` reads from |
| \`XDG_CONFIG_HOME\`, \`XDG_DATA_HOME\` | the directories below which \`pawl login\` and \`pawl phone\` keep what they keep; without them \`~/.config\` and \`~/.local/share\` |

${ENTRIES.map((entry) =>
  isNoun(entry)
    ? `## pawl ${entry.name}\n\n${entry.summary}.\n\n${entry.commands.map((one) => renderCommand(`${entry.name} ${one.name}`, one, '###')).join('\n')}`
    : renderCommand(entry.name, entry, '##'),
).join('\n')}`

function renderCommand(path: string, { summary, more, words = {}, options = {}, examples }: Command, heading: string): string {
  const call = ['pawl', path, ...Object.keys(words)].join(' ')
  const rows = [
    ...Object.entries(words),
    ...Object.entries(options)
      .filter(([name]) => !SHARED.has(name) || !('adminFile' in options))
      .map(([name, option]) => [renderFlag(name, option), option.text] as const),
  ]
  const list = rows.map(([name, text]) => `- \`${name}\`: ${text}`)
  const calls = 'adminFile' in options ? ' Calls the server.' : ''
  return `${heading} ${call}

${summary}.${more === undefined ? '' : ` ${more}`}${calls}

${examples.map((example) => `    pawl ${example}`).join('\n')}
${list.length === 0 ? '' : `\n${list.join('\n')}\n`}`
}

/** Options that the document describes once, above the commands. */
const SHARED: ReadonlySet<string> = new Set(['url', 'admin', 'adminFile'])

const usage = `Writes docs/CLI.md from the commands of pawl:
  node scripts/cli-docs.ts`

if (import.meta.main) {
  await runCommand({ usage }, () => writeFileSync(new URL('../docs/CLI.md', import.meta.url), renderCliDocument()))
}
