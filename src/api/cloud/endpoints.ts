// Every endpoint of the cloud API, in the order of its description. Its file is found by the URL: the folder is the last noun in it.
import { applicationCreate } from './admin/application/create.ts'
import { applicationRead } from './admin/application/read.ts'
import { applicationChange } from './admin/applications/change.ts'
import { applicationDetail } from './admin/applications/detail.ts'
import { applicationsList } from './admin/applications/list.ts'
import { appCreate } from './admin/apps/create.ts'
import { appDetail } from './admin/apps/detail.ts'
import { appsList } from './admin/apps/list.ts'
import { adminAudit } from './admin/audit/list.ts'
import { auditVerification } from './admin/audit/verification.ts'
import { certificateAuto } from './admin/certificates/auto.ts'
import { certificateFingerprint } from './admin/certificates/fingerprint.ts'
import { certificatePem } from './admin/certificates/pem.ts'
import { expiredRemove } from './admin/certificates/remove-expired.ts'
import { certificateRemove } from './admin/certificates/remove.ts'
import { claimsRead } from './admin/claims/read.ts'
import { claimsRemove } from './admin/claims/remove.ts'
import { claimsReplace } from './admin/claims/replace.ts'
import { activationConfigList } from './admin/config/activation-list.ts'
import { activationConfigRemove } from './admin/config/activation-remove.ts'
import { activationConfigStore } from './admin/config/activation-store.ts'
import { applicationConfigList } from './admin/config/application-list.ts'
import { applicationConfigRemove } from './admin/config/application-remove.ts'
import { applicationConfigStore } from './admin/config/application-store.ts'
import { domainRemove } from './admin/domains/remove.ts'
import { activationFlags } from './admin/flags/replace.ts'
import { operationsSearch } from './admin/operations/search.ts'
import { administrationRegistrationCommit } from './admin/registrations/commit.ts'
import { administrationRegistrationCreate } from './admin/registrations/create.ts'
import { registrationDetail } from './admin/registrations/detail.ts'
import { registrationsList } from './admin/registrations/list.ts'
import { templateCreate } from './admin/templates/create.ts'
import { templatesList } from './admin/templates/list.ts'
import { templateRead } from './admin/templates/read.ts'
import { templateRemove } from './admin/templates/remove.ts'
import { templateReplace } from './admin/templates/replace.ts'
import { textDetail } from './admin/texts/detail.ts'
import { textsList } from './admin/texts/list.ts'
import { textRemove } from './admin/texts/remove.ts'
import { textStore } from './admin/texts/store.ts'
import { userCreate } from './admin/users/create.ts'
import { usersList } from './admin/users/list.ts'
import { userAllowedAddresses } from './admin/users/allowed-addresses.ts'
import { userCertificates } from './admin/users/certificates.ts'
import { userPassword } from './admin/users/password.ts'
import { userRemove } from './admin/users/remove.ts'
import { ruleCreate } from './admin/version-rules/create.ts'
import { ruleDetail } from './admin/version-rules/detail.ts'
import { rulesList } from './admin/version-rules/list.ts'
import { ruleRemove } from './admin/version-rules/remove.ts'
import { versionChange } from './admin/versions/change.ts'
import { versionCreate } from './admin/versions/create.ts'
import { webhookDeliveriesList } from './admin/webhook-deliveries/list.ts'
import { webhookDeliveriesReplay } from './admin/webhook-deliveries/replay.ts'
import { webhookChange } from './admin/webhooks/change.ts'
import { webhookCreate } from './admin/webhooks/create.ts'
import { webhookDetail } from './admin/webhooks/detail.ts'
import { webhooksList } from './admin/webhooks/list.ts'
import { webhookRemove } from './admin/webhooks/remove.ts'
import { webhookSecret } from './admin/webhooks/secret.ts'
import { webhookTest } from './admin/webhooks/test.ts'
import { auditLog } from './audit/log.ts'
import { inboxMessageCreate, inboxMessageRead, inboxMessageRemove, inboxMessagesList } from './inbox.ts'
import { operationCallback } from './internal/callback-operation.ts'
import { operationCancel } from './operations/cancel.ts'
import { operationCreate } from './operations/create.ts'
import { offlineOtp } from './operations/offline-otp.ts'
import { offlineQr } from './operations/offline-qr.ts'
import { operationRead } from './operations/read.ts'
import { pushRegistrationRead } from './push.ts'
import { registrationChange } from './registration/change.ts'
import { registrationCommit } from './registration/commit.ts'
import { registrationCreate } from './registration/create.ts'
import { registrationRead } from './registration/read.ts'
import { registrationRemove } from './registration/remove.ts'

export const cloudEndpoints = [
  registrationCreate,
  registrationRead,
  registrationChange,
  registrationRemove,
  registrationCommit,
  operationCreate,
  operationRead,
  operationCancel,
  offlineQr,
  offlineOtp,
  pushRegistrationRead,
  inboxMessageCreate,
  inboxMessagesList,
  inboxMessageRead,
  inboxMessageRemove,
  operationsSearch,
  auditLog,
  applicationCreate,
  applicationRead,
  applicationsList,
  applicationDetail,
  applicationChange,
  versionCreate,
  versionChange,
  usersList,
  userCreate,
  userRemove,
  userPassword,
  userAllowedAddresses,
  userCertificates,
  templatesList,
  templateRead,
  templateCreate,
  templateReplace,
  templateRemove,
  webhooksList,
  webhookDetail,
  webhookCreate,
  webhookChange,
  webhookRemove,
  webhookSecret,
  webhookTest,
  webhookDeliveriesList,
  webhookDeliveriesReplay,
  operationCallback,
  claimsRead,
  claimsReplace,
  claimsRemove,
  administrationRegistrationCreate,
  administrationRegistrationCommit,
  registrationsList,
  registrationDetail,
  activationFlags,
  applicationConfigList,
  applicationConfigStore,
  applicationConfigRemove,
  activationConfigList,
  activationConfigStore,
  activationConfigRemove,
  appCreate,
  appsList,
  appDetail,
  certificateAuto,
  certificatePem,
  certificateFingerprint,
  certificateRemove,
  domainRemove,
  expiredRemove,
  rulesList,
  ruleCreate,
  ruleDetail,
  ruleRemove,
  textsList,
  textStore,
  textDetail,
  textRemove,
  adminAudit,
  auditVerification,
] as const
