// Names what the rules of activations need from the process.
import type { KeyObject } from 'node:crypto'
import type { DomainParts } from '../secrets/secrets.ts'
import type { ActivationOtps } from './otp.ts'
import type { Pool, Tx } from '../../storage/database/database.ts'

export interface ActivationParts extends DomainParts {
  readonly db: Pool | Tx
  readonly installationKeys: { readonly codeLookup: KeyObject }
  readonly activationOtps: ActivationOtps
  readonly settings: { readonly activationValiditySeconds: number; readonly maxFailedAttempts: number }
}
