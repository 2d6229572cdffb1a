// Derives the type of the settings that are not secret: one member for each row of SETTINGS.
import type { LogLevel } from '../log/log.ts'

export interface Config {
  readonly host: string
  readonly port: number
  readonly internalHost: string
  readonly singleListener: boolean
  /** With it, cloud API, administration and description are served there only. */
  readonly internalPort?: number
  /** Paths of PEM files; all three or none. */
  readonly internalTlsCertificate?: string
  readonly internalTlsKey?: string
  readonly internalTlsClientCa?: string
  readonly console: boolean
  readonly consoleIdleSeconds: number
  readonly consoleSessionSeconds: number
  /** Absent: open on an internal listener, else with a credential. */
  readonly metrics?: 'open' | 'basic' | 'off'
  readonly jwtJwksUrl?: string
  readonly jwtIssuer?: string
  readonly jwtAudience?: string
  readonly jwtAlgorithms: readonly string[]
  readonly jwtTypes: readonly string[]
  readonly jwtClockToleranceSeconds: number
  readonly jwtRoleClaim: string
  readonly jwtApplicationClaim: string
  readonly dataDir: string
  /** Program and its arguments, white space between them. */
  readonly masterKeyCommand?: string
  /** Names of environment variables that it gets beside those of every program. */
  readonly masterKeyCommandEnvironment: readonly string[]
  /** Where a key service describes the key that wraps the master keys. */
  readonly vaultKeyUrl?: string
  /** Behind one port; 1 with the embedded database. */
  readonly processes: number
  readonly databasePoolSize: number
  /** What stands between pawl and PostgreSQL. */
  readonly databasePooler: 'none' | 'session' | 'transaction'
  /** never: a start with a schema that lacks a migration is refused. */
  readonly migrate: 'start' | 'never'
  /** Without trailing slash. */
  readonly publicUrl?: string
  readonly adminUser: string
  /** Created by a start that finds no application. */
  readonly firstApplication?: string
  /** IP addresses and CIDR ranges. */
  readonly trustedProxies: readonly string[]
  readonly logLevel: LogLevel
  readonly activationRemoveAllow1fa: boolean
  readonly activationValiditySeconds: number
  readonly maxFailedAttempts: number
  /** 0: blocks have no end. */
  readonly temporaryBlockSeconds: number
  readonly counterLookAhead: number
  readonly temporaryKeyValiditySeconds: number
  readonly requestWindowSeconds: number
  readonly legacyTokenWindowSeconds: number
  readonly credentialFailuresPerMinute: number
  readonly adminActsOnDefaultApplication: boolean
  readonly mobileReadsPerMinute: number
  readonly otpAttemptsPerMinute: number
  readonly codeFailuresPerMinute: number
  readonly sourceFailuresPerMinute: number
  readonly temporaryKeysPerMinute: number
  readonly signedBodyBytesMax: number
  /** How long a verdict is kept for a request that comes again. */
  readonly doorIdempotencySeconds: number
  /** How long a ticket of an opened envelope is good. */
  readonly sealTicketSeconds: number
  /** Serves the back-end API of the reference below /rest. */
  readonly referenceApi: boolean
  readonly webhookAllowHttp: boolean
  readonly webhookAllowPrivateAddresses: boolean
  readonly webhookRetryBaseSeconds: number
  readonly webhookRetentionDays: number
  readonly apnsKeyId?: string
  readonly apnsTeamId?: string
  readonly apnsTopic?: string
  readonly apnsUrl: string
  readonly apnsDevelopmentUrl: string
  readonly apnsLocalized: boolean
  readonly fcmUrl: string
  readonly certificateFetchPrivate: boolean
  readonly certificateFetchPorts: readonly number[]
  readonly certificateWatch: boolean
  readonly auditRetentionDays: number
  readonly auditPartitionDays: number
  readonly adminAuditRetentionDays: number
  readonly auditSinkUrl?: string
  readonly strangerRetentionDays: number
  readonly operationRetentionDays: number
  readonly activationRetentionDays: number
  readonly inboxRetentionDays: number
  readonly connectionsMax: number
  readonly requestsInFlightMax: number
  readonly drainSeconds: number
  readonly shutdownTimeoutSeconds: number
  /** JSON list of templates that start applies. */
  readonly templatesFile?: string
  readonly statusName: string
  readonly statusVersion: string
  readonly userInfoUrl?: string
  readonly userInfoTimeoutMs: number
  readonly activationProviderUrl?: string
  readonly activationProviderTimeoutMs: number
}
