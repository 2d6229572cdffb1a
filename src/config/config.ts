// Lists every setting that is not a secret. All settings are in SETTINGS or in SECRET_SETTINGS (secrets.ts); docs/CONFIG.md and .env.example are
// made from these two lists.
import packageJson from '../../package.json' with { type: 'json' }
import {
  addressList,
  boolean,
  integer,
  matching,
  oneOf,
  path,
  portList,
  providerUrl,
  publicUrl,
  type Settings,
  type ValuesOf,
  variableList,
  vaultKeyUrl,
} from './kinds.ts'
import { DOOR_SETTINGS, TOKEN_SETTINGS } from './bank-api.ts'
import { PUSH_SETTINGS } from './push.ts'
import { RETENTION_SETTINGS, SERVING_SETTINGS, TLS_SETTINGS } from './running.ts'
import { LOG_LEVELS } from '../log/log.ts'

/** Every setting that is not a secret, in the order of the documentation. */
export const SETTINGS = {
  host: {
    name: 'PAWL_HOST',
    kind: matching('host name or IP address', /^[\w.:-]+$/, 'a host name or an IP address'),
    default: '127.0.0.1',
    description: 'Address to listen on. 0.0.0.0 or :: for every network interface.',
  },
  port: { name: 'PAWL_PORT', kind: integer(0, 65535), default: '8080', description: 'Port to listen on. 0 takes a free one.' },
  internalHost: {
    name: 'PAWL_INTERNAL_HOST',
    kind: matching('host name or IP address', /^[\w.:-]+$/, 'a host name or an IP address'),
    default: '127.0.0.1',
    description: 'Address of the internal listener. Used with PAWL_INTERNAL_PORT.',
  },
  internalPort: {
    name: 'PAWL_INTERNAL_PORT',
    kind: integer(0, 65535),
    description:
      'Port of a second listener, the internal one. It alone then serves the cloud API, administration and the description of the APIs, and ' +
      'PAWL_PORT only what phones call. Phones must never reach it. Without it, PAWL_PORT serves everything. 0 takes a free one.',
  },
  ...TLS_SETTINGS,
  singleListener: {
    name: 'PAWL_SINGLE_LISTENER',
    kind: boolean,
    default: 'false',
    description:
      'Allows one listener for phones and the bank at an address that other machines reach. By default such a start is refused.',
  },
  metrics: {
    name: 'PAWL_METRICS',
    kind: oneOf(['open', 'basic', 'off']),
    defaultLabel: '`open` with `PAWL_INTERNAL_PORT`, else `basic`',
    description:
      'Who reads `GET /metrics`, which is served where the cloud API is: open is everybody who reaches that listener; basic is an ' +
      'administrator, or a read-only credential without application; off is nobody.',
  },
  publicUrl: {
    name: 'PAWL_PUBLIC_URL',
    kind: publicUrl,
    description:
      'Address at which phones reach this server. Without it, printed and shown addresses are those of the listener for phones.',
  },
  trustedProxies: {
    name: 'PAWL_TRUSTED_PROXIES',
    kind: addressList,
    default: '',
    description:
      'Reverse proxies whose X-Forwarded-For is believed, and whose connections have no share of PAWL_CONNECTIONS_MAX. By default none.',
  },
  console: {
    name: 'PAWL_CONSOLE',
    kind: boolean,
    default: 'true',
    description: "Serves the console for administrators at /console/, beside the bank's API. docs/CONSOLE.md says what it is.",
  },
  consoleIdleSeconds: {
    name: 'PAWL_CONSOLE_IDLE_SECONDS',
    kind: integer(60, 86_400),
    default: '900',
    unit: 'seconds',
    description: 'A session of the console ends after so long without a use.',
  },
  consoleSessionSeconds: {
    name: 'PAWL_CONSOLE_SESSION_SECONDS',
    kind: integer(60, 604_800),
    default: '28800',
    unit: 'seconds',
    description: 'A session of the console ends after so long, even if it is used.',
  },
  dataDir: {
    name: 'PAWL_DATA_DIR',
    kind: path,
    default: './data',
    description:
      'Directory of the embedded database and of its generated master key. Not used with DATABASE_URL. One process at a time.',
  },
  masterKeyCommand: {
    name: 'PAWL_MASTER_KEY_COMMAND',
    kind: matching('program and arguments', /^(?!\s*$)\P{Cc}{1,1000}$/u, 'a program and its arguments on one line'),
    description:
      'Program that prints the value of PAWL_MASTER_KEY, for a secret store with a command line. It is run without a shell at each start, ' +
      'its arguments are divided by spaces, and it has 10 seconds. Of the environment it gets PATH, HOME, USER, LOGNAME, LANG, LC_ALL, TZ and ' +
      'TMPDIR, and what PAWL_MASTER_KEY_COMMAND_ENVIRONMENT names.',
  },
  masterKeyCommandEnvironment: {
    name: 'PAWL_MASTER_KEY_COMMAND_ENVIRONMENT',
    kind: variableList,
    default: '',
    description:
      'Environment variables that the program of PAWL_MASTER_KEY_COMMAND needs, for example `VAULT_ADDR,VAULT_TOKEN` or ' +
      '`AWS_REGION,AWS_ROLE_ARN,AWS_WEB_IDENTITY_TOKEN_FILE`. None of the settings of pawl.',
  },
  vaultKeyUrl: {
    name: 'PAWL_VAULT_KEY_URL',
    kind: vaultKeyUrl,
    description:
      'Key of the transit engine of Vault or OpenBao that unwraps master keys given as `vault:v1:...`; `pawl key create --wrapped` makes one. ' +
      'It is asked at each start.',
  },
  databasePoolSize: {
    name: 'PAWL_DATABASE_POOL_SIZE',
    kind: integer(1, 100),
    default: '8',
    unit: 'connections',
    description: 'Connections to PostgreSQL of each process. 8 measured best for one; more makes slow requests slower.',
  },
  databasePooler: {
    name: 'PAWL_DATABASE_POOLER',
    kind: oneOf(['none', 'session', 'transaction']),
    default: 'none',
    description:
      'Mode of the pooler that DATABASE_URL leads to, PgBouncer 1.18 or newer. With transaction, pawl prepares no statements, ' +
      'and time limits and some other settings must be those of the role. docs/OPERATIONS.md says how to set them.',
  },
  migrate: {
    name: 'PAWL_MIGRATE',
    kind: oneOf(['start', 'never']),
    default: 'start',
    description:
      'Whether each start migrates the schema, or none. With never, a start that finds a migration missing ends with one line; run pawl migrate.',
  },
  adminUser: {
    name: 'PAWL_ADMIN_USER',
    kind: matching('text', /^(?!\.{1,2}$)[\w.@-]{1,64}$/, 'made of 1 to 64 letters, digits and _ . @ -, other than . and ..'),
    default: 'admin',
    description: 'Name of the administrator that the first start creates.',
  },
  firstApplication: {
    name: 'PAWL_FIRST_APPLICATION',
    kind: matching('text', /^(?!\.{1,2}$)[\w.-]{1,64}$/, 'made of 1 to 64 letters, digits and _ . -, other than . and ..'),
    description: 'Application that a start creates when there is none; it is then the default one. By default none is created.',
  },
  adminActsOnDefaultApplication: {
    name: 'PAWL_ADMIN_ACTS_ON_DEFAULT_APPLICATION',
    kind: boolean,
    default: 'true',
    description: 'Administrators may also call the API of back ends, for the default application.',
  },
  credentialFailuresPerMinute: {
    name: 'PAWL_CREDENTIAL_FAILURES_PER_MINUTE',
    kind: integer(1, 100_000),
    default: '20',
    unit: 'failures',
    description:
      'Wrong passwords for one user name from one address in a minute. After that, logins under this name from this address are answered 429 ' +
      'unchecked: for a minute, then for twice as long each time, up to 16 minutes. After ten times as many from one address, under any names, all ' +
      'logins from there wait, except under names that logged in from there within the last hour. IPv6 addresses count by their /64.',
  },
  ...TOKEN_SETTINGS,
  activationValiditySeconds: {
    name: 'PAWL_ACTIVATION_VALIDITY_SECONDS',
    kind: integer(60, 86_400),
    default: '300',
    unit: 'seconds',
    description: 'How long an activation may wait for its phone, and for the commit.',
  },
  activationRemoveAllow1fa: {
    name: 'PAWL_ACTIVATION_REMOVE_ALLOW_1FA',
    kind: boolean,
    default: 'false',
    description: 'A phone may remove its activation with possession alone. By default it needs two factors.',
  },
  maxFailedAttempts: {
    name: 'PAWL_MAX_FAILED_ATTEMPTS',
    kind: integer(1, 64),
    default: '5',
    unit: 'attempts',
    description: 'Wrong codes in a row that block an activation.',
  },
  temporaryBlockSeconds: {
    name: 'PAWL_TEMPORARY_BLOCK_SECONDS',
    kind: integer(0, 2_592_000),
    default: '0',
    unit: 'seconds',
    description:
      'How long the first block by wrong codes lasts. Then the activation has one attempt, and each further block in a row lasts twice as long, up ' +
      'to 30 days. With 0 a block lasts until the bank unblocks. Set it once every process runs a version that knows it: when the bank ends a block ' +
      'early, an older version keeps the end in the row, and a later block by the bank would end then.',
  },
  counterLookAhead: {
    name: 'PAWL_COUNTER_LOOK_AHEAD',
    // The status of an activation contains this number. Published SDKs refuse a status whose number is above 64.
    kind: integer(1, 64),
    default: '20',
    unit: 'steps',
    description: 'Counter values tried for a code: how far a phone may be ahead of the server. SDKs read a status with up to 64.',
  },
  temporaryKeyValiditySeconds: {
    name: 'PAWL_TEMPORARY_KEY_VALIDITY_SECONDS',
    // Published SDKs stop using a key ten seconds before its end, so a shorter validity would make keys useless.
    kind: integer(30, 86_400),
    default: '300',
    unit: 'seconds',
    description: 'Life of a temporary encryption key. SDKs stop using it 10 seconds before its end.',
  },
  requestWindowSeconds: {
    name: 'PAWL_REQUEST_WINDOW_SECONDS',
    kind: integer(1, 86_400),
    default: '300',
    unit: 'seconds',
    description:
      "How far a request's timestamp may be from the server's clock, for protocol 3.2 and newer. Used nonces are remembered for as long: after you raise it, an older request without an authentication code may be accepted once more.",
  },
  legacyTokenWindowSeconds: {
    name: 'PAWL_LEGACY_TOKEN_WINDOW_SECONDS',
    kind: integer(1, 86_400),
    default: '7200',
    unit: 'seconds',
    description: 'The same for tokens of protocol 3.0 and 3.1.',
  },
  mobileReadsPerMinute: {
    name: 'PAWL_MOBILE_READS_PER_MINUTE',
    kind: integer(1, 100_000),
    default: '60',
    unit: 'calls',
    description: 'How often one phone may list, read or claim operations, read its inbox, or ask for a code in a minute.',
  },
  otpAttemptsPerMinute: {
    name: 'PAWL_OTP_ATTEMPTS_PER_MINUTE',
    kind: integer(1, 100_000),
    default: '10',
    unit: 'calls',
    description: 'How many offline one-time passwords and offline codes of one activation are checked in a minute.',
  },
  codeFailuresPerMinute: {
    name: 'PAWL_CODE_FAILURES_PER_MINUTE',
    kind: integer(1, 100_000),
    default: '60',
    unit: 'failures',
    description:
      'Wrong authentication codes for one activation from one source (an IPv4 address, or the first 64 bits of an IPv6 address) in a ' +
      'minute. Further codes, right ones too, are answered like wrong ones without a look at them. Behind a proxy, ' +
      'PAWL_TRUSTED_PROXIES says who the source is.',
  },
  sourceFailuresPerMinute: {
    name: 'PAWL_SOURCE_FAILURES_PER_MINUTE',
    kind: integer(1, 1_000_000),
    default: '3000',
    unit: 'failures',
    description:
      'Refused requests of phones from one source in a minute; a body counts once more for every 16 KiB. Further requests of the source ' +
      'are answered 429 unchecked. Phones behind a proxy that PAWL_TRUSTED_PROXIES does not name are one source.',
  },
  temporaryKeysPerMinute: {
    name: 'PAWL_TEMPORARY_KEYS_PER_MINUTE',
    kind: integer(1, 1_000_000),
    default: '600',
    unit: 'requests',
    description:
      'Temporary keys that apps at one source may request in a minute without an activation; a phone needs one for each activation that it ' +
      'makes. Further requests are answered 429 unchecked. Carriers and offices have many phones behind one address. One activation at a source ' +
      'may request as many; a phone needs one every few minutes.',
  },
  signedBodyBytesMax: {
    name: 'PAWL_SIGNED_BODY_BYTES_MAX',
    kind: integer(16_384, 262_144),
    default: '131072',
    unit: 'bytes',
    description:
      'The longest body that an authentication code may cover. The approval of operation data of 10,000 characters may need 65536. ' +
      'Bodies over 7 KiB have fewer than 20 counter values tried, down to 2 from 64 KiB on.',
  },
  ...DOOR_SETTINGS,
  templatesFile: {
    name: 'PAWL_TEMPLATES_FILE',
    kind: path,
    description:
      'JSON file with templates of operations. Each start writes them, and deletes those that an earlier version of the file had. ' +
      'docs/TEMPLATES.md says how to write one.',
  },
  webhookAllowHttp: {
    name: 'PAWL_WEBHOOK_ALLOW_HTTP',
    kind: boolean,
    default: 'false',
    description: 'Webhooks and questions to OpenID providers may go to http URLs. By default only to https.',
  },
  webhookAllowPrivateAddresses: {
    name: 'PAWL_WEBHOOK_ALLOW_PRIVATE_ADDRESSES',
    kind: boolean,
    default: 'false',
    description:
      'Webhooks and questions to OpenID providers may go to loopback, private and other addresses that are not of the public internet.',
  },
  webhookRetryBaseSeconds: {
    name: 'PAWL_WEBHOOK_RETRY_BASE_SECONDS',
    kind: integer(1, 60),
    default: '5',
    unit: 'seconds',
    description:
      'Wait after the first failed attempt of a delivery. All other waits grow with it: by default 15 s, 1 min, 5 min, 30 min, 4 h and ' +
      '19 h, eight attempts in 24 hours.',
  },
  webhookRetentionDays: {
    name: 'PAWL_WEBHOOK_RETENTION_DAYS',
    kind: integer(1, 3650),
    default: '30',
    unit: 'days',
    description: 'How long messages are kept, whether delivered, dead or waiting.',
  },
  ...PUSH_SETTINGS,
  certificateFetchPrivate: {
    name: 'PAWL_CERTIFICATE_FETCH_PRIVATE',
    kind: boolean,
    default: 'false',
    description:
      'Certificates to pin may be fetched from loopback, private and link-local addresses. By default from public ones only.',
  },
  certificateFetchPorts: {
    name: 'PAWL_CERTIFICATE_FETCH_PORTS',
    kind: portList,
    default: '443',
    description: 'Ports that certificates to pin may be fetched from.',
  },
  certificateWatch: {
    name: 'PAWL_CERTIFICATE_WATCH',
    kind: boolean,
    default: 'false',
    description:
      'Once a day, pawl compares the certificate that each pinned domain shows with its pins, and logs an error when it is not among them.',
  },
  ...RETENTION_SETTINGS,
  ...SERVING_SETTINGS,
  statusName: {
    name: 'PAWL_STATUS_NAME',
    kind: matching('text', /^\P{Cc}{1,64}$/u, '1 to 64 characters without control characters'),
    default: 'pawl',
    description: 'Application name in the answer of /pa/v3/status.',
  },
  statusVersion: {
    name: 'PAWL_STATUS_VERSION',
    kind: matching('text', /^\P{Cc}{1,64}$/u, '1 to 64 characters without control characters'),
    default: packageJson.version,
    defaultLabel: 'the version of pawl',
    description: 'Application version in the answer of /pa/v3/status.',
  },
  userInfoUrl: {
    name: 'PAWL_USER_INFO_URL',
    kind: providerUrl,
    description:
      'Server of the bank that is asked for claims about a user: POST {applicationId, userId, activationId}, answer a JSON object. ' +
      'Its claims replace stored ones of the same name.',
  },
  userInfoTimeoutMs: {
    name: 'PAWL_USER_INFO_TIMEOUT_MS',
    kind: integer(1, 60_000),
    default: '3000',
    unit: 'milliseconds',
    description: 'How long its answer may take, from the look-up of its name to the last byte.',
  },
  activationProviderUrl: {
    name: 'PAWL_ACTIVATION_PROVIDER_URL',
    kind: providerUrl,
    description:
      'Server of the bank that finds the user of an activation without code (DIRECT, CUSTOM): POST {applicationId, type, ' +
      'identityAttributes, customAttributes, protocolVersion, platform?, deviceInfo?}, answer {userId, commit?, customAttributes?, flags?, ' +
      'maxFailedAttempts?, expiresInSeconds?}. Without it such activations are refused.',
  },
  activationProviderTimeoutMs: {
    name: 'PAWL_ACTIVATION_PROVIDER_TIMEOUT_MS',
    kind: integer(1, 60_000),
    default: '5000',
    unit: 'milliseconds',
    description: 'How long its answer may take, from the look-up of its name to the last byte.',
  },
  logLevel: {
    name: 'PAWL_LOG_LEVEL',
    kind: oneOf(LOG_LEVELS),
    default: 'info',
    description: 'Log lines go to stdout as JSON. debug has one line for each request.',
  },
} satisfies Settings

export type Config = ValuesOf<typeof SETTINGS>
