// Every family of v3 vectors and what computes its outputs.
import { activationFamilies } from './v3-activation.ts'
import { authenticationFamilies } from './v3-authentication.ts'
import { envelopeFamilies } from './v3-envelope.ts'
import { exchangeFamilies } from './v3-exchange.ts'
import { offlineFamilies } from './v3-offline.ts'
import { primitiveFamilies } from './v3-primitives.ts'
import type { Handler } from './vector.ts'

export const v3Families: Readonly<Record<string, Handler>> = {
  ...primitiveFamilies,
  ...activationFamilies,
  ...envelopeFamilies,
  ...authenticationFamilies,
  ...exchangeFamilies,
  ...offlineFamilies,
}
