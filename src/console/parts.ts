// Names what the console needs from the process; context.ts satisfies it.
import type { SessionParts } from '../domain/credential/session.ts'
import type { Tickets } from '../domain/credential/tickets.ts'
import type { OperationParts } from '../domain/operation/parts.ts'
import type { Metrics } from '../metrics/metrics.ts'

export interface ConsoleParts extends SessionParts, OperationParts {
  readonly tickets: Tickets
  readonly metrics: Pick<Metrics, 'look'>
  readonly settings: SessionParts['settings'] & { readonly publicUrl?: string; readonly adminActsOnDefaultApplication: boolean }
}
