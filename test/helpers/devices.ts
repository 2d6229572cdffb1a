// Makes users with several phones (cloud §17): further registrations, and phones that are bound beside others.
import { type HttpReply, member } from '../../phone/http.ts'
import type { PhoneToken } from '../../phone/v3/state.ts'
import type { VirtualPhone } from '../../phone/v3/virtual-phone.ts'
import { type Bank, readQrCode } from './bank.ts'
import { expectOk, type World } from './world.ts'

/** A phone of a user who may have others. */
export interface Device {
  readonly id: string
  readonly phone: VirtualPhone
  readonly token: PhoneToken
}

/** Calls POST /v2/registrations. */
export const createFurther = (bank: Bank, userId: unknown, more: object = {}, query = ''): Promise<HttpReply> =>
  bank.call('POST', `/v2/registrations${query}`, { userId, ...more })

/** Sets whether a user may have several phones. */
export const setMultiDevice = (bank: Bank, applicationId: string, isMultiDevice: boolean): Promise<HttpReply> =>
  bank.call('PATCH', `/admin/applications/${applicationId}`, { isMultiDevice })

/** Makes a phone that has exchanged its keys. It waits for its commit, unless `more` demands a commit at the key exchange. */
export async function bindDevice(world: World, userId: string, more: object = {}): Promise<Omit<Device, 'token'>> {
  const reply = expectOk(await createFurther(world.bank, userId, more))
  const phone = world.newPhone('3.2')
  await phone.activate(readQrCode(reply).code)
  return { id: String(member(reply.json, 'registrationId')), phone }
}

/** Makes an active phone with a token. */
export async function addDevice(world: World, userId: string): Promise<Device> {
  const bound = await bindDevice(world, userId)
  expectOk(await world.bank.call('POST', `/v2/registrations/${bound.id}/commit`, {}))
  return { ...bound, token: await bound.phone.createToken('possession') }
}
