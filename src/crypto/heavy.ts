// Lists the operations that run in the threads of threads.ts. Each thread loads this module.
import { answerJobs } from './thread-pool.ts'
import { ecdsaSignP384, ecdsaVerify } from './ecdsa.ts'
import { sendExport } from './hpke.ts'
import { generateKeyPair } from './key.ts'
import { generateMlDsaKeyPair, mlDsaSign, mlDsaVerify } from './mldsa.ts'

const HEAVY = { ecdsaSignP384, ecdsaVerify, generateKeyPair, generateMlDsaKeyPair, mlDsaSign, mlDsaVerify, sendExport }

export type Heavy = typeof HEAVY

answerJobs(HEAVY)
