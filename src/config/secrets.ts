// Lists every setting that is a secret.
import { adminPassword, authorization, databaseUrl, masterKeys, type Settings, tlsMode, type ValuesOf } from './kinds.ts'
import { PUSH_SECRET_SETTINGS } from './push.ts'

/** node-postgres reads this variable where DATABASE_URL has no `sslmode`, and ignores an unknown value. pawl refuses such a value. */
export const TLS_MODE = { name: 'PGSSLMODE', kind: tlsMode }

/** Every secret that is a setting. A file may give it instead: NAME_FILE has the path of the file. */
export const SECRET_SETTINGS = {
  databaseUrl: {
    name: 'DATABASE_URL',
    kind: databaseUrl,
    description:
      'PostgreSQL 15 or newer. Without it, the embedded database in PAWL_DATA_DIR. It may name several hosts, ' +
      '`postgres://user:password@h1:5432,h2:5432/pawl?target_session_attrs=read-write`: the one that takes writes is used. ' +
      'TLS: `sslmode=verify-full` checks certificate and name, with `sslrootcert=FILE` by your own authority; `verify-ca`, `require` and ' +
      '`prefer` do the same, `no-verify` checks nothing, `disable` is in the clear. With `uselibpqcompat=true` they mean what libpq says.',
  },
  masterKeys: {
    name: 'PAWL_MASTER_KEY',
    kind: masterKeys,
    description:
      'Key that encrypts secrets in the database; make one with `openssl rand -base64 32`. Required with DATABASE_URL; ' +
      'without it, one is generated in PAWL_DATA_DIR. Whoever loses it loses every activation. Of several, with commas or line ends ' +
      'between them, the first encrypts and all decrypt: docs/OPERATIONS.md, "A new master key".',
  },
  vaultToken: {
    name: 'PAWL_VAULT_TOKEN',
    kind: authorization,
    description:
      'Token for PAWL_VAULT_KEY_URL. Its policy needs `update` on `transit/decrypt/NAME` alone. Without it, an agent that adds one.',
  },
  adminPassword: {
    name: 'PAWL_ADMIN_PASSWORD',
    kind: adminPassword,
    description:
      'Password of the administrator PAWL_ADMIN_USER, at least 12 characters and none that is guessed first. Each start gives it to them, ' +
      'also where somebody has changed it since, and makes them anew where they were removed. Without it, the first start generates one and prints it once.',
  },
  userInfoAuthorization: {
    name: 'PAWL_USER_INFO_AUTHORIZATION',
    kind: authorization,
    description: 'Header `Authorization` of requests to PAWL_USER_INFO_URL, for example `Bearer ...`. By default none is sent.',
  },
  activationProviderAuthorization: {
    name: 'PAWL_ACTIVATION_PROVIDER_AUTHORIZATION',
    kind: authorization,
    description: 'The same for PAWL_ACTIVATION_PROVIDER_URL.',
  },
  auditSinkAuthorization: {
    name: 'PAWL_AUDIT_SINK_AUTHORIZATION',
    kind: authorization,
    description: 'The same for PAWL_AUDIT_SINK_URL over HTTP.',
  },
  ...PUSH_SECRET_SETTINGS,
} satisfies Settings

/** The values of SECRET_SETTINGS. The object prints as [secret], so that no log shows them. */
export type Secrets = ValuesOf<typeof SECRET_SETTINGS> & {
  /** The environment of the program of PAWL_MASTER_KEY_COMMAND. It may hold credentials of the secret store. */
  readonly masterKeyCommandEnvironment?: Readonly<Record<string, string>>
}
