// push/device/register: stores the push token of the phone, for pawl (domain/push) and for a push sender of the bank. Spec: mobile-token §7.
import { Type } from '@sinclair/typebox'
import { tokenEndpoint } from '../../channel/flow/token.ts'
import { hashPushToken, places } from '../../domain/secrets/secrets.ts'
import { NotBlank, ObjectRequest, Ok, OneOf, OptionalOrNull } from '../../http/types.ts'
import { utf8 } from '../../lib/bytes.ts'
import { PawlError } from '../../lib/errors.ts'
import { type PushEnvironment, type PushPlatform, putPushRegistration } from '../../storage/token/push-registrations.ts'
import type { MobileTokenParts } from './parts.ts'

// Published SDKs of 1.x send the older names of the same platforms.
const PLATFORMS = {
  apns: 'apns',
  fcm: 'fcm',
  hms: 'hms',
  ios: 'apns',
  android: 'fcm',
  huawei: 'hms',
} as const satisfies Readonly<Record<string, PushPlatform>>

const registerAt = (path: string) =>
  tokenEndpoint({
    path,
    summary: 'Says where pushes reach the phone',
    errors: ['PUSH_REGISTRATION_REFUSED'],
    isRepeatable: false,
    request: ObjectRequest(
      Type.Object({
        platform: OneOf(Object.keys(PLATFORMS) as (keyof typeof PLATFORMS)[]),
        environment: OptionalOrNull(OneOf<PushEnvironment>(['development', 'production'])),
        token: NotBlank(4096),
      }),
    ),
    response: Ok,
    async handle({ bearer, request }, parts: MobileTokenParts) {
      const { platform: name, environment, token } = request.requestObject
      const platform = PLATFORMS[name]
      const pushToken = parts.recordKeys.seal(places.pushToken(bearer), utf8(token))
      const pushTokenHash = hashPushToken(parts.installationKeys.codeLookup, platform, token)
      const { activationId } = bearer
      const registration = { activationId, platform, environment: environment ?? null, pushToken, pushTokenHash }
      const isStored = await putPushRegistration(parts.db, registration, new Date(parts.platform.now()))
      if (!isStored) throw new PawlError('PUSH_REGISTRATION_REFUSED', { detail: 'the activation is not active any more' })
      return { status: 'OK' as const }
    },
  })

export const pushRegister = registerAt('push/device/register')
export const pushRegisterToken = registerAt('push/device/register/token')
