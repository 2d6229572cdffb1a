// Examines whether Apple and Google accept the credentials of the settings, from this machine.
import { createPushSenders, type PushSenders } from '../../src/domain/push/senders.ts'
import { systemPlatform } from '../../src/lib/platform.ts'
import { explainFault } from '../fault.ts'
import type { Settings } from '../local/database.ts'
import { type Finding, fault, ok } from './finding.ts'

/** Examines each provider of the settings. Apple gets a push to a token that no phone has, Google a request for an access token. */
export async function examinePush({ config, secrets }: Settings): Promise<readonly Finding[]> {
  let senders: PushSenders
  try {
    senders = await createPushSenders(config, secrets, systemPlatform)
  } catch (error) {
    return [fault('push', explainFault(error), 'docs/PUSH.md says where the key comes from')]
  }
  return Promise.all(
    Array.from(senders.values(), async ({ provider, sender }) => {
      const which = provider === 'apns' ? 'Apple' : 'Google'
      try {
        const problem = await sender.findProblem()
        if (problem === undefined) return ok('push', `${which} takes the credentials`)
        return fault('push', `${which} does not take the credentials: ${problem}`, CREDENTIALS[provider])
      } catch (error) {
        return fault('push', explainFault(error), 'let this machine reach it, or a proxy that leads there')
      } finally {
        sender.close()
      }
    }),
  )
}

const CREDENTIALS = {
  apns: 'check PAWL_APNS_KEY, PAWL_APNS_KEY_ID, PAWL_APNS_TEAM_ID and PAWL_APNS_TOPIC, and the clock of this machine',
  fcm: 'check PAWL_FCM_SERVICE_ACCOUNT, that its account may still send, and the clock of this machine',
}
