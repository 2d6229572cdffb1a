// The arrows of docs/ARCHITECTURE.md, checked: who may import whom, no cycles, and a list of what is written another way here.
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))

interface Layer {
  /** Path or folder; the longest that fits a file is its layer. */
  readonly path: string
  /** Paths and folders of pawl it may import, beside itself. */
  readonly pawl: readonly string[]
  readonly packages: readonly string[]
}

/** A folder of the domain; `below`: the folders of the domain that it may import. */
const noun = (name: string, below: readonly string[]): Layer => ({
  path: `src/domain/${name}`,
  pawl: [...below.map((folder) => `src/domain/${folder}`), 'src/storage', 'src/crypto', 'src/log', 'src/lib'],
  packages: [],
})

/** A folder of storage, with its tables; `below`: the folders of storage that it may import. */
const rows = (name: string, below: readonly string[]): Layer => ({
  path: `src/storage/${name}`,
  pawl: [...below.map((folder) => `src/storage/${folder}`), 'src/storage/database', 'src/lib'],
  packages: ['kysely', 'lru-cache'],
})

const http = ['fastify', '@fastify/type-provider-typebox', '@sinclair/typebox']

const layers: readonly Layer[] = [
  { path: 'src/lib', pawl: [], packages: ['lru-cache'] },
  { path: 'src/log', pawl: ['src/lib'], packages: ['pino'] },
  { path: 'src/config', pawl: ['src/log', 'src/lib', 'package.json'], packages: [] },
  { path: 'src/crypto', pawl: ['src/lib'], packages: [] },
  { path: 'src/protocol/protocol.ts', pawl: ['src/lib'], packages: [] },
  { path: 'src/protocol/wire', pawl: ['src/protocol/protocol.ts', 'src/lib'], packages: [] },
  { path: 'src/protocol/v3', pawl: ['src/protocol/protocol.ts', 'src/protocol/wire', 'src/crypto', 'src/lib'], packages: [] },
  { path: 'src/protocol/v4', pawl: ['src/protocol/protocol.ts', 'src/protocol/wire', 'src/crypto', 'src/lib'], packages: [] },
  {
    path: 'src/protocol/device-key.ts',
    pawl: ['src/protocol/protocol.ts', 'src/protocol/v4', 'src/crypto', 'src/lib'],
    packages: [],
  },
  { path: 'migrations', pawl: [], packages: ['kysely'] },
  // What is asked of one noun at a time, and of several in one statement: `request` for phones, `user` for what pawl knows of a user.
  { path: 'src/storage', pawl: ['src/lib'], packages: ['kysely'] },
  {
    path: 'src/storage/database',
    pawl: ['src/lib'],
    packages: ['kysely', 'pg', '@electric-sql/pglite', 'lru-cache'],
  },
  { path: 'src/storage/database/migrate.ts', pawl: ['src/storage/database', 'src/lib', 'migrations'], packages: ['kysely'] },
  rows('secrets', []),
  rows('audit', []),
  rows('credential', []),
  rows('pinning', []),
  rows('template', []),
  rows('webhook', []),
  rows('application', []),
  rows('activation', ['application', 'audit']),
  rows('operation', ['activation', 'audit']),
  rows('token', ['operation', 'activation', 'audit']),
  rows('request', ['token', 'operation', 'activation', 'application', 'audit']),
  rows('user', ['audit', 'retention.ts']),
  // The two files beside the folders compose what the folders have.
  { path: 'src/domain', pawl: ['src/storage', 'src/crypto', 'src/log', 'src/lib'], packages: [] },
  noun('limits', []),
  noun('secrets', []),
  noun('template', []),
  { path: 'src/domain/template/ui.ts', pawl: [], packages: ['@sinclair/typebox'] },
  { path: 'src/domain/template/parser.ts', pawl: ['src/domain/template', 'src/lib'], packages: ['@sinclair/typebox'] },
  noun('audit', ['secrets']),
  noun('credential', ['limits', 'secrets']),
  {
    path: 'src/domain/credential/access-token.ts',
    pawl: ['src/domain/credential', 'src/storage', 'src/log', 'src/lib'],
    packages: ['jose'],
  },
  { path: 'src/domain/credential/key-set.ts', pawl: ['src/lib'], packages: ['jose'] },
  noun('oidc', ['credential', 'secrets']),
  {
    path: 'src/domain/oidc/tokens.ts',
    pawl: ['src/domain/oidc', 'src/crypto', 'src/lib'],
    packages: ['jose', 'oauth4webapi'],
  },
  noun('user-info', ['secrets']),
  noun('user-data', ['user-info', 'audit', 'secrets']),
  noun('pinning', ['secrets']),
  noun('application', ['pinning', 'secrets']),
  { ...noun('push', ['secrets']), packages: ['jose'] },
  noun('webhook', ['push', 'template', 'secrets']),
  noun('activation', ['application', 'user-info', 'audit', 'secrets']),
  noun('operation', ['activation', 'template', 'audit', 'limits', 'secrets']),
  {
    path: 'src/http',
    pawl: ['src/log', 'src/lib'],
    packages: [...http, 'ajv'],
  },
  { path: 'src/metrics', pawl: ['src/storage', 'src/log', 'src/lib'], packages: ['fastify', 'prom-client'] },
  { path: 'src/tracing/settings.ts', pawl: [], packages: [] },
  {
    path: 'src/tracing/otlp.ts',
    pawl: ['src/tracing/settings.ts', 'src/log', 'src/lib', 'package.json'],
    packages: [
      '@opentelemetry/api',
      '@opentelemetry/core',
      '@opentelemetry/exporter-trace-otlp-proto',
      '@opentelemetry/resources',
      '@opentelemetry/sdk-trace',
    ],
  },
  {
    path: 'src/channel',
    pawl: ['src/http', 'src/protocol', 'src/domain', 'src/storage', 'src/log', 'src/lib'],
    packages: http,
  },
  {
    path: 'src/api/device',
    pawl: ['src/channel', 'src/http', 'src/protocol', 'src/domain', 'src/storage', 'src/log', 'src/lib'],
    packages: http,
  },
  {
    path: 'src/api/mobile-token',
    pawl: ['src/channel', 'src/http', 'src/protocol', 'src/domain', 'src/storage', 'src/log', 'src/lib'],
    packages: http,
  },
  { path: 'src/api/utility', pawl: ['src/http', 'src/domain', 'src/storage', 'src/log', 'src/lib'], packages: http },
  {
    path: 'src/api/cloud',
    pawl: ['src/http', 'src/domain', 'src/storage', 'src/log', 'src/lib'],
    packages: http,
  },
  // Its parts are those of the doors too, and its offline approvals judge what a phone made; nothing else of it knows phones.
  ...['parts', 'operations'].map((name) => ({
    path: `src/api/cloud/${name}.ts`,
    pawl: ['src/api/cloud', 'src/channel', 'src/http', 'src/protocol', 'src/domain', 'src/storage', 'src/lib'],
    packages: http,
  })),
  {
    path: 'src/api/door',
    pawl: ['src/api/cloud', 'src/channel', 'src/http', 'src/protocol', 'src/domain', 'src/storage', 'src/log', 'src/lib'],
    packages: http,
  },
  {
    path: 'src/api/reference',
    pawl: [
      'src/api/door',
      'src/api/cloud',
      'src/channel',
      'src/http',
      'src/protocol',
      'src/domain',
      'src/storage',
      'src/log',
      'src/lib',
    ],
    packages: http,
  },
  {
    path: 'src/console',
    pawl: ['src/api/cloud', 'src/metrics', 'src/http', 'src/domain', 'src/crypto', 'src/log', 'src/lib'],
    packages: ['fastify', '@sinclair/typebox', 'qr'],
  },
  { path: 'src/api/metrics', pawl: ['src/http', 'src/domain', 'src/log', 'src/lib'], packages: http },
  { path: 'src/api/docs', pawl: ['src/http', 'src/log', 'src/lib'], packages: http },
  { path: 'src/description.ts', pawl: ['src', 'package.json'], packages: [] },
  { path: 'src/context.ts', pawl: ['src', 'package.json'], packages: [] },
  { path: 'src/app.ts', pawl: ['src'], packages: ['fastify'] },
  { path: 'src/cluster', pawl: ['src/log', 'src/lib'], packages: [] },
  { path: 'src/server.ts', pawl: ['src'], packages: ['fastify'] },
  { path: 'src/start-memory.ts', pawl: [], packages: [] },
  { path: 'src/main.ts', pawl: ['src'], packages: [] },
  // The command line: a client of the bank's API, but for what works on the database of the settings.
  { path: 'cli', pawl: [], packages: ['commander', 'qr'] },
  // Of a file that cannot be read it says what the server says.
  { path: 'cli/json-argument.ts', pawl: ['cli', 'src/lib/errors.ts'], packages: [] },
  { path: 'cli/local', pawl: ['cli', 'src'], packages: ['kysely'] },
  // A phone of its own, beside anything of the server.
  { path: 'cli/phone', pawl: ['cli', 'phone'], packages: ['pngjs', 'qr'] },
  { path: 'cli/demo', pawl: ['cli', 'phone'], packages: [] },
  // Certificates of development, and a server for phones in the network.
  { path: 'cli/dev', pawl: ['cli', 'phone', 'src/lib'], packages: [] },
  // What moves a bank from another server to pawl.
  { path: 'cli/import', pawl: ['cli', 'src'], packages: ['kysely'] },
  { path: 'cli/doctor', pawl: ['cli', 'src'], packages: ['kysely', 'pg'] },
  // The set-up file: a client of the bank's API that judges templates as the server does.
  { path: 'cli/setup', pawl: ['cli', 'src/lib'], packages: ['@sinclair/typebox', 'yaml'] },
  { path: 'cli/setup/template.ts', pawl: ['cli', 'src/domain/template'], packages: [] },
  { path: 'cli/commands/version.ts', pawl: ['cli', 'package.json'], packages: [] },
  { path: 'cli/commands/serve.ts', pawl: ['cli', 'src/main.ts'], packages: [] },
]

