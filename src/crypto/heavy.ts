// What requests have computed in a thread (threads.ts).
import { ecdsaSignP384 } from './ecdsa.ts'
import { sendExport } from './hpke.ts'
import { generateKeyPair } from './key.ts'
import { generateMlDsaKeyPair, mlDsaSign } from './mldsa.ts'

export const HEAVY = { ecdsaSignP384, generateKeyPair, generateMlDsaKeyPair, mlDsaSign, sendExport } as const

export type Heavy = typeof HEAVY
