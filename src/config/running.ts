// Lists the settings for running pawl: load limits, processes, shutdown, TLS on the internal listener, retention of rows, and delivery of the audit
// log.
import { auditSinkUrl, integer, path, type Settings } from './kinds.ts'

export const SERVING_SETTINGS = {
  processes: {
    name: 'PAWL_PROCESSES',
    kind: integer(1, 64),
    default: '1',
    unit: 'processes',
    description:
      'How many processes serve PAWL_PORT and PAWL_INTERNAL_PORT; about as many as there are processors for them. More than one needs ' +
      'DATABASE_URL. One more process starts them, and again when they end. docs/RUNNING.md says what they share.',
  },
  connectionsMax: {
    name: 'PAWL_CONNECTIONS_MAX',
    kind: integer(8, 100_000),
    default: '2000',
    unit: 'connections',
    description:
      'Of each listener of each process. From three quarters on a source has a share of them, and at the limit the source that has most gives up ' +
      'one that idles; where none does, 503. Health and metrics are always served.',
  },
  requestsInFlightMax: {
    name: 'PAWL_REQUESTS_IN_FLIGHT_MAX',
    kind: integer(8, 100_000),
    default: '500',
    unit: 'requests',
    description:
      'Of each listener of each process at once, from the last byte of a request to that of its answer; as many bodies may be on their way. ' +
      'From three quarters on a source has a share of each. More are answered 503. Health and metrics are always served.',
  },
  drainSeconds: {
    name: 'PAWL_DRAIN_SECONDS',
    kind: integer(0, 600),
    default: '0',
    unit: 'seconds',
    description:
      'How long a server that is told to stop goes on serving while `/health/ready` answers 503, so that balancers send their requests ' +
      'elsewhere: longer than they take to notice. The image has 5.',
  },
  shutdownTimeoutSeconds: {
    name: 'PAWL_SHUTDOWN_TIMEOUT_SECONDS',
    kind: integer(1, 600),
    default: '7',
    unit: 'seconds',
    description:
      'How long a stopping server then waits for requests in progress before it cuts their connections. Up to 2.5 seconds more go by for ' +
      'connections to be given back and the database to be closed. With PAWL_PROCESSES, a process that has not ended after 3 is killed.',
  },
} satisfies Settings

/** Settings of TLS with client certificates on the internal listener (http/internal-tls.ts). */
export const TLS_SETTINGS = {
  internalTlsCertificate: {
    name: 'PAWL_INTERNAL_TLS_CERTIFICATE',
    kind: path,
    description:
      'PEM file with the certificate of the internal listener and those that lead to its root. With it, PAWL_INTERNAL_TLS_KEY and ' +
      'PAWL_INTERNAL_TLS_CLIENT_CA that listener speaks TLS alone, to callers with a certificate. The files are read again when they change.',
  },
  internalTlsKey: {
    name: 'PAWL_INTERNAL_TLS_KEY',
    kind: path,
    description: 'PEM file with the private key of that certificate.',
  },
  internalTlsClientCa: {
    name: 'PAWL_INTERNAL_TLS_CLIENT_CA',
    kind: path,
    description:
      'PEM file with the authorities that sign callers\' certificates. docs/spec/cloud.md, "Client certificates", says what a certificate is good for.',
  },
} satisfies Settings

export const RETENTION_SETTINGS = {
  auditRetentionDays: {
    name: 'PAWL_AUDIT_RETENTION_DAYS',
    kind: integer(1, 36_500),
    default: '365',
    unit: 'days',
    description:
      'How long rows of the audit log of devices are kept. They go by whole partitions, so up to `PAWL_AUDIT_PARTITION_DAYS` later.',
  },
  auditPartitionDays: {
    name: 'PAWL_AUDIT_PARTITION_DAYS',
    kind: integer(1, 366),
    default: '30',
    unit: 'days',
    description: 'How much time a partition of the audit log of devices takes; for those that are made from then on.',
  },
  adminAuditRetentionDays: {
    name: 'PAWL_ADMIN_AUDIT_RETENTION_DAYS',
    kind: integer(1, 36_500),
    default: '365',
    unit: 'days',
    description: 'How long the record of what administrators changed is kept.',
  },
  auditSinkUrl: {
    name: 'PAWL_AUDIT_SINK_URL',
    kind: auditSinkUrl,
    description:
      'Store outside (SIEM) that the audit logs are delivered to: `https://host/path` takes lines of JSON by POST, `syslog+tls://host:6514` and ' +
      '`syslog+tcp://host:601` RFC 5424. docs/OPERATIONS.md, "The audit log elsewhere".',
  },
  strangerRetentionDays: {
    name: 'PAWL_STRANGER_RETENTION_DAYS',
    kind: integer(1, 36_500),
    default: '30',
    unit: 'days',
    description: 'How long the counts of codes for activations that do not exist are kept, one row a minute and source network.',
  },
  operationRetentionDays: {
    name: 'PAWL_OPERATION_RETENTION_DAYS',
    kind: integer(1, 36_500),
    default: '400',
    unit: 'days',
    description:
      'How long operations that are over are kept, from their creation. By default longer than the 13 months in which a payment can be disputed.',
  },
  activationRetentionDays: {
    name: 'PAWL_ACTIVATION_RETENTION_DAYS',
    kind: integer(1, 36_500),
    default: '400',
    unit: 'days',
    description: 'How long removed activations are kept, from their removal, with their history, tokens and configuration.',
  },
  inboxRetentionDays: {
    name: 'PAWL_INBOX_RETENTION_DAYS',
    kind: integer(1, 36_500),
    default: '400',
    unit: 'days',
    description: 'How long inbox messages are kept, read or not.',
  },
} satisfies Settings
