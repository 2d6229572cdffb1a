// Defines the works that are measured: each is one thing that a phone or a bank does. Requests are made before the window that sends them, so
// that the figures do not include the client's cryptography. Only a whole activation, whose steps need earlier answers, is made within it.
import { randomUUID } from 'node:crypto'
import { b64, type PhoneVersion, random } from '../../phone/v3/crypto.ts'
import type { TemporaryKey } from '../../phone/v3/envelope.ts'
import { type HttpReply, type HttpRequest, member, send } from '../../phone/http.ts'
import type { AppConfiguration, PhoneToken } from '../../phone/v3/state.ts'
import { newChallenge } from '../../phone/utility.ts'
import { PHONE_ALGORITHMS, type PhoneAlgorithm } from '../../phone/v4/crypto.ts'
import { readSdkConfiguration, type V4AppConfiguration } from '../../phone/v4/state.ts'
import { createPhoneV4, type VirtualPhoneV4 } from '../../phone/v4/virtual-phone.ts'
import { createPhone, type VirtualPhone } from '../../phone/v3/virtual-phone.ts'
import { type Bank, createBank, readApplication, readQrCode } from '../../test/helpers/bank.ts'
import { composeRequest, connectionOf } from './connection.ts'
import type { CopyPhone } from './copies.ts'
import type { Target } from './target.ts'

/** Sends one unit of work, over the connection of the client with this number. Rejects when the answer is not the right one. */
export type Unit = (client: number) => Promise<void>

export interface Work {
  readonly name: string
  /**
   * Makes `count` units in `clients` lists, one for each client. The units of a phone are in one list, in the order of its counter.
   */
  readonly prepare: (count: number, clients: number) => Promise<readonly (readonly Unit[])[]>
}

/**
 * Opens an application on the server, binds `phones` phones of each generation with a wanted work, and lists the wanted works. With `copy` one
 * phone of protocol 3 is bound, and the others are its copies.
 */
export async function openWorks(
  target: Target,
  phones: number,
  isWanted: (name: string) => boolean,
  copy?: CopyPhone,
): Promise<readonly Work[]> {
  const server = await openServer(target, APPLICATION)
  const works: Work[] = []
  const names = PHONE_KINDS.filter((kind) => PHONE_WORKS.some((work) => isWanted(`${kind} ${work}`)))
  for (const kind of names) {
    const holders =
      copy && kind === '3.3'
        ? await copyPhones(server, phones, copy)
        : (await Promise.all(split(phones, BINDING_AT_ONCE).map((count) => bindPhones(server, kind, count)))).flat()
    works.push(...worksOfPhones(server, kind, holders))
  }
  works.push(...(await worksOfUtility(server)))
  return works.filter(({ name }) => isWanted(name))
}

/** Makes an application of this name on a server. */
export async function openServer(target: Pick<Target, 'url' | 'admin'>, application: string): Promise<Server> {
  const bank = createBank(target.url, target.admin)
  const app = readApplication(await bank.createApplication(application))
  const { json } = expectOk(await bank.call('GET', `/admin/applications/${application}`))
  const appV4 = readSdkConfiguration(String(member(json, 'responseObject', 'mobileSdkConfig')))
  return { url: target.url, bank, app, appV4 }
}

export interface Server {
  readonly url: string
  readonly bank: Bank
  readonly app: AppConfiguration
  readonly appV4: V4AppConfiguration
}

type PhoneKind = (typeof PHONE_KINDS)[number]
type PhoneOf<K extends PhoneKind> = K extends '3.3' ? VirtualPhone : VirtualPhoneV4

/** A phone of either generation, with functions that make its requests. */
interface Holder {
  readonly userId: string
  readonly validation: () => HttpRequest
  readonly status: () => Promise<HttpRequest>
  /** An encrypted activation/detail with a token, under the temporary key of the last `renew`. */
  readonly detail: () => Promise<HttpRequest>
  readonly renew: () => Promise<void>
  /** A request for a temporary key of the application, which anybody who has the app can send. */
  readonly keystore: () => HttpRequest
  /** Undefined for phones of 4.0: the server does the same work for operations of both generations. */
  readonly operations: Operations | undefined
}

interface Operations {
  readonly list: () => Promise<HttpRequest>
  readonly authorize: (operation: { readonly id: unknown; readonly data: unknown }) => HttpRequest
}

async function bindPhones(server: Server, kind: PhoneKind, count: number): Promise<Holder[]> {
  const holders: Holder[] = []
  for (let i = 0; i < count; i += 1) holders.push(await bindPhone(server, kind))
  return holders
}

async function bindPhone(server: Server, kind: PhoneKind): Promise<Holder> {
  const userId = `bench-${randomUUID()}`
  const phone = await activate(server, kind, userId)
  return 'version' in phone ? holdPhone(userId, phone, await phone.createToken()) : holdPhoneV4(userId, phone)
}

async function copyPhones(server: Server, count: number, copy: CopyPhone): Promise<Holder[]> {
  const phone = await activate(server, '3.3', `bench-${randomUUID()}`)
  const copies = await copy(phone.state, await phone.createToken(), count)
  const { url, app } = server
  return copies.map(({ userId, state, token }) => holdPhone(userId, createPhone({ url, app, version: '3.3' }, state), token))
}

