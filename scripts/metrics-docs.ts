// Writes docs/METRICS.md from the metrics as they are registered.
import { writeFileSync } from 'node:fs'
import { createInstruments } from '../src/metrics/instruments.ts'
import { runCommand } from './command-line.ts'

/** The text of docs/METRICS.md. */
export const renderMetricsDocument = (): string => `# Metrics

Made from \`src/metrics/instruments.ts\` by \`node scripts/metrics-docs.ts\`; \`test/docs.test.ts\` fails when it is out of date.

\`GET /metrics\` answers in the text format of Prometheus. It is served where the cloud API is, never on the listener for phones. With
\`PAWL_INTERNAL_PORT\` whoever reaches the internal listener may read it: Prometheus needs no credential. Without it, the one listener asks for
HTTP Basic, of an administrator or of a \`read-only\` credential without application. \`PAWL_METRICS\` changes that: \`open\`, \`basic\` or \`off\`.
A client certificate that stands for such a credential is enough. \`deploy/prometheus/prometheus.yml\` is for two processes on one machine.

\`\`\`yaml
scrape_configs:
  - job_name: pawl
    static_configs: [{ targets: ['pawl.internal:8081'] }]
    # With one listener, or PAWL_METRICS=basic:
    # basic_auth: { username: prometheus, password_file: /etc/prometheus/pawl.password }
\`\`\`

Each process counts what it does itself: add the counters of all processes. With \`PAWL_PROCESSES\` one answer has the metrics of all workers, told apart
by the label \`worker\`. The gauges of operations, webhooks, audit log and certificates come from the
database and are the same in every process: take \`max\`. One statement reads them, at most every five seconds and only while somebody
scrapes. When the database hangs, a scrape takes half a second longer. After a minute without a reading these gauges are left
out, and \`pawl_database_reading_timestamp_seconds\` stands still.

No label has an id of a user, an activation or an operation, or anything that a caller sent. \`route\` is the pattern (\`/admin/users/:name\`),
and every unknown path is \`unknown\`. \`webhook\` is the id that \`pawl webhook list\` shows, or \`apns\` or \`fcm\` for pushes. \`application\` and \`domain\`
are names that administrators gave. There are at most 200 webhooks and 200 domains.

## What they cost

Counting one \`signature/validate\` takes 0.3 to 0.5 µs of processor time, less than a thousandth of the whole
request (\`npm run bench -- --works validate\`, protocol 3.3). Writing an answer of 600 series takes 1 ms.

## Alerts

\`deploy/prometheus/pawl.rules.yml\` has the alerts, and [OPERATIONS](OPERATIONS.md) a page for each: what it means, what to look at, what to do.
\`deploy/grafana/pawl.json\` is a dashboard over the same metrics.

## The metrics

| name | type | labels | what it is |
|---|---|---|---|
${listMetrics().map(renderRow).join('\n')}
`

export interface ListedMetric {
  readonly name: string
  readonly type: string
  readonly labels: readonly string[]
  readonly help: string
}

/** Every metric, in the order of its registration. */
export function listMetrics(): readonly ListedMetric[] {
  // The package's class has the member `labelNames`; its interface lacks it.
  const listed = createInstruments().registry.getMetricsAsArray() as unknown as (Omit<ListedMetric, 'labels'> & {
    readonly labelNames: readonly string[]
  })[]
  return listed.map(({ name, type, labelNames, help }) => ({ name, type, labels: labelNames, help }))
}

const renderRow = ({ name, type, labels, help }: ListedMetric): string =>
  `| \`${name}\` | ${type} | ${labels.map((label) => `\`${label}\``).join(', ')} | ${help} |`

const usage = `Writes docs/METRICS.md from the metrics as they are registered:
  node scripts/metrics-docs.ts`

if (import.meta.main) {
  await runCommand({ usage }, () => writeFileSync(new URL('../docs/METRICS.md', import.meta.url), renderMetricsDocument()))
}
