// Lists all pages of the console.
import type { Page } from '../page.ts'
import { application } from './application.ts'
import { applications } from './applications.ts'
import { audit, auditDevices } from './audit.ts'
import { certificates } from './certificates.ts'
import { config } from './config.ts'
import { credentials } from './credentials.ts'
import { inbox, inboxMessage } from './inbox.ts'
import { oidc } from './oidc.ts'
import { operation } from './operation.ts'
import { operationNew, operationPreview } from './operation-new.ts'
import { operations } from './operations.ts'
import { overview } from './overview.ts'
import { registration, registrationVerifications } from './registration.ts'
import { registrationNew, registrations } from './registrations.ts'
import { webhookDelivery } from './webhook-delivery.ts'
import { template, templateCheck, templateNew, templateNewCheck, templates } from './template.ts'
import { webhook } from './webhook.ts'
import { webhooks } from './webhooks.ts'

export const pages: readonly Page[] = [
  overview,
  registrations,
  registrationNew,
  registration,
  registrationVerifications,
  operations,
  operationNew,
  operationPreview,
  operation,
  inbox,
  inboxMessage,
  applications,
  application,
  templates,
  templateNew,
  templateCheck,
  templateNewCheck,
  template,
  webhooks,
  webhook,
  webhookDelivery,
  certificates,
  config,
  oidc,
  audit,
  auditDevices,
  credentials,
]
