// Types the answers of the bank's API that several pages read. Times are milliseconds since 1970-01-01 UTC, except those of certificates.

export interface ListedOperation {
  readonly operationId: string
  readonly userId?: string
  /** The only device that shows the operation and may decide it; absent if any device may. */
  readonly registrationId?: string
  /** The flag that a device must have to approve it. */
  readonly applicationFlag?: string
  readonly status: string
  readonly statusReason?: string
  readonly template: string
  readonly operationType: string
  readonly failureCount: number
  readonly maxFailureCount: number
  readonly timestampCreated: number
  readonly timestampExpires: number
}

export interface ListedRegistration {
  readonly activationId: string
  readonly userId: string
  readonly state: string
  readonly name?: string
  readonly platform?: string
  readonly deviceInfo?: string
  readonly protocolVersion?: number
  readonly highestProtocolVersion?: string
  readonly algorithm?: string
  readonly timestampCreated: number
  readonly timestampLastUsed?: number
}

/** The messages of a webhook or of a push provider. */
export interface Queue {
  readonly isEnabled: boolean
  readonly waiting: number
  readonly delivered: number
  readonly dead: number
  readonly failuresInRow: number
  readonly lagSeconds: number
}

export interface Webhook extends Queue {
  readonly id: string
  readonly application: string
  readonly name: string
  readonly kind: 'OPERATION' | 'ACTIVATION'
  readonly url: string
  readonly attributes: readonly string[]
  readonly basicUsername?: string
  readonly disabledReason?: string
  readonly previousSecretExpiresAt?: number
  readonly createdAt: number
}

export interface PushProvider extends Queue {
  readonly provider: 'apns' | 'fcm'
  readonly lastError?: string
}

export interface PinnedCertificate {
  readonly fingerprint: string
  /** Seconds since 1970-01-01 UTC, like all times of certificates and domains. */
  readonly expires: number
  readonly isExpired: boolean
  readonly source: 'pem' | 'fetch' | 'fingerprint'
  readonly created: number
  readonly pem?: string
  readonly warning?: string
}

export interface PinnedDomain {
  readonly name: string
  readonly port: number
  readonly certificates: readonly PinnedCertificate[]
  readonly live?: {
    readonly checkedAt: number
    readonly fingerprint?: string
    readonly expires?: number
    readonly daysToExpiry?: number
    readonly isChainTrusted?: boolean
    readonly isPinned: boolean
    readonly problem?: string
  }
}

/** A page of an audit log. */
export interface Found<Item> {
  readonly items: readonly Item[]
  /** The place of older rows; absent when there are none. */
  readonly next?: number
}

export interface AdminEvent {
  readonly id: number
  readonly timestamp: number
  readonly username: string
  readonly action: string
  readonly target: string
  readonly before?: unknown
  readonly after?: unknown
}
