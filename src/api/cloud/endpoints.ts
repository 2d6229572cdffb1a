// Lists every endpoint of the cloud API, in the order of its description. The file of an endpoint is named after the last noun of its URL:
// /admin/webhooks/{id}/test is in admin/webhooks.ts.
import {
  applicationChange,
  applicationCreate,
  applicationDetail,
  applicationRead,
  applicationsList,
} from './admin/applications.ts'
import { appCreate, appDetail, appsList } from './admin/apps.ts'
import { adminAudit, applicationAudit, auditVerification } from './admin/audit.ts'
import {
  certificateAuto,
  certificateFingerprint,
  certificatePem,
  certificateRemove,
  domainRemove,
  expiredRemove,
} from './admin/certificates.ts'
import { claimsRead, claimsRemove, claimsReplace } from './admin/claims.ts'
import {
  activationConfigList,
  activationConfigRemove,
  activationConfigStore,
  applicationConfigList,
  applicationConfigRemove,
  applicationConfigStore,
} from './admin/config.ts'
import { activationFlags } from './admin/flags.ts'
import { oidcProviderRead, oidcProviderRemove, oidcProviderStore, oidcProvidersList } from './admin/oidc-providers.ts'
import { operationsSearch } from './admin/operations.ts'
import {
  administrationRegistrationCommit,
  administrationRegistrationCreate,
  registrationDetail,
  registrationsList,
} from './admin/registrations.ts'
import { templateCreate, templateRead, templateRemove, templateReplace, templatesList } from './admin/templates.ts'
import { textDetail, textRemove, textsList, textStore } from './admin/texts.ts'
import {
  userAllowedAddresses,
  userCertificates,
  userChange,
  userCreate,
  userPassword,
  userRemove,
  usersList,
} from './admin/users.ts'
import { ruleCreate, ruleDetail, ruleRemove, rulesList } from './admin/version-rules.ts'
import { versionChange, versionCreate } from './admin/versions.ts'
import { pushProvidersList } from './admin/push.ts'
import { webhookDeliveriesList, webhookDeliveriesReplay, webhookDeliveryRead } from './admin/webhook-deliveries.ts'
import {
  webhookChange,
  webhookCreate,
  webhookDetail,
  webhookRemove,
  webhookSecret,
  webhooksList,
  webhookTest,
} from './admin/webhooks.ts'
import { auditLog } from './audit.ts'
import { deviceOperationCreate, deviceOperationRead } from './device-operations.ts'
import { inboxMessageCreate, inboxMessageRead, inboxMessageRemove, inboxMessagesList } from './inbox.ts'
import { offlineOtp, offlineQr, operationCallback, operationCancel, operationCreate, operationRead } from './operations.ts'
import { pushRegistrationRead } from './push.ts'
import {
  registrationChange,
  registrationCommit,
  registrationCreate,
  registrationRead,
  registrationRemove,
} from './registration.ts'
import {
  furtherChange,
  furtherCommit,
  furtherFlags,
  furtherName,
  furtherOtp,
  furtherRemove,
  furtherState,
} from './registration-changes.ts'
import { furtherCreate, furtherHistory, furtherList, furtherRead } from './registrations.ts'
import { tokenRemove, tokensList } from './tokens.ts'

export const cloudEndpoints = [
  registrationCreate,
  registrationRead,
  registrationChange,
  registrationRemove,
  registrationCommit,
  furtherCreate,
  furtherList,
  furtherRead,
  furtherHistory,
  furtherChange,
  furtherRemove,
  furtherState,
  furtherCommit,
  furtherOtp,
  furtherName,
  furtherFlags,
  tokensList,
  tokenRemove,
  operationCreate,
  operationRead,
  operationCancel,
  deviceOperationCreate,
  deviceOperationRead,
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
  userChange,
  userRemove,
  userPassword,
  userAllowedAddresses,
  userCertificates,
  templatesList,
  templateRead,
  templateCreate,
  templateReplace,
  templateRemove,
  pushProvidersList,
  webhooksList,
  webhookDetail,
  webhookCreate,
  webhookChange,
  webhookRemove,
  webhookSecret,
  webhookTest,
  webhookDeliveriesList,
  webhookDeliveryRead,
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
  oidcProvidersList,
  oidcProviderRead,
  oidcProviderStore,
  oidcProviderRemove,
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
  applicationAudit,
  auditVerification,
] as const
