// What the cloud API needs from the process; context.ts satisfies it.
import type { AuditReport } from '../../domain/audit/verification.ts'
import type { SdkConfigurationParts } from '../../domain/application/application.ts'
import type { VerifyAccessToken } from '../../domain/credential/access-token.ts'
import type { Credentials } from '../../domain/credential/credential.ts'
import type { Tickets } from '../../domain/credential/tickets.ts'
import type { OfflineParts } from '../../domain/operation/offline-approval.ts'
import type { CertificateParts } from '../../domain/pinning/certificate.ts'
import type { Pinning } from '../../domain/pinning/pinning.ts'
import type { RegistrationParts } from '../../domain/activation/registration.ts'
import type { AttemptParts } from '../../domain/webhook/attempt.ts'
import type { Pool } from '../../storage/database/database.ts'
import type { PublicListener } from '../../http/listener-url.ts'

export interface CloudParts extends RegistrationParts, SdkConfigurationParts, OfflineParts, AttemptParts, CertificateParts {
  readonly db: Pool
  readonly credentials: Credentials
  /** Absent where no authorization server is configured. */
  readonly verifyAccessToken: VerifyAccessToken | undefined
  /** For calls from inside the process. */
  readonly tickets: Tickets
  readonly pinning: Pinning
  readonly publicListener: PublicListener
  /** Callers who ask while a verification runs share its report. */
  readonly verifyAudit: () => Promise<AuditReport>
  readonly settings: RegistrationParts['settings'] &
    AttemptParts['settings'] &
    CertificateParts['settings'] & {
      readonly adminActsOnDefaultApplication: boolean
      /** Base below which /pa/v3 hangs, without trailing slash; the public listener when absent. */
      readonly publicUrl?: string
    }
}
