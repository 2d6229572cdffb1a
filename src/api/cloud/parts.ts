// Names what the APIs of the bank's back ends need from the process: the cloud API, the doors, and the reference's back-end API. context.ts
// satisfies it.
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
import type { Pool } from '../../storage/database/database.ts'
import type { PublicListener } from '../../http/connections.ts'

export interface CloudParts extends ChannelParts, ActivationParts, OperationParts, DeliveryParts {
  readonly db: Pool
  readonly installationKeys: ActivationParts['installationKeys'] &
    DeliveryParts['installationKeys'] & { readonly doorSeal: KeyObject }
  readonly composeSdkConfiguration: ComposeSdkConfiguration
  readonly credentials: Credentials
  /** Absent where no authorization server is configured. */
  readonly verifyAccessToken: VerifyAccessToken | undefined
  /** For calls from inside the process. */
  readonly tickets: Tickets
  readonly pinning: Pinning
  readonly publicListener: PublicListener
  /** Callers who ask while a verification runs share its report. */
  readonly verifyAudit: () => Promise<AuditReport>
  readonly settings: ChannelSettings &
    ActivationParts['settings'] &
    DeliveryParts['settings'] &
    FetchSettings & {
      readonly adminActsOnDefaultApplication: boolean
      /** Base below which /pa/v3 hangs, without trailing slash; the public listener when absent. */
      readonly publicUrl?: string
      readonly doorIdempotencySeconds: number
      readonly sealTicketSeconds: number
      readonly statusName: string
      readonly statusVersion: string
    }
}
