// Writes docs/CONFIG.md and .env.example from the tables of settings in src/config/config.ts, which includes the tables of the other files in
// its folder, and in src/config/secrets.ts: node scripts/config-docs.ts
import { writeFileSync } from 'node:fs'
import { SECRET_SETTINGS } from '../src/config/secrets.ts'
import { SETTINGS } from '../src/config/config.ts'
import type { Setting } from '../src/config/kinds.ts'
import { runCommand } from './command-line.ts'

const root = new URL('..', import.meta.url)

/** Text of docs/CONFIG.md. */
export const renderConfigMarkdown = (): string => `# Configuration

Made from the tables in \`src/config\` by \`node scripts/config-docs.ts\`; \`test/docs.test.ts\` fails when it is out of date.

pawl is configured by environment variables alone, and starts without any. A start with a wrong value, or with an unknown name
that begins with \`PAWL_\`, prints every problem, one a line, and ends with exit status 1. An empty value counts as not set.

**On Kubernetes**, set \`enableServiceLinks: false\` in the pod, as \`deploy/kubernetes/pawl.yaml\` does. Otherwise Kubernetes sets variables for each
Service of the namespace, and those of a Service \`pawl\` or \`pawl-…\` look like settings: \`PAWL_PORT=tcp://10.0.0.1:80\`, and names that end in
\`_SERVICE_HOST\`, \`_SERVICE_PORT\`, \`_PORT_80_TCP_ADDR\` and the like. pawl ignores a variable that has the address of its Service, and takes the
default. Where there is no default (\`PAWL_INTERNAL_PORT\` beside a Service \`pawl-internal\`), the start ends with a line that says so.

Traces have the settings of OpenTelemetry (\`OTEL_*\`): [OPERATIONS.md](OPERATIONS.md#traces).

## Settings

| name | value | default | what it does |
|---|---|---|---|
${settings.map(renderSettingRow).join('\n')}

## Secrets

Each secret may also come from a file, by its name followed by \`_FILE\`; a newline at the end of the file does not count.
Setting both is refused. Secrets never appear in the log.

| name | value | what it is |
|---|---|---|
${secretSettings.map(renderSecretRow).join('\n')}
`

/** Text of .env.example: every name with its default, commented out. */
export const renderEnvExample =
  (): string => `# Every setting of pawl with its default; docs/CONFIG.md explains them. Copy to .env and change what you need.
# For \`npm start\`: set -a; . ./.env; set +a; npm start

${settings.map(renderSettingExample).join('\n\n')}

# Secrets. Each may also come from a file: NAME_FILE=/path instead of NAME=value.

${secretSettings.map(renderSecretExample).join('\n\n')}
`

function renderSettingRow(setting: Setting): string {
  const fallback = setting.defaultLabel ?? (setting.default ? `\`${setting.default}\`` : 'none')
  const value = setting.unit === undefined ? setting.kind.label : `${setting.kind.label} ${setting.unit}`
  return `| \`${setting.name}\` | ${value} | ${fallback} | ${setting.description} |`
}

const renderSecretRow = ({ name, kind, description }: Setting): string => `| \`${name}\` | ${kind.label} | ${description} |`

function renderSettingExample(setting: Setting): string {
  const fallback = setting.defaultLabel === undefined ? (setting.default ?? '') : ''
  return `# ${setting.description}\n# ${setting.name}=${fallback}`
}

const renderSecretExample = ({ name, description }: Setting): string => `# ${description}\n# ${name}=`

const settings = Object.values<Setting>(SETTINGS)
const secretSettings = Object.values<Setting>(SECRET_SETTINGS)

const usage = `Writes docs/CONFIG.md and .env.example from the table of settings in src/config/config.ts:
  node scripts/config-docs.ts`

if (import.meta.main) {
  await runCommand({ usage }, () => {
    writeFileSync(new URL('docs/CONFIG.md', root), renderConfigMarkdown())
    writeFileSync(new URL('.env.example', root), renderEnvExample())
  })
}
