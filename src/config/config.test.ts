// Tests how environment variables become a configuration: the defaults, the refused values, and that all problems are reported at once.
import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { ConfigError, parseConfig } from './parser.ts'
import { SETTINGS } from './config.ts'

const KEY = Buffer.alloc(32, 7).toString('base64')
const noFiles = (path: string): string => {
  throw Object.assign(new Error(`ENOENT: ${path}`), { code: 'ENOENT' })
}

const parse = (env: Record<string, string | undefined>, files: Record<string, string> = {}) =>
  parseConfig(env, (path) => files[path] ?? noFiles(path))

function problemsOf(env: Record<string, string | undefined>, files: Record<string, string> = {}): readonly string[] {
  try {
    parse(env, files)
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
  return []
}

describe('defaults', () => {
  test('an empty environment gives the documented defaults and no secrets', () => {
    const { config, secrets } = parse({ PATH: '/bin', NODE_ENV: 'production' })
    expect(config).toEqual({
      host: '127.0.0.1',
      port: 8080,
      processes: 1,
      referenceApi: false,
      internalHost: '127.0.0.1',
      trustedProxies: [],
      console: true,
      consoleIdleSeconds: 900,
      consoleSessionSeconds: 28_800,
      dataDir: './data',
      databasePoolSize: 8,
      databasePooler: 'none',
      jwtAlgorithms: ['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA'],
      masterKeyCommandEnvironment: [],
      jwtTypes: ['at+jwt', 'JWT'],
      jwtClockToleranceSeconds: 30,
      jwtRoleClaim: 'scope',
      jwtApplicationClaim: 'pawl_application',
      migrate: 'start',
      adminUser: 'admin',
      adminActsOnDefaultApplication: true,
      credentialFailuresPerMinute: 20,
      mobileReadsPerMinute: 60,
      otpAttemptsPerMinute: 10,
      codeFailuresPerMinute: 60,
      sourceFailuresPerMinute: 3000,
      temporaryKeysPerMinute: 600,
      signedBodyBytesMax: 131_072,
      doorIdempotencySeconds: 60,
      sealTicketSeconds: 300,
      activationValiditySeconds: 300,
      activationRemoveAllow1fa: false,
      maxFailedAttempts: 5,
      temporaryBlockSeconds: 0,
      counterLookAhead: 20,
      temporaryKeyValiditySeconds: 300,
      requestWindowSeconds: 300,
      legacyTokenWindowSeconds: 7200,
      apnsUrl: 'https://api.push.apple.com',
      apnsDevelopmentUrl: 'https://api.sandbox.push.apple.com',
      apnsLocalized: false,
      fcmUrl: 'https://fcm.googleapis.com',
      certificateFetchPrivate: false,
      certificateFetchPorts: [443],
      certificateWatch: false,
      webhookAllowHttp: false,
      webhookAllowPrivateAddresses: false,
      webhookRetryBaseSeconds: 5,
      webhookRetentionDays: 30,
      auditRetentionDays: 365,
      auditPartitionDays: 30,
      adminAuditRetentionDays: 365,
      strangerRetentionDays: 30,
      operationRetentionDays: 400,
      activationRetentionDays: 400,
      inboxRetentionDays: 400,
      singleListener: false,
      connectionsMax: 2000,
      requestsInFlightMax: 500,
      drainSeconds: 0,
      shutdownTimeoutSeconds: 7,
      statusName: 'pawl',
      statusVersion: expect.stringMatching(/^\d+\.\d+\.\d+/),
      userInfoTimeoutMs: 3000,
      activationProviderTimeoutMs: 5000,
      logLevel: 'info',
    })
    expect(Object.keys(secrets)).toEqual([])
  })

  test('an empty value counts as not set', () => {
    const empty = Object.fromEntries(Object.values(SETTINGS).map(({ name }) => [name, '']))
    expect(parse({ ...empty, DATABASE_URL: '', PAWL_MASTER_KEY_FILE: '', PAWL_NOT_A_SETTING: '' })).toEqual(parse({}))
  })

  test('configuration cannot be changed afterwards', () => {
    const { config, secrets } = parse({ PAWL_TRUSTED_PROXIES: '10.0.0.1' })
    expect([config, config.trustedProxies, secrets].every(Object.isFrozen)).toBe(true)
  })
})

describe('values', () => {
  test('each kind of setting is parsed to its type', () => {
    const { config } = parse({
      PAWL_HOST: '::1',
      PAWL_PORT: '0',
      PAWL_PUBLIC_URL: 'https://bank.example/pawl',
      PAWL_TRUSTED_PROXIES: '10.0.0.0/8, 2001:db8::/32,192.0.2.1',
      PAWL_CERTIFICATE_FETCH_PORTS: '443, 8443',
      PAWL_LOG_LEVEL: 'silent',
      PAWL_ACTIVATION_REMOVE_ALLOW_1FA: 'true',
      PAWL_STATUS_NAME: 'My Bank',
    })
    expect(config).toMatchObject({
      host: '::1',
      port: 0,
      publicUrl: 'https://bank.example/pawl',
      trustedProxies: ['10.0.0.0/8', '2001:db8::/32', '192.0.2.1'],
      certificateFetchPorts: [443, 8443],
      logLevel: 'silent',
      activationRemoveAllow1fa: true,
      statusName: 'My Bank',
    })
  })

  test.each([
    ['PAWL_PORT', '8080abc'],
    ['PAWL_PORT', '1e3'],
    ['PAWL_PORT', '0x50'],
    ['PAWL_PORT', ' 8080'],
    ['PAWL_PORT', '08080'],
    ['PAWL_PORT', '-1'],
    ['PAWL_PORT', '80.0'],
    ['PAWL_PORT', '65536'],
    ['PAWL_PORT', '99999999999999999999'],
    ['PAWL_ACTIVATION_VALIDITY_SECONDS', '59'],
    ['PAWL_ACTIVATION_VALIDITY_SECONDS', '86401'],
    ['PAWL_MAX_FAILED_ATTEMPTS', '0'],
    ['PAWL_MAX_FAILED_ATTEMPTS', '65'],
    ['PAWL_TEMPORARY_BLOCK_SECONDS', '-1'],
    ['PAWL_TEMPORARY_BLOCK_SECONDS', '2592001'],
    ['PAWL_COUNTER_LOOK_AHEAD', '65'],
    ['PAWL_COUNTER_LOOK_AHEAD', '0'],
    ['PAWL_TEMPORARY_KEY_VALIDITY_SECONDS', '29'],
    ['PAWL_ACTIVATION_REMOVE_ALLOW_1FA', 'TRUE'],
    ['PAWL_ACTIVATION_REMOVE_ALLOW_1FA', '1'],
    ['PAWL_LOG_LEVEL', 'INFO'],
    ['PAWL_PUBLIC_URL', 'https://bank.example/'],
    ['PAWL_PUBLIC_URL', 'ftp://bank.example'],
    ['PAWL_PUBLIC_URL', 'https://user:pass@bank.example'],
    ['PAWL_PUBLIC_URL', 'bank.example'],
    ['PAWL_PUBLIC_URL', 'https://bank.example?'],
    ['PAWL_PUBLIC_URL', 'https://bank.example/pawl#'],
    ['PAWL_TRUSTED_PROXIES', '10.0.0.0/33'],
    ['PAWL_TRUSTED_PROXIES', '0.0.0.0/0'],
    ['PAWL_TRUSTED_PROXIES', 'loopback'],
    ['PAWL_TRUSTED_PROXIES', '10.0.0.1,'],
    ['PAWL_TRUSTED_PROXIES', '10.0.0.0/8/8'],
    ['PAWL_TRUSTED_PROXIES', 'fe80::1%eth0'],
    ['PAWL_CERTIFICATE_FETCH_PORTS', '443,'],
    ['PAWL_CERTIFICATE_FETCH_PORTS', '443;8443'],
    ['PAWL_CERTIFICATE_FETCH_PORTS', '0'],
    ['PAWL_CERTIFICATE_FETCH_PORTS', '65536'],
    ['PAWL_ADMIN_USER', 'a:b'],
    ['PAWL_ADMIN_USER', '..'],
    ['PAWL_FIRST_APPLICATION', '.'],
    ['PAWL_HOST', 'a b'],
    ['PAWL_STATUS_NAME', 'a\nb'],
  ])('%s=%s is refused in one line that names the setting', (name, value) => {
    const problems = problemsOf({ [name]: value })
    expect(problems).toHaveLength(1)
    expect(problems[0]).toMatch(new RegExp(`^${name}: .+$`))
  })
})

describe('one listener for phones and the bank', () => {
  test.each(['0.0.0.0', '::', '10.0.0.1', 'pawl.bank.example', '127.0.0.1.example'])('is refused at %s', (host) => {
    expect(problemsOf({ PAWL_HOST: host })).toEqual([
      expect.stringMatching(/^PAWL_HOST: .*PAWL_INTERNAL_PORT.*PAWL_SINGLE_LISTENER=true/),
    ])
  })

  test.each([
    { PAWL_HOST: '127.0.0.1' },
    { PAWL_HOST: '127.1.2.3' },
    { PAWL_HOST: '::1' },
    { PAWL_HOST: 'localhost' },
    { PAWL_HOST: '0.0.0.0', PAWL_SINGLE_LISTENER: 'true' },
    { PAWL_HOST: '0.0.0.0', PAWL_INTERNAL_PORT: '8081' },
  ])('is allowed, or is none: %j', (env) => {
    expect(problemsOf(env)).toEqual([])
  })
})

describe('names', () => {
  test('an unknown PAWL_ name is refused', () => {
    expect(problemsOf({ PAWL_NOTHING_LIKE_IT: '8080' })).toEqual([
      'PAWL_NOTHING_LIKE_IT: no such setting, docs/CONFIG.md lists them',
    ])
    for (const [wrong, right] of [
      ['PAWL_PROT', 'PAWL_PORT'],
      ['PAWL_MASTERKEY', 'PAWL_MASTER_KEY'],
      ['PAWL_MASTER_KEY_FIEL', 'PAWL_MASTER_KEY_FILE'],
      ['PAWL_AUDIT_RETENTION', 'PAWL_AUDIT_RETENTION_DAYS'],
    ] as const) {
      expect(problemsOf({ [wrong]: '8080' })).toEqual([
        `${wrong}: no such setting, ${right} is the nearest; docs/CONFIG.md lists them`,
      ])
    }
  })

  // Kubelet sets these variables for a Service, one group for each of its ports.
  const linksOf = (prefix: string, host: string, ports: Record<string, number>, protocol = 'tcp'): Record<string, string> => {
    const at = (port: number) => `${protocol}://${host.includes(':') ? `[${host}]` : host}:${port}`
    const [first = 0] = Object.values(ports)
    return {
      [`${prefix}_SERVICE_HOST`]: host,
      [`${prefix}_SERVICE_PORT`]: String(first),
      [`${prefix}_PORT`]: at(first),
      ...Object.fromEntries(
        Object.entries(ports).flatMap(([name, port]) => {
          const one = `${prefix}_PORT_${port}_${protocol.toUpperCase()}`
          return [
            [`${prefix}_SERVICE_PORT_${name}`, String(port)],
            [one, at(port)],
            [`${one}_PROTO`, protocol],
            [`${one}_PORT`, String(port)],
            [`${one}_ADDR`, host],
          ]
        }),
      ),
    }
  }

  test.each([
    ['pawl', linksOf('PAWL', '10.0.0.1', { HTTP: 8080 })],
    ['pawl of two ports', linksOf('PAWL', '10.96.13.7', { PHONES: 80, METRICS: 9090 })],
    ['pawl by IPv6', linksOf('PAWL', 'fd00:10::7', { PHONES: 80 })],
    ['pawl by UDP', linksOf('PAWL', '10.0.0.1', { QUIC: 443 }, 'udp')],
    ['pawl-bank', linksOf('PAWL_BANK', '10.0.0.2', { BANK: 80 })],
    ['pawl-audit-sink', linksOf('PAWL_AUDIT_SINK', '10.0.0.3', { SYSLOG: 6514 })],
    ['pawl and pawl-bank', { ...linksOf('PAWL', '10.0.0.1', { HTTP: 80 }), ...linksOf('PAWL_BANK', '10.0.0.2', { BANK: 80 }) }],
  ])('what Kubernetes makes of a Service named %s is no setting', (_, env) => {
    expect(parse(env).config).toEqual(parse({}).config)
  })

  test('a setting beside a Service stays one', () => {
    const env = { ...linksOf('PAWL', '10.0.0.1', { HTTP: 80 }), PAWL_PORT: '8085' }
    expect(parse(env).config.port).toBe(8085)
    expect(parse({ ...env, PAWL_INTERNAL_PORT: '8086' }).config.internalPort).toBe(8086)
    expect(problemsOf({ ...env, PAWL_PORT: '80x' })).toEqual([expect.stringMatching(/^PAWL_PORT: /)])
  })

  test('a setting without a default, whose place a Service has taken, is told', () => {
    const env = { PAWL_HOST: '127.0.0.1', ...linksOf('PAWL_INTERNAL', '10.0.0.1', { HTTP: 80 }) }
    expect(problemsOf(env)).toEqual([
      'PAWL_INTERNAL_PORT: Kubernetes has put the address of a Service here; set enableServiceLinks: false in the pod, or give the setting there',
    ])
    expect(problemsOf({ ...env, PAWL_INTERNAL_PORT: '8081' })).toEqual([])
  })

  const links = linksOf('PAWL', '10.0.0.1', { HTTP: 8080 })
  test.each([
    ['another address', { ...links, PAWL_PORT: 'tcp://10.0.0.2:8080' }, ['PAWL_PORT']],
    ['an address of no Service', { PAWL_PORT: 'tcp://10.0.0.1:8080' }, ['PAWL_PORT']],
    ['no port', { ...links, PAWL_PORT: 'tcp://10.0.0.1' }, ['PAWL_PORT']],
    ['a port behind the last', { ...links, PAWL_PORT: 'tcp://10.0.0.1:65536' }, ['PAWL_PORT']],
    ['another protocol', { ...links, PAWL_PORT: 'http://10.0.0.1:8080' }, ['PAWL_PORT']],
    [
      'a name in place of the address',
      { PAWL_SERVICE_HOST: 'pawl', PAWL_SERVICE_PORT: '80' },
      ['PAWL_SERVICE_HOST', 'PAWL_SERVICE_PORT'],
    ],
    ['an address alone', { PAWL_SERVICE_HOST: '10.0.0.1' }, ['PAWL_SERVICE_HOST']],
    ['a port alone', { PAWL_SERVICE_PORT_HTTP: '80' }, ['PAWL_SERVICE_PORT_HTTP']],
    ['a port that is no number', { ...links, PAWL_SERVICE_PORT_HTTP: 'eighty' }, ['PAWL_SERVICE_PORT_HTTP']],
    ['the protocol of another port', { ...links, PAWL_PORT_8080_TCP_PROTO: 'udp' }, ['PAWL_PORT_8080_TCP_PROTO']],
    ['the number of another port', { ...links, PAWL_PORT_8080_TCP_PORT: '80' }, ['PAWL_PORT_8080_TCP_PORT']],
    ['the address of another Service', { ...links, PAWL_PORT_8080_TCP_ADDR: '10.0.0.2' }, ['PAWL_PORT_8080_TCP_ADDR']],
    ['another ending', { ...links, PAWL_PORT_8080_TCP_NAME: 'x' }, ['PAWL_PORT_8080_TCP_NAME']],
    ['a Service that there is none of', { ...links, PAWL_BANK_PORT: 'tcp://10.0.0.1:8080' }, ['PAWL_BANK_PORT']],
    ['a setting that is none', { ...links, PAWL_SERVICE: 'x' }, ['PAWL_SERVICE']],
  ])('what only resembles them is refused: %s', (_, env, names) => {
    expect(problemsOf(env).map((problem) => problem.split(':')[0])).toEqual(names)
  })

  test('only secrets may come from a file', () => {
    expect(problemsOf({ PAWL_PORT_FILE: '/run/port' })).toHaveLength(1)
  })

  test('names of the test suite and of drivers in the same shell are let through', () => {
    expect(
      problemsOf({
        PAWL_VECTORS: 'v',
        PAWL_TEST_DATABASE_URL: 'u',
        PAWL_URL: 'u',
        PAWL_ADMIN: 'a:b',
        PAWL_APP: 'a:b',
        PAWL_APPLICATION: 'x',
      }),
    ).toEqual([])
  })

  test('no setting is named like a flag of a driver', () => {
    const flags =
      'URL ADMIN APP APPLICATION BACKEND REFERENCE_URL UTILITY_URL UTILITY_APP VERSION ONLY TEMPLATE PARAMETERS WORK THREADS SECONDS ' +
      'WARMUP ACTIVATIONS MAX_REQUESTS PID LIST HELP'
    const names = Object.values(SETTINGS).map(({ name }) => name)
    expect(names.filter((name) => flags.split(' ').includes(name.slice('PAWL_'.length)))).toEqual([])
  })

  test('every problem is listed, not only the first', () => {
    const problems = problemsOf({
      PAWL_PORT: 'x',
      PAWL_LOG_LEVEL: 'loud',
      PAWL_NO: '1',
      PAWL_MASTER_KEY: 'short',
      DATABASE_URL: 'mysql://x',
    })
    expect(problems.map((problem) => problem.slice(0, problem.indexOf(':'))).toSorted()).toEqual([
      'DATABASE_URL',
      'PAWL_LOG_LEVEL',
      'PAWL_MASTER_KEY',
      'PAWL_NO',
      'PAWL_PORT',
    ])
  })
})

describe('secrets', () => {
  const url = 'postgres://pawl:marked-secret@db/pawl'

  test('secrets come from the environment', () => {
    const { secrets } = parse({ DATABASE_URL: url, PAWL_MASTER_KEY: KEY, PAWL_ADMIN_PASSWORD: 'a chosen pass word' })
    expect(secrets.databaseUrl).toBe(url)
    expect(secrets.masterKeys).toEqual([Buffer.alloc(32, 7)])
    expect(secrets.adminPassword).toBe('a chosen pass word')
  })

  test('secrets come from files, without the newline that ends them', () => {
    const { secrets } = parse(
      { DATABASE_URL_FILE: '/url', PAWL_MASTER_KEY_FILE: '/key', PAWL_ADMIN_PASSWORD_FILE: '/password' },
      { '/url': `${url}\n`, '/key': `${KEY}\r\n`, '/password': ' a chosen pass \n' },
    )
    expect(secrets.databaseUrl).toBe(url)
    expect(secrets.masterKeys).toEqual([Buffer.alloc(32, 7)])
    expect(secrets.adminPassword).toBe(' a chosen pass ')
  })

  test('of several master keys the first comes first, however they are divided', () => {
    const other = Buffer.alloc(32, 9)
    const keys = [Buffer.alloc(32, 7), other]
    for (const between of [',', '\n', '\r\n'])
      expect(parse({ PAWL_MASTER_KEY: `${KEY}${between}${other.toString('base64')}` }).secrets.masterKeys).toEqual(keys)
    const wrong = problemsOf({ PAWL_MASTER_KEY: `${KEY},${KEY.slice(1)}` })
    expect(wrong).toEqual(['PAWL_MASTER_KEY: not 32 bytes in standard Base64, make one with: openssl rand -base64 32'])
  })

  test('a command for the master key stands in for one, not beside it', () => {
    const command = { DATABASE_URL: url, PAWL_MASTER_KEY_COMMAND: '/usr/bin/secrets get pawl' }
    expect(parse(command).config.masterKeyCommand).toBe('/usr/bin/secrets get pawl')
    expect(problemsOf({ ...command, PAWL_MASTER_KEY: KEY })).toEqual([
      'PAWL_MASTER_KEY_COMMAND: set together with PAWL_MASTER_KEY, keep one of them',
    ])
  })

  test('a command for the master key gets what every program has, and what is named', () => {
    const env = {
      DATABASE_URL: url,
      PAWL_MASTER_KEY_COMMAND: 'secrets',
      PAWL_ADMIN_PASSWORD: 'a password of the operator',
      PATH: '/bin',
      LANG: 'C',
      VAULT_TOKEN: 'token',
      AWS_REGION: 'r',
      NODE_OPTIONS: '--no-warnings',
    }
    expect(parse(env).secrets.masterKeyCommandEnvironment).toEqual({ PATH: '/bin', LANG: 'C' })
    const named = { ...env, PAWL_MASTER_KEY_COMMAND_ENVIRONMENT: 'VAULT_TOKEN, AWS_REGION,NOT_SET' }
    expect(parse(named).secrets.masterKeyCommandEnvironment).toEqual({
      PATH: '/bin',
      LANG: 'C',
      VAULT_TOKEN: 'token',
      AWS_REGION: 'r',
    })
    expect(JSON.stringify(parse(named).secrets)).toBe('"[secret]"')
    for (const wrong of ['PAWL_ADMIN_PASSWORD', 'DATABASE_URL', 'VAULT_TOKEN,', 'A=b', 'A B'])
      expect(problemsOf({ ...env, PAWL_MASTER_KEY_COMMAND_ENVIRONMENT: wrong })).toEqual([
        expect.stringMatching(/^PAWL_MASTER_KEY_COMMAND_ENVIRONMENT: ".*" is not the name of a variable, or is a setting/),
      ])
  })

  test.each(['banana', 'allow', 'VERIFY-FULL'])('a mode of TLS beside the URL that there is not is refused: %s', (mode) => {
    const env = { DATABASE_URL: url, PAWL_MASTER_KEY: KEY, PGSSLMODE: mode }
    expect(problemsOf(env)).toEqual([
      `PGSSLMODE: "${mode}" is not one of disable, no-verify, prefer, require, verify-ca, verify-full`,
    ])
    expect(problemsOf({ PGSSLMODE: mode })).toEqual([])
    for (const right of ['', 'require']) expect(problemsOf({ ...env, PGSSLMODE: right })).toEqual([])
  })

  test('a start with certificates that nobody checks is refused', () => {
    expect(problemsOf({ NODE_TLS_REJECT_UNAUTHORIZED: '0' })).toEqual([
      expect.stringMatching(/^NODE_TLS_REJECT_UNAUTHORIZED: with 0 .* leave it out; NODE_EXTRA_CA_CERTS/),
    ])
    for (const right of ['', '1']) expect(problemsOf({ NODE_TLS_REJECT_UNAUTHORIZED: right })).toEqual([])
  })

  test.each(['PAWL_MASTER_KEY_COMMAND', 'PAWL_DATA_DIR', 'PAWL_TEMPLATES_FILE', 'PAWL_INTERNAL_TLS_KEY', 'PAWL_VAULT_TOKEN'])(
    '%s of spaces alone is refused',
    (name) => {
      for (const spaces of [' ', '  ', ' '.repeat(40)])
        expect(problemsOf({ [name]: spaces }).filter((problem) => problem.startsWith(`${name}: `))).toHaveLength(1)
    },
  )

  test('a secret in the environment and in a file at once is refused', () => {
    expect(problemsOf({ PAWL_MASTER_KEY: KEY, PAWL_MASTER_KEY_FILE: '/key' }, { '/key': KEY })).toEqual([
      'PAWL_MASTER_KEY: set together with PAWL_MASTER_KEY_FILE, keep one of them',
    ])
  })

  test('a missing and an empty file are refused by name', () => {
    const env = { DATABASE_URL: url, PAWL_MASTER_KEY_FILE: '/missing', PAWL_ADMIN_PASSWORD_FILE: '/empty' }
    expect(problemsOf(env, { '/empty': '\n' })).toEqual([
      'PAWL_MASTER_KEY_FILE: /missing does not exist',
      'PAWL_ADMIN_PASSWORD_FILE: /empty is empty',
    ])
  })

  test('a database elsewhere needs a master key', () => {
    expect(problemsOf({ DATABASE_URL: url })).toEqual([
      'PAWL_MASTER_KEY: needed together with DATABASE_URL, make one with: openssl rand -base64 32',
    ])
  })

  test.each([
    Buffer.alloc(31).toString('base64'),
    Buffer.alloc(33).toString('base64'),
    'x'.repeat(44),
    KEY.replace('=', '_'),
    `${KEY} `,
  ])('the master key %s is refused', (value) => {
    expect(problemsOf({ PAWL_MASTER_KEY: value })).toHaveLength(1)
  })

  test.each(['a', 'elevenchars', 'password1234', 'AdminAdmin2026!', 'bell\u0007 in a password'])(
    'the password %j of the administrator is refused',
    (value) => {
      expect(problemsOf({ PAWL_ADMIN_PASSWORD: value })).toEqual([expect.stringMatching(/^PAWL_ADMIN_PASSWORD: /)])
    },
  )

  test('problems never repeat a secret', () => {
    const marked = 'marked\u0007secret'
    const problems = problemsOf({ DATABASE_URL: marked, PAWL_MASTER_KEY: marked, PAWL_ADMIN_PASSWORD: marked })
    expect(problems).toHaveLength(3)
    expect(problems.join()).not.toContain('marked')
  })

  test.each([
    ['PAWL_PUBLIC_URL', 'https://user:marked@bank.example'],
    ['PAWL_PUBLIC_URL', 'https://user:mar/ked-marked@bank.example'],
    ['PAWL_PUBLIC_URL', 'https://bank.example/?key=marked'],
    ['PAWL_USER_INFO_URL', 'https://user:marked@bank.example/claims'],
    ['PAWL_USER_INFO_URL', 'https:user:marked@bank.example'],
    ['PAWL_USER_INFO_URL', 'https://bank.example/claims?key=marked#fragment'],
    ['PAWL_ACTIVATION_PROVIDER_URL', 'user:marked@bank.example/users'],
    ['PAWL_HOST', 'postgres://pawl:marked@db/pawl'],
    ['PAWL_TRUSTED_PROXIES', 'http://user:marked@proxy'],
    ['PAWL_LOG_LEVEL', 'https://user:marked@bank.example'],
  ])('a problem of %s does not repeat user, password and query of a URL: %s', (name, value) => {
    const problems = problemsOf({ [name]: value })
    expect(problems).toHaveLength(1)
    expect(problems.join()).not.toContain('marked')
    expect(problems.join()).toContain('[secret]')
  })

  test.each(['postgres://pawl:12/34@db/pawl', 'postgres://pawl:12?34@db/pawl', 'postgres://pawl:12#34@db/pawl'])(
    'the database URL %s is refused: its password would count as something else, and be shown',
    (value) => {
      expect(problemsOf({ DATABASE_URL: value, PAWL_MASTER_KEY: KEY })).toEqual([
        'DATABASE_URL: a password with / ? # or @ must have them percent-encoded: %2F %3F %23 %40',
      ])
    },
  )

  test.each(['postgres://pawl@h1,,h2/pawl', 'postgres://pawl@h1/pawl?target_session_attrs=standby'])(
    'the database URL %s is refused: no server there takes writes',
    (value) => {
      expect(problemsOf({ DATABASE_URL: value, PAWL_MASTER_KEY: KEY })).toEqual([
        'DATABASE_URL: not a postgres://user:password@host:port,host:port/database URL of a server that takes writes',
      ])
    },
  )

  test('secrets print as one word wherever they are printed', () => {
    const { secrets } = parse({ DATABASE_URL: url, PAWL_MASTER_KEY: KEY })
    expect(JSON.stringify({ secrets })).toBe('{"secrets":"[secret]"}')
    expect(inspect({ secrets }, { showHidden: true, depth: 5 })).toBe('{ secrets: [secret] }')
    expect(secrets.toString()).toBe('[secret]')
  })
})

describe('pushes', () => {
  const pem = `-----BEGIN PRIVATE KEY-----\n${'A'.repeat(64)}\n-----END PRIVATE KEY-----`
  const apns = {
    PAWL_APNS_KEY: pem,
    PAWL_APNS_KEY_ID: 'ABC123DEFG',
    PAWL_APNS_TEAM_ID: 'TEAM567890',
    PAWL_APNS_TOPIC: 'com.bank',
  }
  const account = { project_id: 'bank', client_email: 'pusher@bank.iam.gserviceaccount.com', private_key: pem }

  test('credentials of Apple are given together or not at all', () => {
    expect(parse(apns)).toMatchObject({ secrets: { apnsKey: pem }, config: { apnsTopic: 'com.bank' } })
    const rest = { PAWL_APNS_TEAM_ID: 'TEAM567890', PAWL_APNS_TOPIC: 'com.bank' }
    const given = 'PAWL_APNS_TEAM_ID and PAWL_APNS_TOPIC'
    expect(problemsOf(rest)).toEqual([
      `PAWL_APNS_KEY: needed together with ${given}`,
      `PAWL_APNS_KEY_ID: needed together with ${given}`,
    ])
  })

  test.each(['PAWL_APNS_URL', 'PAWL_APNS_DEVELOPMENT_URL', 'PAWL_FCM_URL'])(
    '%s has no path: pushes would not go there',
    (name) => {
      expect(parse({ [name]: 'https://pushes.bank.example:8443/' })).toBeDefined()
      for (const value of ['https://bank.example/pushes', 'https://bank.example/?to=apple'])
        expect(problemsOf({ [name]: value })).toEqual([`${name}: has a path or a query: give https://host:port`])
      expect(problemsOf({ [name]: 'http://bank.example' })).toEqual([`${name}: "http://bank.example" is not https`])
    },
  )

  test('a service account is the JSON file of Google', () => {
    const read = (change: object) => ({ PAWL_FCM_SERVICE_ACCOUNT: JSON.stringify({ ...account, ...change }) })
    expect(parse(read({})).secrets.fcmServiceAccount).toEqual({
      projectId: 'bank',
      clientEmail: account.client_email,
      privateKey: pem,
      tokenUrl: 'https://oauth2.googleapis.com/token',
    })
    const wrong = [
      { project_id: '../x' },
      { client_email: undefined },
      { private_key: 'a secret' },
      { token_uri: 'http://example.com/token' },
    ]
    for (const change of wrong)
      expect(problemsOf(read(change))).toEqual(['PAWL_FCM_SERVICE_ACCOUNT: not the JSON file of a service account'])
    expect(problemsOf({ PAWL_FCM_SERVICE_ACCOUNT: '{"private_key":' })).toHaveLength(1)
    expect(problemsOf({ ...apns, PAWL_APNS_KEY: 'a secret' })).toEqual(['PAWL_APNS_KEY: not the text of a .p8 file from Apple'])
  })
})

describe('access tokens', () => {
  const tokens = {
    PAWL_JWT_ISSUER: 'https://login.bank.example',
    PAWL_JWT_AUDIENCE: 'pawl',
    PAWL_JWT_JWKS_URL: 'https://login.bank.example/jwks',
  }

  test('need issuer, audience and keys together', () => {
    expect(parse(tokens).config.jwtJwksUrl).toBe('https://login.bank.example/jwks')
    expect(problemsOf({ ...tokens, PAWL_JWT_AUDIENCE: '' })).toEqual([
      'PAWL_JWT_AUDIENCE: needed together with PAWL_JWT_JWKS_URL and PAWL_JWT_ISSUER',
    ])
  })

  test.each([
    ['PAWL_JWT_JWKS_URL', 'http://login.bank.example/jwks', /is not https$/],
    ['PAWL_JWT_JWKS_URL', 'https://user:marked@login.bank.example/jwks', /is not an http or https URL/],
    ['PAWL_JWT_ALGORITHMS', 'RS256,HS256', /^PAWL_JWT_ALGORITHMS: "HS256" is not one of RS256/],
    ['PAWL_JWT_TYPES', 'at+jwt,logout+jwt', /^PAWL_JWT_TYPES: "logout\+jwt" is not one of at\+jwt, JWT/],
    ['PAWL_JWT_TYPES', 'at+jwt,', /^PAWL_JWT_TYPES: "" is not one of/],
    ['PAWL_JWT_ALGORITHMS', 'none', /^PAWL_JWT_ALGORITHMS: "none" is not one of RS256/],
  ])('%s is not %s', (name, value, problem) => {
    expect(problemsOf({ ...tokens, [name]: value })).toEqual([expect.stringMatching(problem)])
  })

  test('keys may come from this machine without TLS', () => {
    expect(parse({ ...tokens, PAWL_JWT_JWKS_URL: 'http://127.0.0.1:9000/jwks' }).config.jwtJwksUrl).toBe(
      'http://127.0.0.1:9000/jwks',
    )
  })
})
