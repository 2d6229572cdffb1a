// /admin/push: shows figures of the push providers to which pawl sends (mobile-token §7.1, cloud §10).
import { type Static, Type } from '@sinclair/typebox'
import { named, OneOf } from '../../../http/types.ts'
import { listPushProviders } from '../../../storage/webhook/push-providers.ts'
import { adminRead } from '../endpoint.ts'

const PushProvider = named(
  'PushProvider',
  Type.Object({
    provider: OneOf(['apns', 'fcm']),
    isEnabled: Type.Boolean({ description: 'whether the newest start had credentials for it' }),
    waiting: Type.Integer({ description: 'pushes that wait for their first or next attempt' }),
    delivered: Type.Integer({ description: 'pushes that it took, since the first start with it' }),
    dead: Type.Integer({ description: 'pushes that were given up, of those that are kept' }),
    failuresInRow: Type.Integer({ description: 'attempts without a success between them' }),
    lagSeconds: Type.Integer({ description: 'age of the oldest push that waits' }),
    lastError: Type.Optional(
      Type.String({ description: 'of the newest push that waits after an attempt, or else of the newest that was given up' }),
    ),
  }),
)
export type PushProvider = Static<typeof PushProvider>

export const pushProvidersList = adminRead({
  route: 'GET /admin/push',
  operationId: 'listPushProviders',
  summary: 'How the providers of pushes are doing',
  description: 'Empty where pawl has never sent pushes itself.',
  response: Type.Object({ providers: Type.Array(PushProvider) }),
  async handle({ parts: { db, platform } }) {
    const now = platform.now()
    const providers = await listPushProviders(db)
    return {
      providers: providers.map(({ waitingSince, lastError, ...figures }) => ({
        ...figures,
        lagSeconds: waitingSince === null ? 0 : Math.max(0, Math.round((now - waitingSince.getTime()) / 1000)),
        ...(lastError !== null && { lastError }),
      })),
    }
  },
})
