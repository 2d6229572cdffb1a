// Unwraps master keys at a key service (KMS), whose own key never leaves it. Whoever starts a server needs the wrapped key, and the right to
// have it unwrapped. docs/decisions/0015-key-service.md says why it is the transit engine of Vault.
import { parseBase64 } from '../../lib/base64.ts'
import { StartError } from '../../lib/errors.ts'
import { isJsonObject, JsonFault, parseForeignObject } from '../../lib/json.ts'
import { describeStatus, OF_OPERATOR, OutboundError, sendOutbound } from '../../lib/outbound.ts'

/** The interface of a key service. Another service needs another implementation, and another form of wrapped key in lib/key-list.ts. */
export interface KeyService {
  /** Unwraps a master key to its 32 bytes. Throws StartError when the service does not answer with them. */
  readonly unwrap: (wrapped: string) => Promise<Uint8Array>
  /** Makes a new master key, which leaves the service only wrapped. */
  readonly createWrapped: () => Promise<string>
}

interface VaultSettings {
  /** `https://vault.example:8200/v1/transit/keys/pawl`: where the engine describes the key. */
  readonly keyUrl: string
  readonly token: string | undefined
}

/** The transit engine of HashiCorp Vault and of OpenBao. Nothing that it answers is repeated in an error. */
export function createVaultTransit({ keyUrl, token }: VaultSettings): KeyService {
  const ask = async (action: string, question: Readonly<Record<string, unknown>>): Promise<Readonly<Record<string, unknown>>> => {
    const url = keyUrl.replace(KEY_PATH, `/${action}/$1`)
    const headers = { 'content-type': 'application/json', 'x-vault-request': 'true', ...(token && { 'x-vault-token': token }) }
    const { origin } = new URL(url)
    const answer = await sendOutbound({
      url,
      method: 'POST',
      headers,
      body: JSON.stringify(question),
      timeoutMs: TIMEOUT_MS,
      answerBytesMax: ANSWER_BYTES_MAX,
      rules: OF_OPERATOR,
    }).catch((error: unknown) => {
      throw error instanceof OutboundError ? new StartError(`PAWL_VAULT_KEY_URL: ${error.message}`, { cause: error }) : error
    })
    if (answer.status !== 200) throw new StartError(`PAWL_VAULT_KEY_URL: ${origin} ${describeAnswer(action, answer.status)}`)
    try {
      return readData(answer.body)
    } catch (fault) {
      if (!(fault instanceof JsonFault)) throw fault
      throw new StartError(
        `PAWL_VAULT_KEY_URL: ${origin} does not answer as a transit engine does, but with ${fault.message}; look at its path`,
      )
    }
  }
  return {
    unwrap: async (ciphertext) => {
      const { plaintext } = await ask('decrypt', { ciphertext })
      const key = typeof plaintext === 'string' ? parseBase64(plaintext, 32) : undefined
      if (key === undefined)
        throw new StartError('PAWL_MASTER_KEY: what is wrapped is not a key of 32 bytes; pawl key create --wrapped makes one')
      return key
    },
    createWrapped: async () => {
      const { ciphertext } = await ask('datakey/wrapped', { bits: 256 })
      if (typeof ciphertext !== 'string') throw new StartError('PAWL_VAULT_KEY_URL: no wrapped key in the answer')
      return ciphertext
    },
  }
}

/** Explains an answer of Vault that is no key, and what to look at. */
function describeAnswer(action: string, status: number): string {
  if (status === 400) return `refuses to ${action} (status 400): look at the key in PAWL_VAULT_KEY_URL, and at PAWL_MASTER_KEY`
  // Its API, "Health".
  if ([429, 472, 473, 503].includes(status)) return `answered with status ${status}: it is sealed, or stands by for another`
  return describeStatus(status, 'PAWL_VAULT_TOKEN')
}

/** Throws JsonFault. */
function readData(body: Uint8Array): Readonly<Record<string, unknown>> {
  const { data } = parseForeignObject(body)
  if (isJsonObject(data)) return data
  throw new JsonFault('an object without data')
}

const KEY_PATH = /\/keys\/([^/]+)$/
const TIMEOUT_MS = 10_000
const ANSWER_BYTES_MAX = 65_536
