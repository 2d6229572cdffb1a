// Settings of what a bank has verified, opened and sealed for its own endpoints.
import { boolean, integer, type Setting } from './kinds.ts'
import type { Config } from './shape.ts'

/** The rows of SETTINGS about doors. */
export const DOOR_SETTINGS = {
  doorIdempotencySeconds: {
    name: 'PAWL_DOOR_IDEMPOTENCY_SECONDS',
    kind: integer(5, 3_600),
    default: '60',
    unit: 'seconds',
    description:
      'How long a verdict of `/verification` is given again for the same request with the same `Idempotency-Key`. Longer than the back end ' +
      'tries again.',
  },
  sealTicketSeconds: {
    name: 'PAWL_SEAL_TICKET_SECONDS',
    kind: integer(5, 300),
    default: '300',
    unit: 'seconds',
    description:
      'How long the answer to an envelope may be sealed after `/encryption/open`. Longer than an endpoint of the bank takes.',
  },
  referenceApi: {
    name: 'PAWL_REFERENCE_API',
    kind: boolean,
    default: 'false',
    description:
      "Serves the back-end API of Wultra's PowerAuth server below `/rest/v3` and `/rest/v4`, beside the bank's API, for Spring services that have " +
      'its client. docs/REFERENCE-API.md says what is served.',
  },
} satisfies Partial<{ readonly [M in keyof Config]: Setting<Config[M]> }>
