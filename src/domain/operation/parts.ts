// Names what the rules of operations need from the process.
import type { Pool } from '../../storage/database/database.ts'
import type { Window } from '../limits/window.ts'
import type { DomainParts } from '../secrets/secrets.ts'
import type { TemplateReader } from '../template/reader.ts'
import type { ReadTemplateTexts } from '../template/texts.ts'

export interface OperationParts extends DomainParts {
  readonly db: Pool
  readonly templates: TemplateReader
  readonly templateTexts: ReadTemplateTexts
  /** Passwords typed for one user. */
  readonly otpAttempts: Window
}
