// Opens applications whose apps hand over to each other on one phone (mobile-token §9), and makes the requests of both apps.
import { expect } from 'vitest'
import { type HttpReply, member } from '../../phone/http.ts'
import type { PhoneVersion } from '../../phone/v3/crypto.ts'
import type { AppConfiguration, Prepared } from '../../phone/v3/state.ts'
import { createPhone, type VirtualPhone } from '../../phone/v3/virtual-phone.ts'
import { createPhoneV4 } from '../../phone/v4/virtual-phone.ts'
import { type Bank, readApplication } from './bank.ts'
import { expectOk, type World } from './world.ts'
import { openPhonesV4, type PhoneV4, readAppV4 } from './world-v4.ts'

export const OTP = 'Otp of both apps: 0123456789'
/** The ids of the bank's other applications, beside that of the world. */
export const WALLET = 'wallet'
export const JUNIOR = 'junior'

export type Side = PhoneVersion | '4.0'
export type AnyPhone = VirtualPhone | PhoneV4
export type Body = Readonly<Record<string, unknown>>

export interface TransferCode {
  readonly activationId: string
  readonly activationCode: string
  readonly activationSignature: string
}

export interface Transfers {
  readonly world: World
  readonly wallet: AppConfiguration
  /** Makes a phone whose app is bound in the application of the world. */
  readonly boundPhone: (side: Side) => Promise<{ readonly userId: string; readonly phone: AnyPhone }>
  /** Makes the unbound app `wallet` or `junior` on a phone. */
  readonly otherApp: (side: Side, application?: string) => Promise<AnyPhone>
  /** Reads an activation as administrators see it. */
  readonly detailOf: (application: string, activationId: string) => Promise<Readonly<Record<string, unknown>>>
}

/** Creates both other applications, and lets the one of the world move to `wallet` and spawn in `junior`. */
export async function openTransfers(world: World): Promise<Transfers> {
  const { bank, applicationId } = world
  const wallet = readApplication(await bank.createApplication(WALLET))
  const apps: Readonly<Record<string, AppConfiguration>> = {
    [WALLET]: wallet,
    [JUNIOR]: readApplication(await bank.createApplication(JUNIOR)),
  }
  expectOk(await configure(bank, applicationId, TRANSFERS))
  const v4 = await openPhonesV4(world)
  return {
    world,
    wallet,
    boundPhone: (side) => (side === '4.0' ? v4.activePhone('EC_P384') : world.activePhone(side)),
    otherApp: async (side, application = WALLET) =>
      side === '4.0'
        ? createPhoneV4({ url: world.url, app: await readAppV4(bank, application), algorithm: 'EC_P384' })
        : createPhone({ url: world.url, app: apps[application] ?? wallet, version: side }),
    detailOf: async (application, activationId) => {
      const reply = await bank.call('GET', `/admin/applications/${application}/registrations/${activationId}`)
      return expectOk(reply).json as Readonly<Record<string, unknown>>
    },
  }
}

export const TRANSFERS = [
  { targets: [WALLET], type: 'MOVE' },
  { targets: [JUNIOR], type: 'SPAWN', initialFlags: ['JUNIOR', 'NEW'] },
]

export const configure = (bank: Bank, application: string, transfers: unknown): Promise<HttpReply> =>
  bank.call('PATCH', `/admin/applications/${application}`, { transfers })

/** Prepares the request for a code. `plaintext`: the body in place of the usual one. */
export function prepareCode(
  phone: AnyPhone,
  requestObject: Body = {},
  { plaintext, ...more }: { readonly plaintext?: string } & Record<string, unknown> = {},
): Promise<Prepared<Record<string, unknown>>> {
  const whole = { requestObject: { applicationId: WALLET, otp: OTP, ...requestObject } }
  const request = {
    path: '/api/activation/code',
    resourceId: '/api/activation/code',
    plaintext: Buffer.from(plaintext ?? JSON.stringify(whole)),
  }
  return phone.prepareSignedEncrypted(request, more)
}

/** Requests a code. Throws when the server refuses. */
export async function askForCode(phone: AnyPhone, requestObject?: Body): Promise<TransferCode> {
  const answer = await phone.exchange(await prepareCode(phone, requestObject))
  expect(answer).toMatchObject({ status: 'OK' })
  return member(answer, 'responseObject') as TransferCode
}

/** Prepares the key exchange of the other app. */
export const prepareBind = (phone: AnyPhone, code: string, activationOtp: string | undefined = OTP): Promise<Prepared<unknown>> =>
  phone.prepareActivation(code, { layer2: { activationOtp } })