// The process is built from these; each API names the parts it needs as an interface instead of importing them.
const roots = ['src/main.ts', 'src/server.ts', 'src/app.ts', 'src/context.ts', 'src/description.ts']

interface Ban {
  readonly pattern: RegExp
  readonly instead: string
  readonly allowedIn?: readonly string[]
}

const bans: readonly Ban[] = [
  {
    pattern: /process\.env/,
    instead: 'parseConfig in src/config/parser.ts',
    allowedIn: ['src/main.ts', 'cli/terminal.ts', 'bench'],
  },
  {
    pattern: /process\.exit/,
    instead: 'a StartError, or a rejection that main.ts sees',
    allowedIn: ['src/main.ts', 'cli/main.ts', 'bench/run.ts'],
  },
  { pattern: /Date\.now\(|new Date\(\)/, instead: 'Platform.now', allowedIn: ['src/lib/platform.ts', 'bench'] },
  { pattern: /randomUUID\(/, instead: 'Platform.uuid', allowedIn: ['src/lib/platform.ts', 'bench'] },
  { pattern: /Math\.random\(/, instead: 'Platform.randomBytes' },
  { pattern: /\bconsole\./, instead: 'the log, or an event in src/log/events.ts' },
  { pattern: /selectAll\(/, instead: 'the names of the columns' },
  {
    pattern: /[:<|&,(]\s*any\b(?! ===)|\bas any\b/,
    instead: 'a type, or unknown',
    // A list of endpoints forgets their schemas; the overloads of the driver's query cannot be named.
    allowedIn: ['src/channel/endpoint.ts', 'src/storage/database/postgres.ts'],
  },
  { pattern: /[!=]==?\s*\w*(?:mac|Mac|digest|Digest)\b/, instead: 'equalConstantTime in src/lib/bytes.ts' },
  {
    pattern: /timingSafeEqual\(/,
    instead: 'equalConstantTime in src/lib/bytes.ts',
    // The demo and the phone share no code with the server.
    allowedIn: ['src/lib/bytes.ts', 'cli/demo/receiver.ts', 'phone/v3/envelope.ts'],
  },
  { pattern: /\bexport default\b/, instead: 'a named export' },
  {
    pattern: /\bclass \w+(?! extends (?:Error|StartError|Fault|pg\.))\b[^{]*\{/,
    instead: 'functions over data; only errors are classes',
  },
]

interface Import {
  readonly specifier: string
  /** Erased before the code runs. */
  readonly isType: boolean
}

const sources = globSync(['src/**/*.ts', 'migrations/**/*.ts'], { cwd: root })
  .filter((path) => !path.endsWith('.test.ts'))
  .toSorted()
const commandLine = globSync('cli/**/*.ts', { cwd: root }).toSorted()
/** What is written the same way: all that runs but tests and scripts. */
const everyProgram = [...sources, ...commandLine, ...globSync(['phone/**/*.ts', 'bench/**/*.ts'], { cwd: root }).toSorted()]
const everyFile = globSync('{bin,cli,src,migrations,phone,scripts,bench,test}/**/*.{ts,mjs}', { cwd: root }).toSorted()

const readSource = (path: string): string => readFileSync(join(root, path), 'utf8')

/** Comments and the text of literals may name what is banned. Good enough for code that the formatter has laid out. */
const removeComments = (code: string): string => code.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '$1')

function listImports(path: string): readonly Import[] {
  const code = removeComments(readSource(path))
  const statements = code.matchAll(/^(?:import|export)\s+(type\s)?(?:[^'"]*?\sfrom\s+)?'([^']+)'/gm)
  const calls = code.matchAll(/\bimport\('([^']+)'\)/g)
  return [
    ...[...statements].map(([, type, specifier = '']) => ({ specifier, isType: type !== undefined })),
    ...[...calls].map(([, specifier = '']) => ({ specifier, isType: false })),
  ]
}

const isRelative = ({ specifier }: Import): boolean => specifier.startsWith('.')
const resolveImport = (from: string, { specifier }: Import): string => normalize(join(dirname(from), specifier))
const lies = (path: string, within: string): boolean => path === within || path.startsWith(`${within}/`)
const packageOf = (specifier: string): string => specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')

function findLayer(path: string): Layer | undefined {
  return layers.filter((layer) => lies(path, layer.path)).toSorted((a, b) => b.path.length - a.path.length)[0]
}

describe('imports', () => {
  test('every source file lies in a layer', () => {
    expect(sources.filter((path) => findLayer(path) === undefined)).toEqual([])
  })

  test('every relative import names a file that exists, with its ending', () => {
    const wrong = everyFile.flatMap((path) =>
      listImports(path)
        .filter((entry) => isRelative(entry) && !existsSync(join(root, resolveImport(path, entry))))
        .map((entry) => `${path} imports ${entry.specifier}`),
    )
    expect(wrong).toEqual([])
  })

  test('arrows between layers point one way', () => {
    const wrong = [...sources, ...commandLine].flatMap((path) => {
      const layer = findLayer(path)
      const allowed = layer === undefined ? [] : [layer.path, ...layer.pawl]
      return listImports(path)
        .filter(isRelative)
        .map((entry) => resolveImport(path, entry))
        .filter((target) => !allowed.some((within) => lies(target, within)))
        .map((target) => `${path} may not import ${target}`)
    })
    expect(wrong).toEqual([])
  })

  test('each package is imported only by the layers that may', () => {
    const wrong = [...sources, ...commandLine].flatMap((path) =>
      listImports(path)
        .filter((entry) => !isRelative(entry) && !entry.specifier.startsWith('node:'))
        .map(({ specifier }) => packageOf(specifier))
        .filter((name) => !findLayer(path)?.packages.includes(name))
        .map((name) => `${path} may not import ${name}`),
    )
    expect(wrong).toEqual([])
  })

  test('node:crypto runs only in src/crypto and where a reason is given', () => {
    // The PostgreSQL driver hashes the text of a statement to name it; no secret is involved.
    const allowed = ['src/crypto', 'src/lib/platform.ts', 'src/lib/bytes.ts', 'src/storage/database/postgres.ts']
    const users = sources.filter((path) =>
      listImports(path).some(({ specifier, isType }) => specifier === 'node:crypto' && !isType),
    )
    expect(users.filter((path) => !allowed.some((within) => lies(path, within)))).toEqual([])
  })

  test('nothing in src imports the roots but the roots, and no code imports a test', () => {
    const wrong = sources.flatMap((path) =>
      listImports(path)
        .filter(isRelative)
        .map((entry) => resolveImport(path, entry))
        .filter(
          (target) => target.endsWith('.test.ts') || lies(target, 'test') || (roots.includes(target) && !roots.includes(path)),
        )
        .map((target) => `${path} imports ${target}`),
    )
    expect(wrong).toEqual([])
  })

  test('the console has only the types of the answers from the API that it calls', () => {
    const used = sources
      .filter((path) => lies(path, 'src/console'))
      .flatMap((path) => listImports(path).map((entry) => ({ ...entry, target: resolveImport(path, entry) })))
      .filter(({ target }) => lies(target, 'src/api'))
    expect(used.length).toBeGreaterThan(10)
    expect(used.filter(({ isType }) => !isType)).toEqual([])
  })

  test('the phone imports only itself and packages that the server does not decide by', () => {
    const packages = ['@noble/post-quantum']
    const wrong = globSync('phone/**/*.ts', { cwd: root }).flatMap((path) =>
      listImports(path)
        .filter((entry) =>
          isRelative(entry)
            ? !lies(resolveImport(path, entry), 'phone')
            : !entry.specifier.startsWith('node:') && !packages.includes(packageOf(entry.specifier)),
        )
        .map(({ specifier }) => `${path} may not import ${specifier}`),
    )
    expect(wrong).toEqual([])
  })

  test('there are no import cycles, those of types included', () => {
    expect(findCycles()).toEqual([])
  })
})

describe('files', () => {
  test('the first line of every file says what it is', () => {
    expect(everyFile.filter((path) => !/^(#!.*\n)?(\/\/|\/\*\*) ?\S/.test(readSource(path)))).toEqual([])
  })

  test('no source file is longer than 400 lines', () => {
    expect([...sources, ...commandLine].filter((path) => readSource(path).split('\n').length > 401)).toEqual([])
  })

  test('folders are named after the domain and at most four deep', () => {
    const folders = sources.map((path) => dirname(path).split('/'))
    const vague = ['utils', 'util', 'helpers', 'common', 'misc', 'managers', 'services']
    expect(folders.filter((parts) => parts.length > 5 || parts.some((part) => vague.includes(part)))).toEqual([])
  })

  test('a flow is composed, and names the code of each of its refusals once', () => {
    const flows = sources.filter((path) => /^src\/channel\/flow\/(?!compose|facts)/.test(path))
    expect(flows.length).toBeGreaterThan(10)
    const wrong = flows.filter((path) => {
      const codes = readSource(path).match(/'[A-Z]+(?:_[A-Z]+)*_(?:INVALID|MISSING|FAILED|REFUSED)'/g) ?? []
      return new Set(codes).size < codes.length || !readSource(path).includes('composeEndpoint(')
    })
    expect(wrong).toEqual([])
  })

  test('file names are kebab-case, migrations numbered', () => {
    expect(
      everyFile.filter((path) => !/^(\d{4}_)?[a-z0-9]+([.-][a-z0-9]+)*\.(ts|mjs)$/.test(path.split('/').at(-1) ?? '')),
    ).toEqual([])
  })
})

describe('bans', () => {
  test.each(bans.map((ban) => [ban.pattern.source, ban.instead, ban] as const))('%s: use %s', (_pattern, instead, ban) => {
    const wrong = everyProgram
      .filter((path) => !ban.allowedIn?.some((within) => lies(path, within)))
      .flatMap((path) => matchingLines(path, ban.pattern))
      .map((place) => `${place} (use ${instead})`)
    expect(wrong).toEqual([])
  })
})

function matchingLines(path: string, pattern: RegExp): readonly string[] {
  return removeComments(readSource(path))
    .split('\n')
    .filter((line) => pattern.test(line))
    .map((line) => `${path}: ${line.trim()}`)
}

/** Depth first; each cycle is reported once, by the path that closes it. */
function findCycles(): readonly string[] {
  const cycles: string[] = []
  const done = new Set<string>()
  const visit = (path: string, trail: readonly string[]): void => {
    if (trail.includes(path)) {
      cycles.push([...trail.slice(trail.indexOf(path)), path].join(' -> '))
      return
    }
    if (done.has(path)) return
    for (const target of listImports(path).filter(isRelative)) {
      const resolved = resolveImport(path, target)
      if (resolved.endsWith('.ts') && existsSync(join(root, resolved))) visit(resolved, [...trail, path])
    }
    done.add(path)
  }
  for (const path of [...sources, ...commandLine]) visit(path, [])
  return cycles
}
