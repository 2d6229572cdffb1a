// A world whose phones speak protocol 4.0.
import type { Context } from '../../src/context.ts'
import { readMasterPublicKeys } from '../../src/domain/master-keys.ts'
import type { TestServer, TestServerOptions } from './app.ts'
import type { PhoneAlgorithm } from './phone-v4-crypto.ts'
import type { V4AppConfiguration, V4PhoneOptions } from './phone-v4-state.ts'
import { createPhoneV4, type V4ActivationOptions } from './virtual-phone-v4.ts'
import { expectOk, startServerWithWorld, type World } from './world.ts'

export type PhoneV4 = ReturnType<typeof createPhoneV4>

export interface BoundV4 {
  readonly userId: string
  readonly phone: PhoneV4
}

/** The phones of an application that speak protocol 4.0. */
export interface PhonesV4 {
  readonly app: V4AppConfiguration
  readonly newPhone: (algorithm: PhoneAlgorithm, options?: Partial<V4PhoneOptions>) => PhoneV4
  /** A phone that exchanged its keys and waits for the commit. */
  readonly pendingPhone: (algorithm: PhoneAlgorithm, request?: V4ActivationOptions) => Promise<BoundV4>
  /** A phone with an active and confirmed activation; with biometry unless told otherwise. */
  readonly activePhone: (algorithm: PhoneAlgorithm, options?: { readonly enableBiometry?: boolean }) => Promise<BoundV4>
}

export interface WorldV4 extends PhonesV4 {
  readonly server: TestServer
  readonly world: World
  readonly close: () => Promise<void>
}

/** Starts a server of its own and opens a world on it. */
export async function startWorldV4(options: TestServerOptions = {}): Promise<WorldV4> {
  const { server, world } = await startServerWithWorld(options)
  return { server, world, ...(await openPhonesV4(world, server.context)), close: () => world.close() }
}

/** Phones of protocol 4.0 for a world whose others speak protocol 3. */
export async function openPhonesV4(world: World, context: Context): Promise<PhonesV4> {
  const keys = await readMasterPublicKeys(context, world.applicationId)
  const { applicationKey, applicationSecret } = world.app
  const mlDsa = { mlDsa65: keys.ML_DSA_65, mlDsa87: keys.ML_DSA_87 }
  const app = { applicationKey, applicationSecret, p256: keys.EC_P256, p384: keys.EC_P384, ...mlDsa }
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
  return { app, newPhone, pendingPhone, activePhone }
}
