// Offline codes: a QR code over data of the bank, and the digits that a phone without connection makes for it (docs/OFFLINE.md).
import { createAsk, type PawlOptions, PawlUnavailable } from './pawl.ts'

export interface OfflineChallenge {
  /** Keep it on the server, with the session that the challenge was made for. */
  readonly challengeId: string
  /** The text of the QR code. */
  readonly qrCodeData: string
  /** Milliseconds. */
  readonly expiresAt: number
}

export interface OfflineQuestion {
  /** Whose phone is to answer; with neither, any phone of the application. */
  readonly userId?: string
  readonly activationId?: string
  /** What the phone reads. */
  readonly data: string
  readonly resourceId: string
  /** What the code covers. */
  readonly body: string | Uint8Array
  readonly factors?: readonly ('POSSESSION_KNOWLEDGE' | 'POSSESSION_BIOMETRY')[]
  readonly validitySeconds?: number
  readonly hasProximityCheck?: boolean
}

export interface OfflineCodes {
  /** Throws PawlUnavailable. */
  readonly challenge: (question: OfflineQuestion) => Promise<OfflineChallenge>
  /** `userId` or `activationId` where the challenge names nobody. `reason` is for your log. Throws PawlUnavailable. */
  readonly verify: (answer: {
    readonly challengeId: string
    readonly otp: string
    readonly userId?: string
    readonly activationId?: string
    readonly auditText?: string
  }) => Promise<{ readonly isValid: boolean; readonly reason?: string; readonly userId?: string; readonly factors?: string }>
}

export function createOfflineCodes(options: PawlOptions): OfflineCodes {
  const ask = createAsk(options)
  return {
    challenge: async ({ body, ...question }) => {
      const answer = await ask('/offline/challenges', { ...question, body: Buffer.from(body as string).toString('base64') })
      if (typeof answer['challengeId'] !== 'string') throw new PawlUnavailable('pawl answered without a challenge')
      return answer as unknown as OfflineChallenge
    },
    verify: async (given) => {
      const { isValid, ...more } = await ask('/offline/verification', given)
      // Anything but true is no verdict to act on.
      return { ...more, isValid: isValid === true }
    },
  }
}
