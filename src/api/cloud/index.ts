// The cloud API: registrations, operations and administration, called by the bank's back ends with HTTP Basic credentials.
import basicAuth from '@fastify/basic-auth'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Caller } from '../../domain/credential/credential.ts'
import { refuseCrossSiteWrite } from '../../http/cross-site.ts'
import { renderErrorsWith, toPawlError } from '../../http/errors.ts'
import { keepJsonBodies } from '../../http/raw-body.ts'
import { useStrictValidation } from '../../http/validation.ts'
import { applicationCreate, applicationRead } from './admin/application.ts'
import { applicationChange, applicationDetail, applicationsList, versionChange, versionCreate } from './admin/applications.ts'
import { templateCreate, templateRead, templateRemove, templateReplace, templatesList } from './admin/templates.ts'
import { claimsRead, claimsRemove, claimsReplace } from './admin/claims.ts'
import {
  activationConfigList,
  activationConfigRemove,
  activationConfigStore,
  applicationConfigList,
  applicationConfigRemove,
  applicationConfigStore,
} from './admin/config-items.ts'
import { activationFlags } from './admin/flags.ts'
import {
  administrationRegistrationCommit,
  administrationRegistrationCreate,
  registrationDetail,
  registrationsList,
} from './admin/registrations.ts'
import {
  ruleCreate,
  ruleDetail,
  ruleRemove,
  rulesList,
  textDetail,
  textRemove,
  textsList,
  textStore,
} from './admin/app-versions.ts'
import { appCreate, appDetail, appsList } from './admin/apps.ts'
import {
  certificateAuto,
  certificateFingerprint,
  certificatePem,
  certificateRemove,
  domainRemove,
  expiredRemove,
} from './admin/certificates.ts'
import { userCreate, userPassword, userRemove, usersList } from './admin/users.ts'
import { webhookDeliveriesList, webhookDeliveriesReplay } from './admin/webhook-deliveries.ts'
import { webhookChange, webhookCreate, webhookDetail, webhookRemove, webhookSecret, webhooksList } from './admin/webhooks.ts'
import { adminAudit, auditVerification } from './admin/audit.ts'
import { auditLog } from './audit/log.ts'
import { mountCloudEndpoint } from './endpoint.ts'
import { renderCloudError } from './error-renderer.ts'
import { operationsSearch } from './admin/operations.ts'
import { inboxMessageCreate } from './inbox.ts'
import { pushRegistrationRead } from './push.ts'
import { offlineOtp, offlineQr } from './operations/offline.ts'
import { operationCancel, operationCreate, operationRead } from './operations/operations.ts'
import { operationCallback } from './internal/callback-operation.ts'
import type { CloudParts } from './parts.ts'
import { registrationCommit } from './registration/commit.ts'
import { registrationChange, registrationCreate, registrationRead, registrationRemove } from './registration/registration.ts'

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

export const cloudApi = (parts: CloudParts) => async (app: FastifyInstance) => {
  keepJsonBodies(app)
  useStrictValidation(app)
  renderErrorsWith(app, parts.events, renderCloudError)
  const callers = new WeakMap<FastifyRequest, Caller>()
  await app.register(basicAuth, {
    validate: async (username, password, request, reply) => {
      const onGone = (callback: () => void) => {
        reply.raw.once('close', callback)
        return () => reply.raw.off('close', callback)
      }
      try {
        callers.set(request, await parts.credentials.verify({ username, source: request.ip, onGone }, password))
      } catch (error) {
        // The plugin takes whatever is thrown here for a wrong password, a lost database included.
        throw toPawlError(error)
      }
    },
    utf8: true,
  })
  app.addHook('onRequest', app.basicAuth)
  app.addHook('onRequest', async (request) => refuseCrossSiteWrite(request, parts.settings.publicUrl))
  for (const endpoint of cloudEndpoints) mountCloudEndpoint(app, parts, endpoint, (request) => callerOf(callers, request))
}

function callerOf(callers: WeakMap<FastifyRequest, Caller>, request: FastifyRequest): Caller {
  const caller = callers.get(request)
  if (caller === undefined) throw new TypeError('a cloud endpoint was reached without credentials')
  return caller
}
