// The files shipped for operators are consistent: alerts, their pages and the dashboard name only metrics and labels that exist, and refer to
// each other.
import { spawnSync } from 'node:child_process'
import { globSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { listMetrics } from '../scripts/metrics-docs.ts'
import { SECRET_SETTINGS } from '../src/config/secrets.ts'
import { SETTINGS } from '../src/config/config.ts'
import { checkShippedConfiguration, HAPROXY, hasHaproxy } from './helpers/haproxy.ts'

const readText = (path: string): string => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')
const rules = readText('deploy/prometheus/pawl.rules.yml')
const ruleTests = readText('deploy/prometheus/pawl.test.yml')
const dashboard = readText('deploy/grafana/pawl.json')
const pages = readText('docs/OPERATIONS.md')

const listAll = (text: string, pattern: RegExp): string[] => [...text.matchAll(pattern)].map(([, found = '']) => found)
const alerts = listAll(rules, /alert: (\w+)/g)

/** Every name by which a metric may be asked for, with its labels. */
const metrics = new Map(
  listMetrics().flatMap(({ name, type, labels }) => {
    const own = new Set([...labels, 'job', 'instance'])
    if (type !== 'histogram') return [[name, own] as const]
    return [`${name}_sum`, `${name}_count`, `${name}_bucket`].map((each) => [each, new Set([...own, 'le'])] as const)
  }),
)

describe.each([
  ['the alerts', rules],
  ['the tests of the alerts', ruleTests],
  ['the dashboard', dashboard],
  ['the pages of the alerts', pages],
])('%s', (_, text) => {
  const named = [...text.matchAll(/\b((?:pawl|process|nodejs)_[a-z0-9_]+)(?:\{([^}]*)\})?/g)]

  test('ask for metrics that there are', () => {
    expect(named.length).toBeGreaterThan(10)
    // A page may name a metric as a whole, of which the alert asks for a part.
    const isKnown = (name: string): boolean => metrics.has(name) || (text === pages && metrics.has(`${name}_count`))
    expect(named.map(([, name = '']) => name).filter((name) => !isKnown(name))).toEqual([])
  })

  test('ask for labels that these have', () => {
    const wrong = named.flatMap(([, name = '', selector = '']) =>
      listAll(selector, /(\w+)\s*(?:=~|!~|!=|=)\\?"/g)
        .filter((label) => metrics.get(name)?.has(label) !== true)
        .map((label) => `${name}: ${label}`),
    )
    expect(wrong).toEqual([])
  })
})

test('no way of running that is shipped opens an inspector, writes a core or lets the old generation double', () => {
  const unit = readText('deploy/systemd/pawl@.service')
  expect(unit).toMatch(/^ExecStart=\S+ --disable-sigusr1 --heap-growing-percent=30 bin\/pawl\.mjs serve$/m)
  expect(unit).toMatch(/^LimitCORE=0$/m)
  expect(readText('Dockerfile')).toMatch(/^CMD \["node", "--disable-sigusr1", "--heap-growing-percent=30", /m)
  expect(readText('docker-compose.yml')).toMatch(/^ {4}ulimits: \{ core: 0 \}$/m)
})

test('security.txt has what RFC 9116 asks for, and the balancer a line that serves it', () => {
  const lines = readText('deploy/haproxy/security.txt').split('\n')
  const fields = lines.filter((line) => line !== '' && !line.startsWith('#')).map((line) => line.split(': ')[0])
  expect(fields).toEqual(expect.arrayContaining(['Contact', 'Expires']))
  expect(fields.filter((name) => name === 'Expires')).toHaveLength(1)
  expect(lines.find((line) => line.startsWith('Expires: '))).toMatch(/^Expires: \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/)
  expect(readText('deploy/haproxy/haproxy.cfg')).toMatch(
    /http-request return .* file \S+security\.txt if \{ path \/\.well-known\/security\.txt \}/,
  )
})

test('every alert has a page, every page an alert, and the alert leads to it', () => {
  expect(listAll(pages, /^## (Pawl\w+)$/gm)).toEqual(alerts)
  expect(listAll(rules, /runbook: docs\/OPERATIONS\.md#(\w+)/g)).toEqual(alerts.map((name) => name.toLowerCase()))
})

test('the table of contents has every alert once, under its severity', () => {
  const listed = ['critical', 'warning'].flatMap((severity) => {
    const [, table = ''] = new RegExp(`^\\| ${severity} \\|(.*?)\n\n`, 'ms').exec(pages) ?? []
    return listAll(table, /^\| \[(Pawl\w+)\]/gm).map((name) => `${name} ${severity}`)
  })
  const expected = [...rules.matchAll(/alert: (\w+)[^]*?severity: (\w+)/g)].map(([, name, severity]) => `${name} ${severity}`)
  expect(listed.toSorted()).toEqual(expected.toSorted())
})

test('every page says how bad it is, as the alert does', () => {
  const bySeverity = (text: string, pattern: RegExp): string[] =>
    [...text.matchAll(pattern)].map(([, name, severity]) => `${name} ${severity}`)
  expect(bySeverity(pages, /^## (Pawl\w+)\n\n`(\w+)`/gm)).toEqual(bySeverity(rules, /alert: (\w+)[^]*?severity: (\w+)/g))
})

test('every alert is tried with its cause and without', () => {
  expect(listAll(ruleTests, /- name: (\w+) fires/g)).toEqual(alerts)
  expect(listAll(ruleTests, /- name: (\w+) is silent/g)).toEqual(alerts)
})

test('every line of the log of level warn or above is in the list of lines, and no other', () => {
  const [, list = ''] = /^### By line of the log$([^]*?)^## /m.exec(pages) ?? []
  const listed = listAll(list, /^\| (`[^|]+) \|/gm).flatMap((lines) => listAll(lines, /`([^`]+)`/g))
  // The text of a line is the last constant of its call.
  const calls = /\b(?:log(?:\.(?:warn|error|fatal)|\[kind\.level\])|failures\.tell)\((?:[^\n]+|\n[^]*?\n\s*\))/g
  const written = globSync('src/**/*.ts', { exclude: ['**/*.test.ts'] }).flatMap((path) =>
    [...readText(path).matchAll(calls)].flatMap(([call]) => call.match(/'([^'\n]+)'(?=[^']*$)/)?.slice(1) ?? []),
  )
  expect(written.length).toBeGreaterThan(50)
  expect(listed.toSorted()).toEqual(written.toSorted())
})

describe.each(['deploy/kubernetes/pawl.yaml', 'deploy/systemd/pawl@.service', 'docker-compose.yml'])('%s', (path) => {
  const text = readText(path)

  test('sets only what there is', () => {
    const known = new Set([
      ...Object.values(SETTINGS).map(({ name }) => name),
      ...Object.values(SECRET_SETTINGS).flatMap(({ name }) => [name, `${name}_FILE`]),
    ])
    const set = new Set(listAll(text, /\b(PAWL_[A-Z_]+[A-Z]|DATABASE_URL\w*)/g))
    expect(set.size).toBeGreaterThan(2)
    expect([...set].filter((name) => !known.has(name))).toEqual([])
  })

  test('waits longer for the end than pawl takes', () => {
    const [, grace] = /(?:terminationGracePeriodSeconds: |TimeoutStopSec=|stop_grace_period: )(\d+)/.exec(text) ?? []
    // The compose file leaves it to the image.
    const [, drain] =
      /PAWL_DRAIN_SECONDS(?:: '|=)(\d+)/.exec(text) ?? /PAWL_DRAIN_SECONDS=(\d+)/.exec(readText('Dockerfile')) ?? []
    // Three seconds later the first of several processes kills the others.
    expect(Number(grace)).toBeGreaterThan(Number(drain) + Number(SETTINGS.shutdownTimeoutSeconds.default) + 3)
  })
})

test('the manifest of Kubernetes uses the ports, the user and the probes of the image', () => {
  const manifest = readText('deploy/kubernetes/pawl.yaml')
  const image = readText('Dockerfile')
  const [, user] = /^USER (\d+):/m.exec(image) ?? []
  expect(manifest).toContain(`runAsUser: ${user}`)
  expect(listAll(manifest, /containerPort: (\d+)/g)).toEqual((/^EXPOSE (.*)$/m.exec(image)?.[1] ?? '').split(' '))
  expect(listAll(manifest, /httpGet: \{ path: ([^,]+)/g)).toEqual(['/health/live', '/health/live', '/health/ready'])
})

test.skipIf(!hasHaproxy)(`HAProxy takes the file that is shipped (needs ${HAPROXY})`, checkShippedConfiguration)

describe('the dump of each night', () => {
  /** Runs it with programs that stand in for pawl and for runuser, beside a dump of three weeks ago. */
  function dump(pawl: string): { readonly status: number | null; readonly stderr: string; readonly kept: readonly string[] } {
    const folder = mkdtempSync(join(tmpdir(), 'pawl-cron-'))
    const backups = join(folder, 'var/backups/pawl')
    mkdirSync(backups, { recursive: true })
    const old = join(backups, '2000-01-01.dump')
    writeFileSync(old, 'old')
    utimesSync(old, new Date(0), new Date(0))
    const bin = join(folder, 'usr/local/sbin')
    mkdirSync(bin, { recursive: true })
    writeFileSync(join(bin, 'pawl'), `#!/bin/sh\n${pawl}\n`, { mode: 0o755 })
    writeFileSync(join(bin, 'runuser'), '#!/bin/sh\necho rows\n', { mode: 0o755 })
    const text = readText('deploy/cron/pawl').replaceAll(/\/(?=usr\/local|var\/backups)/g, `${folder}/`)
    writeFileSync(join(folder, 'cron'), text, { mode: 0o755 })
    const env = { PATH: `${bin}:${process.env['PATH'] ?? ''}` }
    const { status, stderr } = spawnSync(join(folder, 'cron'), { env, encoding: 'utf8' })
    const kept = readdirSync(backups).map((name) => {
      const said = readFileSync(join(backups, name), 'utf8').trim()
      return `${name.replace(/^20[^0][^.]*/, 'today')} ${said}`
    })
    rmSync(folder, { recursive: true })
    return { status, stderr, kept: kept.toSorted() }
  }

  test('has the heads of the audit log beside it, and takes the place of old ones', () => {
    expect(dump('echo heads')).toEqual({ status: 0, stderr: '', kept: ['today.dump rows', 'today.heads heads'] })
  })

  test.each([
    ['is not intact', 'echo BROKEN; exit 1', 1, 'BROKEN'],
    ['could not be verified', 'exit 3', 3, ''],
  ])('is made when the log %s, and no old one is deleted', (_, pawl, status, said) => {
    const kept = ['2000-01-01.dump old', 'today.dump rows', `today.heads ${said}`]
    expect(dump(pawl)).toMatchObject({ status, kept })
  })

  test('says how far it came only when the log was not verified, because cron sends by mail what is said', () => {
    expect(dump('echo 3 rows so far >&2').stderr).toBe('')
    expect(dump('echo 3 rows so far >&2; exit 1').stderr).toBe('3 rows so far\n')
  })
})

describe('the command line of a machine with systemd', () => {
  /** Runs it with a program in place of Node that prints the settings of the names. */
  function runWith(file: string, given: Readonly<Record<string, string>>, names: readonly string[]) {
    const folder = mkdtempSync(join(tmpdir(), 'pawl-command-'))
    for (const one of ['etc/pawl', 'opt/pawl/node_modules/.bin']) mkdirSync(join(folder, one), { recursive: true })
    writeFileSync(join(folder, 'etc/pawl/pawl.env'), file)
    const print = names.map((name) => `echo "\${${name}-not set}"`).join('\n')
    writeFileSync(join(folder, 'opt/pawl/node_modules/.bin/node'), `#!/bin/sh\n${print}\n`, { mode: 0o755 })
    const text = readText('deploy/systemd/pawl').replaceAll(/\/(?=etc\/|opt\/)/g, `${folder}/`)
    writeFileSync(join(folder, 'pawl'), text, { mode: 0o755 })
    const ended = spawnSync(join(folder, 'pawl'), { env: { PATH: process.env['PATH'], ...given }, encoding: 'utf8' })
    rmSync(folder, { recursive: true })
    return ended
  }
  const settingsOf = (...parameters: Parameters<typeof runWith>): readonly string[] =>
    runWith(...parameters)
      .stdout.replace(/\n$/, '')
      .split('\n')

  test('has the settings of the unit; the file wins over them, as with systemd, and the caller over both', () => {
    const file = 'PAWL_DRAIN_SECONDS=9\nPAWL_PUBLIC_URL=https://phones.bank.example\n'
    const names = ['NODE_ENV', 'PAWL_DRAIN_SECONDS', 'PAWL_PUBLIC_URL', 'PAWL_URL']
    const url = 'http://127.0.0.1:8182'
    expect(settingsOf(file, { PAWL_URL: url, PAWL_PUBLIC_URL: 'https://other.example' }, names)).toEqual([
      'production',
      '9',
      'https://other.example',
      url,
    ])
  })

  test('leaves nothing else in the environment', () => {
    expect(settingsOf("X='1'\n", {}, ['line', 'name', 'value', 'number', 'quote', 'blank'])).toEqual(Array(6).fill('not set'))
  })

  // What systemd reads: the states of its parse_env_file.
  test.each([
    [`X='https://bank.example/claims?a=1&b=$2'`, 'https://bank.example/claims?a=1&b=$2'],
    ['X="two words, $HOME and `date`"', 'two words, $HOME and `date`'],
    ['X=https://bank.example/claims?a=1&b=$2;c', 'https://bank.example/claims?a=1&b=$2;c'],
    [' X = two words \t\r', 'two words'],
    ['X=$(id) # no remark', '$(id) # no remark'],
    [`X=it's "so"`, `it's "so"`],
    ['# a remark\n; another\n\nX=1', '1'],
    ['X=1\nX=2\n', '2'],
    ["X=''", ''],
    ['X=a=b', 'a=b'],
  ])('reads %j as systemd does', (file, value) => {
    expect(settingsOf(file, {}, ['X'])).toEqual([value])
  })

  test.each([
    ['X=1\nPAWL_PORT', 'line 2: it is not of the form NAME=VALUE'],
    ['export X=1', 'line 1: export X is no name of a setting'],
    ['X=a\\\nb', 'line 1: a backslash in X'],
    [`X="a'b`, 'line 1: a quote begins X and does not end it'],
    ['X="a"b"', 'line 1: X has a quote within its quotes'],
    ["X='a' b", 'line 1: a quote begins X and does not end it'],
    ['# a remark \\\nX=1', 'line 1: a backslash ends a remark'],
  ])('refuses %j, and runs nothing', (file, problem) => {
    const { status, stdout, stderr } = runWith(file, {}, ['X'])
    expect({ status, stdout, stderr }).toEqual({ status: 2, stdout: '', stderr: expect.stringContaining(problem) as unknown })
  })
})

test('HAProxy keeps what is not whole from pawl, and fewer requests at a process than a source may have there', () => {
  const text = readText('deploy/haproxy/haproxy.cfg')
  expect(text).toMatch(/^ {4}option http-buffer-request$/m)
  const [perProcess] = listAll(text, /default-server maxconn (\d+)/g)
  expect(Number(perProcess)).toBeLessThan(Number(SETTINGS.requestsInFlightMax.default) * 0.75)
  // Half of what the listener for phones takes, and that less than all.
  const [all, phones] = listAll(text, /^ {4}maxconn (\d+)$/gm).map(Number)
  const [perAddress] = listAll(text, /reject if \{ sc0_conn_cur gt (\d+) \}/g)
  expect(Number(perAddress) * 2).toBe(phones)
  expect(phones).toBeLessThan(all ?? 0)
})
