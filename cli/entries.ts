// Every command of pawl, in the order in which the help lists them.
import { admin } from './commands/admin.ts'
import { app } from './commands/app.ts'
import { audit } from './commands/audit.ts'
import { backup, restore } from './commands/backup.ts'
import { certificate } from './commands/certificate.ts'
import { completion } from './commands/completion.ts'
import { demo } from './commands/demo.ts'
import { doctor } from './commands/doctor.ts'
import { importFrom } from './commands/import.ts'
import { key } from './commands/key.ts'
import { login } from './commands/login.ts'
import { migrate } from './commands/migrate.ts'
import { oidc } from './commands/oidc.ts'
import { operation } from './commands/operation.ts'
import { phone } from './commands/phone.ts'
import { registration } from './commands/registration.ts'
import { serve } from './commands/serve.ts'
import { apply, exportSetup } from './commands/setup.ts'
import { template } from './commands/template.ts'
import { user } from './commands/user.ts'
import { version } from './commands/version.ts'
import { webhook } from './commands/webhook.ts'
import type { Entry } from './program.ts'

export const ENTRIES: readonly Entry[] = [
  serve,
  migrate,
  importFrom,
  doctor,
  login,
  apply,
  exportSetup,
  app,
  user,
  template,
  registration,
  operation,
  audit,
  webhook,
  oidc,
  certificate,
  key,
  backup,
  restore,
  admin,
  phone,
  demo,
  completion(() => ENTRIES),
  version,
]
