// Approvals of phones that are offline: the bank shows a QR code, and its user types what the phone makes of it.
import { member } from '../../phone/http.ts'
import { type Action, bankJob, codeJob, decided, generationOf } from './jobs.ts'
import { bankRequest, MOSTLY_RIGHT, type ShownOperation, type SimulatedPhone } from './phones.ts'

/** A phone that does not know of its upgrade yet has no key for a text that is signed for 4.0, which its last line says (v4 §11.2). */
const canScan = (phone: SimulatedPhone, { text }: Pick<ShownOperation, 'text'>): boolean =>
  generationOf(phone) === 4 || !text.slice(text.lastIndexOf('\n') + 1).startsWith('2')

export const OFFLINE_ACTIONS: readonly Action[] = [
  {
    weight: 4,
    isLight: true,
    make: (life) => {
      const operation = life.operations.at(-1)
      if (operation === undefined) return undefined
      const path = `/operations/offline/qr?operationId=${operation.id}`
      return bankJob(life, `bank: shows ${operation.id}`, ['GET', path], ({ json }) => {
        life.shown.push({ ...operation, text: String(member(json, 'operationQrCodeData')), nonce: String(member(json, 'nonce')) })
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
      const phone = life.phones.findLast(({ userId }) => userId === shown.userId)
      if (phone === undefined || !canScan(phone, shown)) return undefined
      const toRequest = (otp: string) =>
        bankRequest(life.prepared.admin, 'POST', '/operations/offline/otp', { operationId: shown.id, otp, nonce: shown.nonce })
      return codeJob(
        life,
        phone.approveOffline(shown, chance.pick(MOSTLY_RIGHT), toRequest),
        decided(life, shown, phone, 'APPROVED'),
      )
    },
  },
]
