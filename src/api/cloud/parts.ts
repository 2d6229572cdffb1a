// Names the parts that the APIs for the bank's back ends need from the process: cloud API, doors, and the reference's back-end API. context.ts
// provides them.
import type { KeyObject } from 'node:crypto'
import type { ChannelParts, ChannelSettings } from '../../channel/parts.ts'
import type { AuditReport } from '../../domain/audit/verification.ts'
import type { ComposeSdkConfiguration } from '../../domain/application/application.ts'
import type { VerifyAccessToken } from '../../domain/credential/access-token.ts'
import type { Credentials } from '../../domain/credential/credential.ts'
import type { Tickets } from '../../domain/credential/session.ts'
import type { OperationParts } from '../../domain/operation/operation.ts'
import type { FetchSettings } from '../../domain/pinning/certificate.ts'
import type { Pinning } from '../../domain/pinning/pinning.ts'
import type { ActivationParts } from '../../domain/activation/created.ts'
import type { DeliveryParts } from '../../domain/webhook/webhook.ts'
import type { FairQueue } from '../../lib/fair-queue.ts'
import type { Pool } from '../../storage/database/database.ts'
import type { PublicListener } from '../../http/connections.ts'

export interface CloudParts extends ChannelParts, ActivationParts, OperationParts, DeliveryParts {
  readonly db: Pool
  readonly installationKeys: ActivationParts['installationKeys'] &
    DeliveryParts['installationKeys'] & { readonly doorSeal: KeyObject }
  readonly composeSdkConfiguration: ComposeSdkConfiguration
  readonly credentials: Credentials
  /** Undefined if no authorization server is configured. */
  readonly verifyAccessToken: VerifyAccessToken | undefined
  /** Admits calls from inside the process. */
  readonly tickets: Tickets
  readonly pinning: Pinning
  readonly publicListener: PublicListener
  /** Callers who ask while a verification runs share its report. */
  readonly verifyAudit: () => Promise<AuditReport>
  /** Verifies signatures by device keys. Credentials take turns. */
  readonly deviceSignatureTurns: FairQueue
  readonly settings: ChannelSettings &
    ActivationParts['settings'] &
    DeliveryParts['settings'] &
    FetchSettings & {
      readonly adminActsOnDefaultApplication: boolean
      /** The base URL of /pa/v3, without a trailing slash; the public listener if absent. */
      readonly publicUrl?: string
      readonly doorIdempotencySeconds: number
      readonly sealTicketSeconds: number
      readonly statusName: string
      readonly statusVersion: string
    }
}