const openPhone = ({ url, app, appV4 }: Server, kind: PhoneKind): VirtualPhone | VirtualPhoneV4 =>
  kind === '3.3' ? createPhone({ url, app, version: kind }) : createPhoneV4({ url, app: appV4, algorithm: kind })

/** Carries out a whole activation: registers a user, exchanges keys, commits and, in 4.0, confirms. */
export async function activate<K extends PhoneKind>(server: Server, kind: K, userId: string): Promise<PhoneOf<K>> {
  const { bank } = server
  const { code } = readQrCode(expectOk(await bank.register(userId)))
  const phone = openPhone(server, kind)
  await phone.activate(code)
  expectOk(await bank.commit(userId))
  if (!('version' in phone)) await phone.exchange(phone.prepareConfirm(false))
  return phone as PhoneOf<K>
}

/** Prepares an activation/create: registers a user, and fetches a temporary key. */
async function prepareCreate(server: Server, kind: PhoneKind): Promise<Unit> {
  const { code } = readQrCode(expectOk(await server.bank.register(`bench-${randomUUID()}`)))
  return toUnit(server.url, await openPhone(server, kind).prepareActivation(code, { timestamp: Date.now() }))
}

function holdPhone(userId: string, phone: VirtualPhone, token: PhoneToken): Holder {
  let temporaryKey: TemporaryKey | undefined
  const { activationId } = phone.state
  return {
    userId,
    validation: () => phone.prepareValidation({ body: BODY }),
    status: async () => jsonRequest('/pa/v3/activation/status', { activationId, challenge: b64(random(16)) }),
    detail: () => phone.prepareDetail(token, { temporaryKey, timestamp: Date.now(), tokenTimestamp: Date.now() }),
    renew: async () => {
      temporaryKey = await phone.fetchTemporaryKey('activation')
    },
    keystore: () => requestOf('/pa/v3/keystore/create', phone.newTemporaryKeyRequest('application').json),
    operations: {
      list: () => phone.prepareTokenCall('list', token, {}, { timestamp: Date.now() }),
      authorize: (operation) => phone.prepareAuthorize(operation),
    },
  }
}

async function holdPhoneV4(userId: string, phone: VirtualPhoneV4): Promise<Holder> {
  const token = await phone.createToken()
  let temporaryKey = await phone.fetchTemporaryKey('activation')
  return {
    userId,
    validation: () => phone.prepareValidation({ body: BODY }),
    status: () =>
      phone.prepareEncrypted('/pa/v4/activation/status', 'activation', {
        temporaryKey,
        timestamp: Date.now(),
        plaintext: JSON.stringify({ challenge: b64(random(16)) }),
      }),
    detail: () => phone.prepareDetail(token, { temporaryKey, timestamp: Date.now(), tokenTimestamp: Date.now() }),
    renew: async () => {
      temporaryKey = await phone.fetchTemporaryKey('activation')
    },
    keystore: () => requestOf('/pa/v4/keystore/create', phone.newTemporaryKeyRequest('application').json),
    operations: undefined,
  }
}

/** Lets phones take turns: the next window begins with those that had none in the last. In a window, a phone belongs to one client. */
export const takeTurns =
  <H>(holders: readonly H[]) =>
  (prepare: (holder: H) => Promise<Unit> | Unit, before?: (holder: H) => Promise<void>): Work['prepare'] => {
    let next = 0
    return async (count, clients) => {
      const size = Math.min(holders.length, Math.max(clients, count))
      const taking = Array.from({ length: size }, (_, i) => at(holders, (next + i) % holders.length))
      next += size
      if (before !== undefined) for (const some of chunk(taking, BINDING_AT_ONCE)) await Promise.all(some.map(before))
      const lists: Unit[][] = Array.from({ length: clients }, () => [])
      for (let i = 0; i < count; i += 1) {
        const holder = at(taking, i % taking.length)
        at(lists, (i % taking.length) % clients).push(await prepare(holder))
      }
      return lists
    }
  }

