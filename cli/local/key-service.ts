// pawl key create --wrapped: has the configured key service make a master key.
import { findKeyService } from '../../src/domain/secrets/master-key.ts'
import { StartError } from '../../src/lib/errors.ts'
import type { Terminal } from '../command.ts'
import { Fault, usageFault } from '../fault.ts'
import { readSettings } from './database.ts'

/** The wrapped key. Throws a Fault when no service is configured, or when it does not answer with one. */
export async function createWrappedKey(terminal: Pick<Terminal, 'env'>): Promise<string> {
  const service = findKeyService(readSettings(terminal))
  if (service === undefined) throw usageFault('--wrapped: PAWL_VAULT_KEY_URL is not set')
  try {
    return await service.createWrapped()
  } catch (error) {
    throw error instanceof StartError ? new Fault('unreachable', error.message) : error
  }
}
