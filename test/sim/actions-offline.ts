// Lists approvals of offline phones: the bank shows a QR code, the phone makes a one-time password from it, and the user types that.
import { member } from '../../phone/http.ts'
import { acceptAtDoor, askDoor, doorJob, someKey } from './actions-door.ts'
import {
  type Action,
  bankJob,
  codeJob,
  decided,
  type DoorAsk,
  generationOf,
  isNamedByUser,
  type Life,
  nextName,
  phonesOf,
  type ShownChallenge,
  somePhone,
} from './jobs.ts'
import { bankRequest, type Code, MOSTLY_RIGHT, type ShownOperation, type SimulatedPhone } from './phones.ts'

const RESOURCE = '/operation/authorize/offline'

/** Whether a phone has the key for a text. One that does not know of its upgrade yet has none for a text of 4.0 (last line, v4 §11.2). */
const canScan = (phone: SimulatedPhone, { text }: Pick<ShownOperation, 'text'>): boolean =>
  generationOf(phone) === 4 || !text.slice(text.lastIndexOf('\n') + 1).startsWith('2')

const askAboutOtp = (life: Life, challenge: ShownChallenge, code: Code, body: object, key: string | undefined): DoorAsk =>
  askDoor(life, {
    phone: code.phone,
    code,
    path: '/offline/verification',
    body,
    key,
    accept: (itsLife, isFirst) => {
      challenge.answers.add(code)
      if (challenge.answers.size > 1) return () => `challenge ${challenge.id} was answered twice`
      return acceptAtDoor(code)(itsLife, isFirst)
    },
    renew: (other) => askAboutOtp(life, challenge, code, body, other),
  })

export const OFFLINE_ACTIONS: readonly Action[] = [
  {
    weight: 4,
    isLight: true,
    make: (life) => {
      const operation = life.operations.at(-1)
      if (operation === undefined) return undefined
      const phones = phonesOf(life, operation.userId)
      if (phones.length === 0) return undefined
      const phone = life.site.chance.pick(phones)
      const registrationId = phone.activationId()
      // The bank need not name the only phone of a user.
      const named = isNamedByUser(life, phone) && life.site.chance.happens(0.5) ? '' : `&registrationId=${registrationId}`
      const path = `/operations/offline/qr?operationId=${operation.id}${named}`
      return bankJob(life, `bank: shows ${operation.id} to ${phone.name}`, ['GET', path], ({ json }) => {
        const [text, nonce] = (['operationQrCodeData', 'nonce'] as const).map((name) => String(member(json, name))) as [
          string,
          string,
        ]
        life.shown.push({ ...operation, text, nonce, registrationId, isNamed: named !== '' })
        return undefined
      })
    },
  },
  {
    weight: 6,
    isLight: true,
    make: (life) => {
      if (life.shown.length === 0) return undefined
      const { chance } = life.site
      const shown = chance.pick(life.shown.slice(-3))
      const { id: operationId, nonce, registrationId, isNamed } = shown
      const phone = life.phones.find((one) => one.activationId() === registrationId)
      if (phone === undefined || !canScan(phone, shown)) return undefined
      const toRequest = (otp: string) => {
        const body = { operationId, otp, nonce, ...(isNamed && { registrationId }) }
        return bankRequest(life.prepared.admin, 'POST', '/operations/offline/otp', body)
      }
      return codeJob(
        life,
        phone.approveOffline(shown, chance.pick(MOSTLY_RIGHT), toRequest),
        decided(life, shown, phone, 'APPROVED'),
      )
    },
  },
  {
    weight: 5,
    isLight: true,
    make: (life) => {
      const phone = somePhone(life)
      const { userId } = phone
      const [id, data] = [nextName(life, 'cash'), 'A2']
      // The text has the form in which phones read operations.
      const toShow = [id, 'Cash', 'At the counter', data, 'B'].join('\n')
      const body = Buffer.from(`${id}&${data}`).toString('base64')
      const question = { activationId: phone.activationId(), data: toShow, resourceId: RESOURCE, body }
      return bankJob(life, `bank: shows ${id} to ${phone.name}`, ['POST', '/offline/challenges', question], ({ json }) => {
        const [challengeId, text, nonce] = (['challengeId', 'qrCodeData', 'nonce'] as const).map((name) =>
          String(member(json, name)),
        ) as [string, string, string]
        life.challenges.push({ id, data, userId, text, nonce, challengeId, phone, answers: new Set() })
        return undefined
      })
    },
  },
  {
    weight: 8,
    isLight: true,
    make: (life) => {
      if (life.challenges.length === 0) return undefined
      const { chance } = life.site
      const challenge = chance.pick(life.challenges.slice(-3))
      const { phone, challengeId } = challenge
      if (!canScan(phone, challenge)) return undefined
      let body = {}
      const code = phone.answerOffline(challenge, chance.pick(MOSTLY_RIGHT), (otp) => {
        body = { challengeId, otp }
        return bankRequest(life.prepared.admin, 'POST', '/offline/verification', body)
      })
      return doorJob(life, askAboutOtp(life, challenge, code, body, someKey(life)))
    },
  },
]
