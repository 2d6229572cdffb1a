// The module of the threads of threads.ts: what requests have computed there.
import { answerJobs } from './thread-pool.ts'
import { ecdsaSignP384, ecdsaVerify } from './ecdsa.ts'
import { sendExport } from './hpke.ts'
import { generateKeyPair } from './key.ts'
import { generateMlDsaKeyPair, mlDsaSign, mlDsaVerify } from './mldsa.ts'

const HEAVY = { ecdsaSignP384, ecdsaVerify, generateKeyPair, generateMlDsaKeyPair, mlDsaSign, mlDsaVerify, sendExport }

export type Heavy = typeof HEAVY

answerJobs(HEAVY)
