// Creates the senders of the push providers for which the settings have credentials (mobile-token §7.1).
import type { Platform } from '../../lib/platform.ts'
import type { PushProvider } from '../../storage/webhook/push-providers.ts'
import { createApnsSender } from './apns.ts'
import { createFcmSender, type FcmSettings } from './fcm.ts'
import type { PushSender } from './push.ts'

/** The senders by the id of their provider; empty when pawl sends no pushes. */
export type PushSenders = ReadonlyMap<string, { readonly provider: PushProvider; readonly sender: PushSender }>

interface PushSettings {
  readonly apnsKeyId?: string
  readonly apnsTeamId?: string
  readonly apnsTopic?: string
  readonly apnsUrl: string
  readonly apnsDevelopmentUrl: string
  readonly apnsLocalized: boolean
  readonly fcmUrl: string
}

interface PushCredentials {
  readonly apnsKey?: string
  readonly fcmServiceAccount?: FcmSettings['account']
}

/** Creates the senders. Throws StartError for an unusable key. */
export async function createPushSenders(
  settings: PushSettings,
  { apnsKey: key, fcmServiceAccount: account }: PushCredentials,
  platform: Pick<Platform, 'now' | 'uuid'>,
): Promise<PushSenders> {
  const { apnsKeyId: keyId, apnsTeamId: teamId, apnsTopic: topic, apnsUrl: url, apnsDevelopmentUrl: developmentUrl } = settings
  const senders = new Map<string, { provider: PushProvider; sender: PushSender }>()
  if (key !== undefined && keyId !== undefined && teamId !== undefined && topic !== undefined) {
    const apns = { key, keyId, teamId, topic, url, developmentUrl, isLocalized: settings.apnsLocalized }
    senders.set('apns', { provider: 'apns', sender: await createApnsSender(apns, platform) })
  }
  if (account !== undefined)
    senders.set('fcm', { provider: 'fcm', sender: await createFcmSender({ account, url: settings.fcmUrl }, platform) })
  return senders
}
