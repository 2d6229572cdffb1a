// Compares the pooler that pooler-probe.ts finds with the setting.
import type { Settings } from '../local/database.ts'
import { type Finding, fault, type Instruments, ok, skipped, warning } from './finding.ts'
import { explainFault } from '../fault.ts'

/** Compares the found pooler with the setting; without findings for an embedded database. */
export async function examinePooler({ config, secrets }: Settings, { findPooler }: Instruments): Promise<readonly Finding[]> {
  if (secrets.databaseUrl === undefined) return []
  const { databasePooler: told } = config
  try {
    const { pooler: found, hasTimeLimit } = await findPooler(secrets.databaseUrl)
    const says = `PAWL_DATABASE_POOLER is ${told}, and ${SEEN[found]}`
    if (found !== told)
      return found === 'none'
        ? [warning('pooler', says, 'leave it out: statements are slower than they could be')]
        : [fault('pooler', says, `set PAWL_DATABASE_POOLER=${found}, or requests fail`)]
    if (found !== 'transaction' || hasTimeLimit) return [ok('pooler', says)]
    return [
      ok('pooler', says),
      warning(
        'time limits',
        'the role has no statement_timeout, and a pooler in transaction mode keeps none of a session',
        "alter role ... set statement_timeout = '8s', and idle_in_transaction_session_timeout = '10s'",
      ),
    ]
  } catch (error) {
    return [skipped('pooler', `the database does not answer (${explainFault(error)})`)]
  }
}

const SEEN = {
  none: 'nothing pools the connections',
  session: 'a pooler gives each session a server of its own',
  transaction: 'a pooler gives a server to each transaction',
}
