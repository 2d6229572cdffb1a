// Settings that say how long rows are kept, and where the audit log is delivered to.
import { auditSinkUrl, integer, type Settings } from './kinds.ts'

/** The rows of SETTINGS about days that rows are kept, and about the audit log. */
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
