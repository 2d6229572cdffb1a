// Lists every endpoint of the cloud API, in the order of its description. The file of an endpoint is named after the last noun of its URL:
// /admin/webhooks/{id}/test is in admin/webhooks.ts.
import { applicationEndpoints } from './admin/applications.ts'
import { appEndpoints } from './admin/apps.ts'
import { auditEndpoints } from './admin/audit.ts'
import { certificateEndpoints } from './admin/certificates.ts'
import { claimEndpoints } from './admin/claims.ts'
import { configEndpoints } from './admin/config.ts'
import { activationFlags } from './admin/flags.ts'
import { oidcProviderEndpoints } from './admin/oidc-providers.ts'
import { operationsSearch } from './admin/operations.ts'
import { pushProvidersList } from './admin/push.ts'
import { administrationRegistrationEndpoints } from './admin/registrations.ts'
import { templateEndpoints } from './admin/templates.ts'
import { textEndpoints } from './admin/texts.ts'
import { userEndpoints } from './admin/users.ts'
import { versionRuleEndpoints } from './admin/version-rules.ts'
import { versionEndpoints } from './admin/versions.ts'
import { deliveryEndpoints } from './admin/webhook-deliveries.ts'
import { webhookEndpoints } from './admin/webhooks.ts'
import { auditLog } from './audit.ts'
import { inboxEndpoints } from './inbox.ts'
import { operationCallback, operationEndpoints } from './operations.ts'
import { pushRegistrationRead } from './push.ts'
import { registrationEndpoints } from './registration.ts'
import { registrationChangeEndpoints } from './registration-changes.ts'
import { furtherRegistrationEndpoints } from './registrations.ts'
import { tokenEndpoints } from './tokens.ts'
import type { AnyCloudEndpoint } from './endpoint.ts'

export const cloudEndpoints: readonly AnyCloudEndpoint[] = [
  ...registrationEndpoints,
  ...furtherRegistrationEndpoints,
  ...registrationChangeEndpoints,
  ...tokenEndpoints,
  ...operationEndpoints,
  pushRegistrationRead,
  ...inboxEndpoints,
  operationsSearch,
  auditLog,
  ...applicationEndpoints,
  ...versionEndpoints,
  ...userEndpoints,
  ...templateEndpoints,
  pushProvidersList,
  ...webhookEndpoints,
  ...deliveryEndpoints,
  operationCallback,
  ...claimEndpoints,
  ...administrationRegistrationEndpoints,
  activationFlags,
  ...configEndpoints,
  ...oidcProviderEndpoints,
  ...appEndpoints,
  ...certificateEndpoints,
  ...versionRuleEndpoints,
  ...textEndpoints,
  ...auditEndpoints,
]
