// Opens a world for tests of the doors for device keys: phones of every kind that sign, and a second application.
import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import { expect } from 'vitest'
import type { DeviceSigner } from '../../phone/device-signature.ts'
import type { HttpReply } from '../../phone/http.ts'
import { member } from '../../phone/http.ts'
import type { PhoneAlgorithm } from '../../phone/v4/crypto.ts'
import type { TestServerOptions } from './app.ts'
import { type Bank, readApplication, readQrCode } from './bank.ts'
import { createPhone } from '../../phone/v3/virtual-phone.ts'
import { expectOk } from './world.ts'
import { startWorldV4, type WorldV4 } from './world-v4.ts'

/** A phone with its user and its device keys, ECDSA first. */
export interface SigningPhone {
  readonly activationId: string
  readonly userId: string
  readonly signers: readonly DeviceSigner[]
}

export interface DoorWorld extends WorldV4 {
  readonly bank: Bank
  /** Makes a phone: of 3.3 for EC_P256, else of 4.0. */
  readonly signingPhone: (algorithm: 'EC_P256' | PhoneAlgorithm) => Promise<SigningPhone>
  /** Makes a registration whose code no phone has used. */
  readonly createdRegistration: () => Promise<Pick<SigningPhone, 'activationId' | 'userId'>>
  /** Makes a phone of 3.3 in another application, with that application's back end. */
  readonly foreignPhone: () => Promise<SigningPhone & { readonly bank: Bank }>
  /** Makes a credential of this role, for the named application. */
  readonly openBank: (role: string, application?: string) => Promise<Bank>
  /** Event and data of the audit rows about device signatures, oldest first. */
  readonly auditOf: (activationId: string) => Promise<readonly (readonly [string, string])[]>
}

/** Opens the world on a new server. */
export async function startDoorWorld(options: TestServerOptions = {}): Promise<DoorWorld> {
  const v4 = await startWorldV4(options)
  const { world, server } = v4
  const { bank } = world
  let names = 0
  const openBank: DoorWorld['openBank'] = async (role, application) => {
    const username = `door-${role}-${++names}`
    const created = expectOk(await bank.call('POST', '/admin/users', { username, role, ...(application && { application }) }))
    return bank.as(`${username}:${String(member(created.json, 'password'))}`)
  }
  return {
    ...v4,
    bank,
    openBank,
    async signingPhone(algorithm) {
      const { userId, phone } = algorithm === 'EC_P256' ? await world.activePhone('3.3') : await v4.activePhone(algorithm)
      return { userId, activationId: phone.state.activationId, signers: phone.deviceSigners() }
    },
    async createdRegistration() {
      const userId = world.newUser()
      const created = await bank.call('POST', `/admin/applications/${world.applicationId}/registrations`, { userId })
      return { userId, activationId: String(member(expectOk(created).json, 'activationId')) }
    },
    async foreignPhone() {
      const id = `foreign-${++names}`
      const app = readApplication(await bank.createApplication(id))
      const own = await openBank('integration', id)
      const userId = world.newUser()
      const phone = createPhone({ url: world.url, app, version: '3.3' })
      await phone.activate(readQrCode(await own.register(userId)).code)
      expectOk(await own.commit(userId))
      return { userId, activationId: phone.state.activationId, signers: phone.deviceSigners(), bank: own }
    },
    async auditOf(activationId) {
      const { rows } = await sql<{ type: string; data: string }>`
        select event_type as type, event_data as data from audit_trail
        where activation_id = ${activationId} and event_type like 'device_signature%' order by occurred_at, sequence`.execute(
        server.context.db,
      )
      return rows.map(({ type, data }) => [type, data] as const)
    },
  }
}

/** The signer of a phone by its place; throws when the phone has none there. */
export function signerOf({ signers }: Pick<SigningPhone, 'signers'>, place = 0): DeviceSigner {
  const signer = signers[place]
  if (signer === undefined) throw new Error('the phone has no such key')
  return signer
}

/** The data of an audit row about signed bytes, in lines. */
export const auditLines = (how: string, data: Uint8Array, refusal?: string): string =>
  [how, data.length, createHash('sha256').update(data).digest('hex'), ...(refusal === undefined ? [] : [refusal])].join('\n')

/** Expects a verdict with exactly these members. */
export const expectVerdict = (reply: HttpReply, verdict: object): void =>
  expect({ status: reply.status, json: reply.json }).toEqual({ status: 200, json: verdict })
