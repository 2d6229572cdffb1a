// Documents that are made from code match the code.
import { execFileSync } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { renderFlag } from '../cli/command.ts'
import { ENTRIES } from '../cli/entries.ts'
import { isNoun } from '../cli/program.ts'
import { renderCliDocument } from '../scripts/cli-docs.ts'
import { renderConfigMarkdown, renderEnvExample } from '../scripts/config-docs.ts'
import { renderEndpointsDocument } from '../scripts/endpoints-docs.ts'
import { renderErrorsDocument } from '../scripts/errors-docs.ts'
import { renderMetricsDocument } from '../scripts/metrics-docs.ts'
import { SECRET_SETTINGS } from '../src/config/secrets.ts'
import { SETTINGS } from '../src/config/config.ts'
import type { Setting } from '../src/config/kinds.ts'
import { attributesOf, WEBHOOK_EVENTS } from '../src/domain/webhook/message.ts'
import { readDiff } from './helpers/contributing.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const readText = (path: string): string => readFileSync(join(root, path), 'utf8')

describe('configuration', () => {
  test('docs/CONFIG.md is what the table of settings says (node scripts/config-docs.ts writes it)', () => {
    expect(readText('docs/CONFIG.md')).toBe(renderConfigMarkdown())
  })

  test('.env.example is what the table of settings says (node scripts/config-docs.ts writes it)', () => {
    expect(readText('.env.example')).toBe(renderEnvExample())
  })

  test('no document, script or container file names a setting that does not exist', () => {
    const known = new Set([
      ...Object.values(SETTINGS).map(({ name }) => name),
      ...Object.values(SECRET_SETTINGS).flatMap(({ name }) => [name, `${name}_FILE`]),
      // Of the command line and of the tests.
      'PAWL_ADMIN',
      'PAWL_OTP',
      'PAWL_APP',
      'PAWL_CLIENT_CERTIFICATE',
      'PAWL_CLIENT_KEY',
      'PAWL_PHONES',
      'PAWL_PHONE_PASSPHRASE',
      'PAWL_PHONE_PASSWORD',
      'PAWL_PHONE_NEW_PASSWORD',
      'PAWL_SIM_FIRST',
      'PAWL_SIM_SEED',
      'PAWL_SIM_SEEDS',
      'PAWL_URL',
      'PAWL_VECTORS',
    ])
    const files = globSync(
      ['*.md', '{docs,src}/**/*.md', 'bench/results/*.md', 'Dockerfile', 'docker-compose.yml', 'scripts/**/*', '.ci/run'],
      { cwd: root },
    )
    const wrong = files
      .filter((path) => /\.\w+$|Dockerfile$|run$/.test(path))
      .flatMap((path) => [...readText(path).matchAll(/\bPAWL_[A-Z0-9_]*[A-Z0-9]\b/g)].map(([name]) => ({ path, name })))
      .filter(({ name }) => !known.has(name) && !name.startsWith('PAWL_TEST_'))
      .map(({ path, name }) => `${path}: ${name}`)
    expect(wrong).toEqual([])
  })

  test('a default that a page tells before the name of its setting is the default of the setting', () => {
    const defaults = new Map(Object.values<Setting>(SETTINGS).map((setting) => [setting.name, setting.default ?? '']))
    const told = ['SECURITY.md', 'docs/LIMITS.md', 'docs/RUNNING.md', 'docs/SECURE-SETUP.md', 'docs/SIZING.md'].flatMap((path) =>
      [...readText(path).matchAll(/\b([\d,]+)( KiB)?[a-z ]* \(`(PAWL_\w+)`/g)].map(([text, figure = '', unit, name = '']) => ({
        text: `${path}: ${text}`,
        isRight: defaults.get(name) === String(Number(figure.replaceAll(',', '')) * (unit === undefined ? 1 : 1024)),
      })),
    )
    expect(told.length).toBeGreaterThan(8)
    expect(told.filter(({ isRight }) => !isRight)).toEqual([])
  })
})

describe('pages', () => {
  test.each(globSync('docs/decisions/0*.md', { cwd: root }))(
    '%s says context, decision, price, and what would change it',
    (path) => {
      const headings = [...readText(path).matchAll(/^## (.+)$/gm)].map(([, heading]) => heading)
      expect(headings).toEqual(['Context', 'Decision', 'Price', 'What would change it'])
    },
  )

  test.each([
    ...globSync('docs/decisions/0*.md', { cwd: root }).map((path) => [path, 40] as const),
    ['docs/PERFORMANCE.md', 150],
    ['docs/RUNNING.md', 110],
    ['docs/SECURE-SETUP.md', 110],
    ['docs/LIMITS.md', 110],
  ] as const)('%s has at most %d lines', (path, lines) => {
    expect(readText(path).trimEnd().split('\n').length).toBeLessThanOrEqual(lines)
  })

  test('the diff of CONTRIBUTING.md, an endpoint in eight steps, applies to the sources', () => {
    const input = readDiff(readText('CONTRIBUTING.md'))
    expect(input.match(/^\+\+\+ /gm)).toHaveLength(7)
    // Whoever tries the page has applied it.
    const isTried = existsSync(join(root, 'src/api/device/echo.ts'))
    const direction = isTried ? ['--reverse'] : []
    const apply = () => execFileSync('git', ['apply', '--check', ...direction], { cwd: root, input, encoding: 'utf8' })
    const advice = isTried
      ? 'the endpoint echo is not as CONTRIBUTING.md has it: give yours another name, or change the page'
      : 'lines beside the example have changed: write them into the diff of CONTRIBUTING.md as they are now'
    expect(apply, advice).not.toThrow()
  })
})

describe('limits', () => {
  const text = readText('src/domain/limits/README.md')

  test('the defaults in the tables of limits are those of the settings', () => {
    const listed = [...text.matchAll(/\| (\d+)(?: bytes)?, `(PAWL_\w+)`/g)].map(([, value, name]) => `${name}=${value}`)
    const all = Object.values<Setting>(SETTINGS).map(({ name, default: value }) => `${name}=${value}`)
    expect(listed.length).toBeGreaterThan(10)
    expect(listed.filter((one) => !all.includes(one))).toEqual([])
  })

  test('the tables of limits have every setting of a number a minute, and every file with a queue or places', () => {
    const settings = Object.values(SETTINGS).flatMap(({ name }) => (/_(PER_MINUTE|MAX)$/.test(name) ? [name] : []))
    const files = globSync('src/**/*.ts', { cwd: root }).filter((path) =>
      /= create(FairQueue|Places)\(/.test(path.endsWith('.test.ts') ? '' : readText(path)),
    )
    const named = [...settings, ...files.map((path) => path.replace('src/', ''))]
    expect(named.length).toBeGreaterThan(10)
    expect(named.filter((name) => !text.includes(`\`${name}\``))).toEqual([])
  })
})

describe('command line', () => {
  test('docs/CLI.md is what the commands say (node scripts/cli-docs.ts writes it)', () => {
    expect(readText('docs/CLI.md')).toBe(renderCliDocument())
  })
})

describe('errors', () => {
  test('docs/ERRORS.md is what the renderers say (node scripts/errors-docs.ts writes it)', () => {
    expect(readText('docs/ERRORS.md')).toBe(renderErrorsDocument())
  })
})

describe('endpoints', () => {
  test('docs/ENDPOINTS.md is what the description of the APIs says (node scripts/endpoints-docs.ts writes it)', () => {
    expect(readText('docs/ENDPOINTS.md')).toBe(renderEndpointsDocument())
  })
})

describe('metrics', () => {
  test('docs/METRICS.md is what is registered (node scripts/metrics-docs.ts writes it)', () => {
    expect(readText('docs/METRICS.md')).toBe(renderMetricsDocument())
  })
})

describe('webhooks', () => {
  test.each(['OPERATION', 'ACTIVATION'] as const)('docs/WEBHOOKS.md lists every attribute of %s', (kind) => {
    const [, listed = ''] =
      new RegExp(`^Attributes of \`${kind}\`: (.*?)(?:\\.\\n|\\n\\n)`, 'ms').exec(readText('docs/WEBHOOKS.md')) ?? []
    expect(attributesOf(kind).filter((name) => !listed.includes(`\`${name}\``))).toEqual([])
  })

  test.each(['OPERATION', 'ACTIVATION'] as const)('docs/WEBHOOKS.md and the specification list every event of %s', (kind) => {
    const [document, specification] = [readText('docs/WEBHOOKS.md'), readText('docs/spec/cloud.md')]
    const table = document.split(`| \`event\` of an ${kind.toLowerCase()} |`)[1]?.split('\n\n')[0] ?? ''
    expect(WEBHOOK_EVENTS[kind].filter((event) => !table.includes(`\`${event}\``))).toEqual([])
    const listed = new RegExp(`of ${kind.toLowerCase()}s (created[^;.]*)[;.]`).exec(specification)?.[1]?.split(/,\s+/)
    expect(listed).toEqual(WEBHOOK_EVENTS[kind])
  })
})

describe('links', () => {
  test('every relative link of a document leads to a file', () => {
    const wrong = globSync(['*.md', '{docs,src}/**/*.md', 'bench/results/*.md'], { cwd: root }).flatMap((path) =>
      [...readText(path).matchAll(/\]\((?!https?:|mailto:|#)([^)#\s]+)/g)]
        .filter(([, target = '']) => !existsSync(join(root, dirname(path), target)))
        .map(([, target]) => `${path}: ${target}`),
    )
    expect(wrong).toEqual([])
  })
})

describe('paths', () => {
  const files = globSync('{src,test,phone,bench,scripts,migrations}/**/*.{ts,sql}', { cwd: root })
  /** A path as documents write it, from the root or from `src`; a name alone may be that of any file. */
  const exists = (name: string): boolean =>
    name.includes('/') ? files.includes(name) || files.includes(`src/${name}`) : files.some((path) => path.endsWith(`/${name}`))

  test.each([
    'docs/ARCHITECTURE.md',
    'docs/SECURITY-MODEL.md',
    'SECURITY.md',
    'CONTRIBUTING.md',
    'src/domain/limits/README.md',
    ...globSync('docs/decisions/*.md', { cwd: root }),
  ])('every file that %s names exists', (path) => {
    const prose = readText(path).replaceAll(/^```diff.*?^```/gms, '')
    const named = [...prose.matchAll(/(?<![\w./{}-])[a-z][\w./-]*\.ts\b/g)].map(([name]) => name)
    expect(named.filter((name) => !exists(name))).toEqual([])
  })

  test('each file of a trace of ARCHITECTURE, "From URL to SQL", is imported by one before it', () => {
    const section = /^## From URL to SQL$([^]*?)^## /m.exec(readText('docs/ARCHITECTURE.md'))?.[1] ?? ''
    const traces = section
      .split(/^\*\*`/m)
      .slice(1)
      .map((trace) => [...trace.matchAll(/^\d+\. `([\w/.-]+\.ts)`/gm)].map(([, path = '']) => path))
    expect(traces.map((trace) => trace.length)).toEqual([6, 5, 4, 5, 4])
    const importsOf = (path: string): readonly string[] =>
      [...readText(`src/${path}`).matchAll(/from '(\.[^']+)'/g)].map(([, target = '']) => posix.join(dirname(path), target))
    const lost = traces.flatMap((trace) =>
      trace.slice(1).filter((path, index) => !trace.slice(0, index + 1).some((before) => importsOf(before).includes(path))),
    )
    expect(lost).toEqual([])
  })

  test('every folder of src has its row in ARCHITECTURE, "Layout"', () => {
    const layout = /^## Layout$([^]*?)^An endpoint names/m.exec(readText('docs/ARCHITECTURE.md'))?.[1] ?? ''
    const listed = [...layout.matchAll(/^\| ([^|]+) \|/gm)].flatMap(([, names = '']) =>
      [...names.matchAll(/`([\w/-]+)`/g)].map(([, name = '']) => name),
    )
    const folders = globSync('src/{*,api/*,domain/*}/', { cwd: root }).map((path) => path.replace(/^src\/(?:domain\/)?/, ''))
    expect(folders.length).toBeGreaterThan(20)
    expect(
      folders.filter((name) => !listed.some((row) => row === name || row.startsWith(`${name}/`)) && name !== 'domain'),
    ).toEqual([])
  })

  test('ARCHITECTURE names files at all', () => {
    expect(readText('docs/ARCHITECTURE.md').match(/[a-z]\.ts\b/g)?.length).toBeGreaterThan(50)
  })
})

describe('commands', () => {
  // Answers end with their last brace: what people read in a terminal needs a line of its own.
  test('every curl of a document whose answer is read by people ends it with a newline', () => {
    const wrong = globSync(['*.md', 'docs/**/*.md', 'docker-compose.yml'], { cwd: root }).flatMap((path) =>
      [...readText(path).matchAll(/^.*\bcurl (?=-|http).*$/gm)]
        .map(([line]) => line)
        .filter((line) => !/-w '[^']*\\n'/.test(line) && !/ -o \w| \| |=\$\(/.test(line))
        .map((line) => `${path}: ${line}`),
    )
    expect(wrong).toEqual([])
  })
})

describe('command lines of pawl', () => {
  const commands = new Map(
    ENTRIES.flatMap((entry) =>
      isNoun(entry) ? entry.commands.map((one) => [`${entry.name} ${one.name}`, one] as const) : [[entry.name, entry] as const],
    ),
  )
  const nouns = ENTRIES.filter(isNoun).map(({ name }) => name)
  /** Options that every command takes. */
  const shared = ['--json', '--help']

  /** Explains what a command line names that there is not; undefined when there is nothing to explain. */
  function explainLine(line: string): string | undefined {
    const [first = '', second = '', ...others] = line.split(/\s+/)
    const isOfNoun = nouns.includes(first)
    // A page may name all commands of a noun.
    if (first === 'help' || (isOfNoun && !/^[a-z][a-z-]+$/.test(second))) return undefined
    const command = commands.get(isOfNoun ? `${first} ${second}` : first)
    if (command === undefined) return `there is no pawl ${line}`
    const flags = Object.entries(command.options ?? {}).flatMap(
      ([name, option]) => renderFlag(name, option).match(/--[a-z-]+/g) ?? [],
    )
    const given = [second, ...others].flatMap((word) => /^--[a-z][a-z-]*/.exec(word)?.[0] ?? [])
    const wrong = given.filter((flag) => ![...flags, ...shared].includes(flag))
    return wrong.length === 0 ? undefined : `pawl ${line}: ${wrong.join(', ')}`
  }

  test('every command and option that a document shows exists', () => {
    const shown = globSync(['*.md', '{docs,clients,examples}/**/*.md'], {
      cwd: root,
      exclude: ['**/node_modules/**', 'docs/CLI.md'],
    })
      .filter((path) => path !== 'CHANGELOG.md')
      .flatMap((path) => {
        const text = readText(path)
        const blocks = [...text.matchAll(/^ *```(?:sh|text)[^\n]*\n([^]*?)^ *```/gm)].map(([, block = '']) => block).join('\n')
        const lines = blocks.matchAll(/(?:^ *|npx |exec (?:-e \S+ )?pawl |-- |[A-Z]=\S* )pawl ([a-z][^|>\n]*)/gm)
        return [...lines, ...text.replaceAll(/^ *```[^]*?^ *```/gm, '').matchAll(/`(?:npx )?pawl ([a-z][^`|>]*)`/g)].map(
          ([, line = '']) => ({ path, line: line.replaceAll('\n', ' ').trim() }),
        )
      })
      // A start prints such a line.
      .filter(({ line }) => !line.startsWith('listens on '))
    expect(shown.length).toBeGreaterThan(200)
    const wrong = shown.flatMap(({ path, line }) => explainLine(line)?.replace(/^/, `${path}: `) ?? [])
    expect(wrong).toEqual([])
  })
})

describe('package.json', () => {
  const { scripts, ...packageJson }: Record<string, Record<string, string>> = JSON.parse(readText('package.json'))

  test('there are at most twelve scripts', () => {
    expect(Object.keys(scripts ?? {}).length).toBeLessThanOrEqual(12)
  })

  test('its version is that of the clients, and the newest in CHANGELOG.md, with release notes', () => {
    const { version } = JSON.parse(readText('package.json')) as { version: string }
    expect(readText('package-lock.json').slice(0, 200)).toContain(`"version": "${version}"`)
    expect(readText('clients/typescript/package.json')).toContain(`"version": "${version}"`)
    expect(readText('clients/java/pom.xml')).toContain(`<version>${version}</version>`)
    const headings = [...readText('CHANGELOG.md').matchAll(/^## (.+)$/gm)].map(([, heading]) => heading)
    expect(headings.slice(0, 2)).toEqual(['Unreleased', expect.stringMatching(`^${version} \\(\\d{4}-\\d\\d-\\d\\d\\)$`)])
    expect(existsSync(join(root, `docs/releases/${version}.md`))).toBe(true)
  })

  test('every dependency has its line in docs/ARCHITECTURE.md', () => {
    const lines = readText('docs/ARCHITECTURE.md').match(/^## Dependencies$[^]*?^###/m)?.[0] ?? ''
    const listed = [...lines.matchAll(/^\| ([^|]+) \|/gm)].flatMap(([, names = '']) => names.split(', '))
    const names = ['dependencies', 'optionalDependencies'].flatMap((kind) => Object.keys(packageJson[kind] ?? {}))
    expect(names.filter((name) => !listed.includes(name))).toEqual([])
  })

  test('every dependency is pinned to one version', () => {
    const versions = ['dependencies', 'optionalDependencies', 'devDependencies'].flatMap((kind) =>
      Object.entries(packageJson[kind] ?? {}),
    )
    expect(versions.filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([])
  })
})