function worksOfPhones(server: Server, kind: PhoneKind, holders: readonly Holder[]): Work[] {
  const { url, bank } = server
  const prepareEach = takeTurns(holders)
  const sending = (prepare: (holder: Holder) => Promise<HttpRequest> | HttpRequest) => async (holder: Holder) =>
    toUnit(url, await prepare(holder))
  const renew = (holder: Holder): Promise<void> => holder.renew()
  const works: Work[] = [
    { name: `${kind} validate`, prepare: prepareEach(sending(({ validation }) => validation())) },
    {
      name: `${kind} status`,
      prepare: prepareEach(
        sending(({ status }) => status()),
        kind === '3.3' ? undefined : renew,
      ),
    },
    {
      name: `${kind} detail`,
      prepare: prepareEach(
        sending(({ detail }) => detail()),
        renew,
      ),
    },
    { name: `${kind} temporary key`, prepare: prepareEach(sending(({ keystore }) => keystore())) },
    {
      name: `${kind} activation create`,
      prepare: async (count, clients) => {
        const units: Unit[] = []
        for (const some of split(count, Math.ceil(count / BINDING_AT_ONCE)))
          units.push(...(await Promise.all(Array.from({ length: some }, () => prepareCreate(server, kind)))))
        return chunk(units, Math.ceil(count / clients))
      },
    },
    {
      name: `${kind} activation`,
      prepare: async (count, clients) =>
        split(count, clients).map((some) =>
          Array.from({ length: some }, () => async () => void (await activate(server, kind, `bench-${randomUUID()}`))),
        ),
    },
  ]
  if (kind !== '3.3') return works
  /** The data that phones sign. All operations have the same data, because they have the same parameters. */
  let data: unknown
  const ask = async (userId: string): Promise<HttpReply> => expectOk(await bank.createOperation({ userId, ...PAYMENT }))
  return [
    ...works,
    {
      name: `${kind} operation list`,
      prepare: prepareEach(
        sending(({ operations }) => required(operations).list()),
        // Each user gets an operation to list, whatever ran before.
        async ({ userId }) => {
          const { json } = expectOk(
            await bank.call('GET', `/admin/applications/${APPLICATION}/operations?userId=${userId}&status=PENDING`),
          )
          const waiting = member(json, 'operations') as readonly unknown[]
          if (waiting.length === 0) await ask(userId)
        },
      ),
    },
    {
      name: `${kind} operation create`,
      // This work comes after the lists, because its waiting operations would make them longer.
      prepare: prepareEach(
        ({ userId }) =>
          async () =>
            void (await ask(userId)),
      ),
    },
    {
      name: `${kind} operation authorize`,
      prepare: prepareEach(async ({ userId, operations }) => {
        const id = member((await ask(userId)).json, 'operationId')
        data ??= await readData(url, required(operations), id)
        return toUnit(url, required(operations).authorize({ id, data }))
      }),
    },
  ]
}

async function readData(url: string, { list }: Operations, operationId: unknown): Promise<unknown> {
  const { json } = expectOk(await send(url, await list()))
  const waiting = member(json, 'responseObject') as readonly unknown[]
  return member(
    waiting.find((operation) => member(operation, 'id') === operationId),
    'data',
  )
}

/** The work /app/init, for an application with one pinned certificate. */
async function worksOfUtility({ url, bank }: Server): Promise<Work[]> {
  const pin = { domain: 'bank.example', fingerprint: b64(random(32)), expires: Math.trunc(Date.now() / 1000) + YEAR_SECONDS }
  expectOk(await bank.call('POST', `/admin/apps/${APPLICATION}/certificates/fingerprint`, pin))
  const prepare: Work['prepare'] = async (count, clients) =>
    split(count, clients).map((some) =>
      Array.from({ length: some }, () =>
        toUnit(url, {
          method: 'GET',
          path: `/app/init?appName=${APPLICATION}`,
          headers: { 'X-Cert-Pinning-Challenge': newChallenge() },
          body: new Uint8Array(0),
        }),
      ),
    )
  return [{ name: 'app init', prepare }]
}

export function toUnit(url: string, request: HttpRequest): Unit {
  const composed = composeRequest(url, request)
  return (client) => connectionOf(url, client).exchange(composed)
}

const jsonRequest = (path: string, requestObject: unknown): HttpRequest => requestOf(path, { requestObject })

const requestOf = (path: string, json: unknown): HttpRequest => ({
  method: 'POST',
  path,
  headers: { 'Content-Type': 'application/json' },
  body: Buffer.from(JSON.stringify(json)),
})

function expectOk(reply: HttpReply): HttpReply {
  if (reply.status !== 200) throw new Error(`HTTP ${reply.status} ${reply.text}`)
  return reply
}

/** Splits `count` into `parts` numbers that differ by one at most. */
const split = (count: number, parts: number): number[] =>
  Array.from({ length: parts }, (_, i) => Math.floor(count / parts) + Number(i < count % parts))

const chunk = <T>(all: readonly T[], size: number): T[][] =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, i) => all.slice(i * size, (i + 1) * size))

function at<T>(list: readonly T[], index: number): T {
  return required(list[index])
}

function required<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('a phone without operations, or a list without phones')
  return value
}

const APPLICATION = 'bench'
const PHONE_KINDS = ['3.3', ...PHONE_ALGORITHMS] as const satisfies readonly (PhoneVersion | PhoneAlgorithm)[]
const PHONE_WORKS = [
  'validate',
  'status',
  'detail',
  'temporary key',
  'activation create',
  'activation',
  'operation list',
  'operation create',
  'operation authorize',
]
const PAYMENT = {
  template: 'payment',
  parameters: { amount: '10.00', currency: 'EUR', iban: 'DE89370400440532013000' },
}
const BODY = JSON.stringify({ amount: '10.00', currency: 'EUR', iban: 'DE89370400440532013000', note: 'x'.repeat(100) })
const BINDING_AT_ONCE = 16
const YEAR_SECONDS = 31_536_000
