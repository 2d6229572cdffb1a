// Sends many requests at once, spread over the addresses of a world, and checks their outcome.
import { expect } from 'vitest'
import type { HttpReply, HttpRequest } from '../../phone/http.ts'
import { send } from '../../phone/http.ts'
import type { Prepared } from '../../phone/v3/state.ts'
import type { BoundV4, PhoneV4 } from './world-v4.ts'
import { expectOk, registrationOf, type World } from './world.ts'

/** Sends all requests at once. */
export const flood = (world: Pick<World, 'urls' | 'url'>, requests: readonly HttpRequest[]): Promise<HttpReply[]> =>
  Promise.all(requests.map((request, i) => send(world.urls[i % world.urls.length] ?? world.url, request)))

/** A list of the same request many times. */
export const repeat = <T>(times: number, request: T): T[] => Array.from({ length: times }, () => request)

/** Sends a request 50 times at once, and opens the one answer 200. No other answer may be a fault of the server. */
export async function sendFifty<T>(world: World, request: Prepared<T>): Promise<T> {
  const replies = await flood(world, repeat(50, request))
  const granted = replies.filter(({ status }) => status === 200)
  const refused = new Set(replies.map(({ status }) => status).filter((status) => status !== 200))
  expect({ granted: granted.length, refused: [...refused].filter((status) => status !== 400 && status !== 401) }).toEqual({
    granted: 1,
    refused: [],
  })
  return request.open(granted[0] as HttpReply)
}

/** Unblocks the activation if wrong codes have blocked it. */
export async function unblock(world: Pick<World, 'bank'>, userId: string): Promise<void> {
  if ((await registrationOf(world, userId)) === 'BLOCKED') expectOk(await world.bank.change(userId, 'UNBLOCK'))
}

/** Expects that the activation is usable, and that server and phone are at the same counter. */
export async function expectInStep(world: World, { userId, phone }: BoundV4): Promise<void> {
  await unblock(world, userId)
  expect(await phone.readStatus()).toMatchObject({ state: 3, currentVersion: 4, distance: 0, isDeadlocked: false })
  await phone.exchange(phone.prepareValidation())
  expect(await phone.readStatus()).toMatchObject({ failedAttempts: 0, distance: 0, isDeadlocked: false })
}

/** Whether a code with these keys in place of the phone's own is accepted. It may cost an attempt. */
export async function isAccepted(phone: PhoneV4, keys: Partial<Record<'knowledge' | 'biometry', Uint8Array>>): Promise<boolean> {
  const factors = keys.biometry ? 'possession_biometry' : 'possession_knowledge'
  return (await phone.send(phone.prepareValidation({ factors, wrongKeys: keys }))).status === 200
}
