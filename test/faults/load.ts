// Sends load while a fault happens: phones sign, a bank registers users, an administrator makes credentials. Each of them notes the requests
// that were answered 200. Afterwards their effects must be stored, and no code may be accepted again.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Bank } from '../helpers/bank.ts'
import { isConnectionLost } from '../helpers/recorded-load.ts'
import { openPhonesV4 } from '../helpers/world-v4.ts'
import type { World } from '../helpers/world.ts'
import type { HttpReply, HttpRequest } from '../../phone/http.ts'
import { member, send } from '../../phone/http.ts'

export interface Counts {
  /** Requests. */
  sent: number
  /** Of these, those that were answered 200. */
  answered: number
  /** Effects of requests answered 200 that are not stored: steps of counters, registrations, credentials. */
  lost: number
  /** Requests answered 200 a second time. */
  acceptedAgain: number
  /** Answers other than 200 and 503 to a right request, as `STATUS body`. */
  readonly refused: string[]
}

export interface Load {
  readonly counts: Counts
  readonly start: () => void
  /** Stops the load. Resolves when no request is under way any more. */
  readonly pause: () => Promise<void>
  /** Resolves when every sender has got a 200 to a request that it sent after this call, or half a minute later. */
  readonly everyoneAnswered: () => Promise<void>
  /** Counts lost effects of requests that were answered since the last check, and repeated requests that are accepted; the load must pause. */
  readonly check: () => Promise<void>
}

/** A sender of the load: a phone, the bank, or the administrator. */
interface Sender {
  readonly send: () => Promise<HttpReply>
  /** Called after a 200 to the newest request. */
  readonly note: () => void
  /** The number of noted effects that are not stored. */
  readonly countLost: () => Promise<number>
  /** The newest requests that were answered 200, oldest first; empty for a sender whose repeated requests prove nothing. */
  readonly takeNewest: () => readonly HttpRequest[]
}

/** Makes a load of two phones of 3.3, one of 4.0, a bank and an administrator in `world`. */
export async function openLoad(world: World): Promise<Load> {
  const counts: Counts = { sent: 0, answered: 0, lost: 0, acceptedAgain: 0, refused: [] }
  const senders = [
    await openPhone(world),
    await openPhone(world),
    await openPhoneV4(world),
    openBank(world.bank, world.newUser),
    openAdministrator(world.bank, world.newUser),
  ]
  const answeredAt = new Map<Sender, number>()
  let turn = 0
  const state = { isPaused: true }
  let runs: Promise<unknown> = Promise.resolve()

  const run = async (sender: Sender): Promise<void> => {
    while (!state.isPaused) {
      counts.sent += 1
      const sentAt = ++turn
      const reply = await sender.send().catch((error: unknown) => {
        if (!isConnectionLost(error)) throw error
      })
      if (reply?.status === 200) {
        counts.answered += 1
        sender.note()
        answeredAt.set(sender, sentAt)
      } else if (reply !== undefined && reply.status !== 503) counts.refused.push(`${reply.status} ${reply.text}`)
      await sleep(PAUSE_MS)
    }
  }

  return {
    counts,
    start: () => {
      if (!state.isPaused) return
      state.isPaused = false
      runs = Promise.all(senders.map(run))
    },
    pause: async () => {
      state.isPaused = true
      await runs
    },
    everyoneAnswered: async () => {
      const since = turn
      const isOne = (sender: Sender): boolean => (answeredAt.get(sender) ?? 0) > since
      for (let left = LOOKS_MAX; left > 0 && !senders.every(isOne); left -= 1) await sleep(LOOK_MS)
    },
    check: async () => {
      for (const sender of senders) counts.lost += await sender.countLost()
      for (const request of senders.flatMap((sender) => sender.takeNewest())) {
        if ((await send(world.url, request)).status === 200) counts.acceptedAgain += 1
      }
    },
  }
}

/** A phone as a sender. The server has lost as many steps as its counter is behind the newest code that it accepted. */
function followPhone(url: string, prepare: (body: string) => HttpRequest, readCtrByte: () => Promise<number>): Sender {
  let made = 0
  let accepted = 0
  let newest: HttpRequest[] = []
  let request: HttpRequest | undefined
  return {
    send: () => {
      request = prepare(`pay ${made}`)
      made += 1
      return send(url, request)
    },
    note: () => {
      accepted = made
      if (request !== undefined) newest = [...newest, request].slice(-NEWEST_MAX)
    },
    // A code without an answer may have been accepted, so the server may be ahead, up to the number of codes made.
    countLost: async () => {
      const ahead = ((await readCtrByte()) - accepted) & 0xff
      return ahead <= made - accepted ? 0 : 0x100 - ahead
    },
    takeNewest: () => newest.splice(0),
  }
}

async function openPhone(world: World): Promise<Sender> {
  const { phone } = await world.activePhone('3.3')
  const prepare = (body: string) => phone.prepareValidation({ body })
  return followPhone(world.url, prepare, async () => (await phone.readStatus({ withChallenge: true })).ctrByte)
}

async function openPhoneV4(world: World): Promise<Sender> {
  const { phone } = await (await openPhonesV4(world)).activePhone('EC_P384')
  const first = (await phone.readStatus()).ctrByte
  const prepare = (body: string) => phone.prepareValidation({ body })
  return followPhone(world.url, prepare, async () => ((await phone.readStatus()).ctrByte - first) & 0xff)
}

/** Registers one user after the other, each by a single statement. */
function openBank(bank: Bank, newUser: () => string): Sender {
  const registered = new Map<string, string>()
  let userId = ''
  let reply: HttpReply | undefined
  return {
    send: async () => {
      userId = newUser()
      reply = await bank.register(userId)
      return reply
    },
    note: () => void registered.set(userId, String(member(reply?.json, 'activationQrCodeData'))),
    countLost: async () => {
      let lost = 0
      for (const [user, qrText] of registered) {
        const { json } = await bank.view(user)
        if (member(json, 'registration') !== 'CREATED' || member(json, 'activationQrCodeData') !== qrText) lost += 1
      }
      registered.clear()
      return lost
    },
    takeNewest: () => [],
  }
}

/** Makes one credential after the other, each in a transaction. */
function openAdministrator(bank: Bank, newUser: () => string): Sender {
  const created: string[] = []
  let username = ''
  return {
    send: () => {
      username = newUser()
      return bank.call('POST', '/admin/users', { username, role: 'read-only' })
    },
    note: () => void created.push(username),
    countLost: async () => {
      const { text } = await bank.call('GET', '/admin/users')
      return created.splice(0).filter((name) => !text.includes(`"${name}"`)).length
    },
    takeNewest: () => [],
  }
}

const PAUSE_MS = 300
const LOOK_MS = 50
const LOOKS_MAX = 600
// Fewer than the number of wrong codes that block an activation.
const NEWEST_MAX = 4
