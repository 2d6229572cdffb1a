// Opens a world whose phones speak protocol 4.0.
import type { TestServer, TestServerOptions } from './app.ts'
import type { Bank } from './bank.ts'
import { member } from '../../phone/http.ts'
import type { PhoneAlgorithm } from '../../phone/v4/crypto.ts'
import { readSdkConfiguration, type V4AppConfiguration, type V4PhoneOptions } from '../../phone/v4/state.ts'
import { createPhoneV4, type V4ActivationOptions } from '../../phone/v4/virtual-phone.ts'
import { expectOk, startServerWithWorld, type World } from './world.ts'

export type PhoneV4 = ReturnType<typeof createPhoneV4>

export interface BoundV4 {
  readonly userId: string
  readonly phone: PhoneV4
}

/** The phones of protocol 4.0 of a world. */
export interface PhonesV4 {
  readonly world: World
  readonly app: V4AppConfiguration
  readonly newPhone: (algorithm: PhoneAlgorithm, options?: Partial<V4PhoneOptions>) => PhoneV4
  /** Makes a phone that has exchanged its keys and waits for the commit. */
  readonly pendingPhone: (algorithm: PhoneAlgorithm, request?: V4ActivationOptions) => Promise<BoundV4>
  /** Makes a phone with an active and confirmed activation, by default with biometry. */
  readonly activePhone: (algorithm: PhoneAlgorithm, options?: { readonly enableBiometry?: boolean }) => Promise<BoundV4>
  readonly close: () => Promise<void>
}

export interface WorldV4 extends PhonesV4 {
  readonly server: TestServer
}

/** Starts a server and opens a world on it. */
export async function startWorldV4(options: TestServerOptions = {}): Promise<WorldV4> {
  const { server, world } = await startServerWithWorld(options)
  return { ...(await openPhonesV4(world)), server }
}

/** Makes the phones of 4.0 for the default application of a world. */
export async function openPhonesV4(world: World): Promise<PhonesV4> {
  const app = await readAppV4(world.bank, world.applicationId)
  const newPhone: PhonesV4['newPhone'] = (algorithm, phoneOptions) =>
    createPhoneV4({ url: world.url, app, algorithm, ...phoneOptions })
  const pendingPhone: PhonesV4['pendingPhone'] = async (algorithm, request) => {
    const { userId, code } = await world.register()
    const phone = newPhone(algorithm)
    await phone.activate(code, request)
    return { userId, phone }
  }
  const activePhone: PhonesV4['activePhone'] = async (algorithm, { enableBiometry = true } = {}) => {
    const bound = await pendingPhone(algorithm)
    expectOk(await world.bank.commit(bound.userId))
    await bound.phone.exchange(bound.phone.prepareConfirm(enableBiometry))
    return bound
  }
  return { world, app, newPhone, pendingPhone, activePhone, close: () => world.close() }
}

/** Reads `mobileSdkConfig` of an application's default version. */
export async function readAppV4(admin: Bank, applicationId: string): Promise<V4AppConfiguration> {
  const { json } = expectOk(await admin.call('GET', `/admin/applications/${applicationId}`))
  return readSdkConfiguration(String(member(json, 'responseObject', 'mobileSdkConfig')))
}
