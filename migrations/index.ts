// All migrations, by number. Forward only; a migration that has shipped is never edited.
import type { Migration } from 'kysely/migration'
import * as initial from './0001_initial.ts'
import * as operations from './0002_operations.ts'
import * as audit from './0003_audit.ts'
import * as webhooks from './0004_webhooks.ts'
import * as pinning from './0005_pinning.ts'
import * as userInfo from './0006_user-info.ts'
import * as protocol4 from './0007_protocol-4.ts'
import * as applicationAlgorithms from './0008_application-algorithms.ts'
import * as configItems from './0009_config-items.ts'
import * as temporaryBlock from './0010_temporary-block.ts'
import * as pushTokenOwner from './0011_push-token-owner.ts'
import * as protocolVersions from './0012_protocol-versions.ts'
import * as credentialMac from './0013_credential-mac.ts'
import * as strangerCounts from './0014_stranger-counts.ts'
import * as consoleSessions from './0015_console-sessions.ts'
import * as webhookEvents from './0016_webhook-events.ts'
import * as stateTriggers from './0017_state-triggers.ts'
import * as inboxAge from './0018_inbox-age.ts'
import * as auditLog from './0019_audit-log.ts'
import * as auditKeys from './0020_audit-keys.ts'
import * as allowedAddresses from './0021_allowed-addresses.ts'
import * as indexes from './0022_indexes.ts'
import * as auditUserKeys from './0023_audit-user-keys.ts'
import * as failureCounts from './0024_failure-counts.ts'
import * as auditDelivery from './0025_audit-delivery.ts'
import * as clientCertificates from './0026_client-certificates.ts'
import * as indexConditions from './0027_index-conditions.ts'
import * as referencesOfManyRows from './0028_references-of-many-rows.ts'
import * as triggerFunctions from './0029_trigger-functions.ts'
import * as recordBinding from './0030_record-binding.ts'
import * as userErasures from './0031_user-erasures.ts'
import * as doors from './0032_doors.ts'
import * as envelopes from './0033_envelopes.ts'
import * as lookups from './0034_lookups.ts'
import * as deviceSlots from './0035_device-slots.ts'
import * as operationsOfOneDevice from './0036_operations-of-one-device.ts'
import * as push from './0037_push.ts'
import * as oidcProviders from './0038_oidc-providers.ts'
import * as transfers from './0039_transfers.ts'
import * as offlineChallenges from './0040_offline-challenges.ts'
import * as removals from './0041_removals.ts'
import * as webhookBasicMac from './0042_webhook-basic-mac.ts'
import * as deletedActivations from './0043_deleted-activations.ts'
import * as endlessOperations from './0044_endless-operations.ts'
import * as webhookChanges from './0045_webhook-changes.ts'

export const migrations: Record<string, Migration> = {
  '0001_initial': initial,
  '0002_operations': operations,
  '0003_audit': audit,
  '0004_webhooks': webhooks,
  '0005_pinning': pinning,
  '0006_user-info': userInfo,
  '0007_protocol-4': protocol4,
  '0008_application-algorithms': applicationAlgorithms,
  '0009_config-items': configItems,
  '0010_temporary-block': temporaryBlock,
  '0011_push-token-owner': pushTokenOwner,
  '0012_protocol-versions': protocolVersions,
  '0013_credential-mac': credentialMac,
  '0014_stranger-counts': strangerCounts,
  '0015_console-sessions': consoleSessions,
  '0016_webhook-events': webhookEvents,
  '0017_state-triggers': stateTriggers,
  '0018_inbox-age': inboxAge,
  '0019_audit-log': auditLog,
  '0020_audit-keys': auditKeys,
  '0021_allowed-addresses': allowedAddresses,
  '0022_indexes': indexes,
  '0023_audit-user-keys': auditUserKeys,
  '0024_failure-counts': failureCounts,
  '0025_audit-delivery': auditDelivery,
  '0026_client-certificates': clientCertificates,
  '0027_index-conditions': indexConditions,
  '0028_references-of-many-rows': referencesOfManyRows,
  '0029_trigger-functions': triggerFunctions,
  '0030_record-binding': recordBinding,
  '0031_user-erasures': userErasures,
  '0032_doors': doors,
  '0033_envelopes': envelopes,
  '0034_lookups': lookups,
  '0035_device-slots': deviceSlots,
  '0036_operations-of-one-device': operationsOfOneDevice,
  '0037_push': push,
  '0038_oidc-providers': oidcProviders,
  '0039_transfers': transfers,
  '0040_offline-challenges': offlineChallenges,
  '0041_removals': removals,
  '0042_webhook-basic-mac': webhookBasicMac,
  '0043_deleted-activations': deletedActivations,
  '0044_endless-operations': endlessOperations,
  '0045_webhook-changes': webhookChanges,
}
