// Runs phones that sign one request after the other. A file has each request that was answered 200, durably, before its phone goes on.
// So whatever happens to the server, it must refuse every request of the file when it is sent again.
import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Bank } from './bank.ts'
import { createBank, readApplication, readQrCode } from './bank.ts'
import type { HttpReply, HttpRequest } from '../../phone/http.ts'
import { member, NO_BODY, send } from '../../phone/http.ts'
import { PHONE_VERSIONS } from './phone-versions.ts'
import type { Prepared } from '../../phone/v3/state.ts'
import type { VirtualPhone } from '../../phone/v3/virtual-phone.ts'
import { createPhone } from '../../phone/v3/virtual-phone.ts'

export interface Recorder {
  readonly record: (request: HttpRequest) => void
  readonly close: () => void
}

/** Appends to the file, one JSON object a line, bodies in Base64; `record` returns when the line is durable. */
export function openRecorder(path: string): Recorder {
  const file = openSync(path, 'a', 0o600)
  return {
    record: ({ method, path: requestPath, headers, body }) => {
      const line = JSON.stringify({ method, path: requestPath, headers, body: Buffer.from(body).toString('base64') })
      writeSync(file, `${line}\n`)
      fsyncSync(file)
    },
    close: () => closeSync(file),
  }
}

/** The requests of a file, oldest first. An unfinished last line does not count. */
export function readRecords(path: string): HttpRequest[] {
  const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1)
  return lines.map((line) => {
    const { body, ...request } = JSON.parse(line) as Omit<HttpRequest, 'body'> & { body: string }
    return { ...request, body: Buffer.from(body, 'base64') }
  })
}

/** A phone, its user, and the counter that the server must have. */
export interface LoadPhone {
  readonly userId: string
  readonly phone: VirtualPhone
  /** The number of codes made so far, with those that got no answer. */
  codesMade: number
  /** The value of codesMade, and the phone's counter, when the newest code was answered 200. */
  codesAccepted: number
  ctrDataAccepted: Uint8Array
}

/** Makes a bank's client for an application, with an administrator's credential (`user:password`). */
export async function openApplication(
  url: string,
  admin: string,
  applicationId: string,
): Promise<{ bank: Bank; close: () => Promise<void> }> {
  const administrator = createBank(url, admin)
  const known = await administrator.call('GET', `/admin/application?id=${encodeURIComponent(applicationId)}`)
  if (known.status !== 200) readApplication(await administrator.createApplication(applicationId))
  const username = `load-${process.pid}-${Date.now()}`
  const user = { username, role: 'integration', application: applicationId, expiresAt: Date.now() + DAY_MS }
  const created = expectStatus200(await administrator.call('POST', '/admin/users', user))
  const bank = administrator.as(`${username}:${String(member(created.json, 'password'))}`)
  const close = async (): Promise<void> => void (await administrator.call('DELETE', `/admin/users/${username}`))
  return { bank, close }
}

/** Activates `count` new phones of new users. */
export async function activatePhones(admin: Bank, bank: Bank, applicationId: string, count: number): Promise<LoadPhone[]> {
  const app = readApplication(await admin.call('GET', `/admin/application?id=${encodeURIComponent(applicationId)}`))
  const run = Date.now().toString(36)
  const activate = async (index: number): Promise<LoadPhone> => {
    const userId = `load-${run}-${index}`
    const { code } = readQrCode(expectStatus200(await bank.register(userId)))
    const phone = createPhone({ url: bank.url, app, version: versionOf(index) })
    await phone.activate(code)
    expectStatus200(await bank.commit(userId))
    return { userId, phone, codesMade: 0, codesAccepted: 0, ctrDataAccepted: phone.state.ctrData }
  }
  return Promise.all(Array.from({ length: count }, (_, index) => activate(index)))
}

const versionOf = (index: number) => PHONE_VERSIONS[index % PHONE_VERSIONS.length] ?? '3.0'

export interface LoadOptions {
  readonly url: string
  /** Called before each request. */
  readonly isOver: () => boolean
  /** Called for each request answered 200, before its phone goes on. */
  readonly record: (request: HttpRequest) => void
}

export interface LoadResult {
  recorded: number
  /** Answers other than 200 to a right code, as `STATUS body`. */
  readonly refused: string[]
  /** The number of requests without an answer or with 503, which the server may have served or not. */
  lost: number
}

/** Has every phone send one request after the other. A phone without an answer waits for the server, or for the end of the load. */
export async function runLoad(phones: readonly LoadPhone[], options: LoadOptions): Promise<LoadResult> {
  const result: LoadResult = { recorded: 0, refused: [], lost: 0 }
  await Promise.all(phones.map((phone, index) => runPhone(phone, index, options, result)))
  return result
}

async function runPhone(load: LoadPhone, index: number, { url, isOver, record }: LoadOptions, result: LoadResult): Promise<void> {
  // A phone keeps the version of its activation, because the server accepts no older one.
  const phone = load.phone.speaking({ url, version: versionOf(index) })
  for (let turn = index; !isOver(); turn++) {
    const answered = await sendOne(load, phone, turn)
    if (answered === undefined || answered.reply.status === 503) {
      result.lost += 1
      // Each code without an answer may move the phone one step further ahead, and the look-ahead of the server is limited.
      await waitForServer(url, isOver)
    } else if (answered.reply.status === 200) {
      record(answered.request)
      result.recorded += 1
      load.codesAccepted = load.codesMade
      load.ctrDataAccepted = load.phone.state.ctrData
    } else result.refused.push(`${answered.reply.status} ${answered.reply.text}`)
  }
}

/** Sends one request; undefined when the connection broke. */
async function sendOne(
  load: LoadPhone,
  phone: VirtualPhone,
  turn: number,
): Promise<{ request: Prepared<unknown>; reply: HttpReply } | undefined> {
  const before = phone.state.ctrData
  try {
    const request = await prepareOne(phone, turn)
    const reply = await phone.send(request)
    if (reply.status === 200) request.open(reply)
    return { request, reply }
  } catch (error) {
    if (isConnectionLost(error)) return undefined
    throw error
  } finally {
    if (phone.state.ctrData !== before) load.codesMade += 1
  }
}

/** Prepares a request: mostly a signature alone, now and then a token or a vault unlock. */
async function prepareOne(phone: VirtualPhone, turn: number): Promise<Prepared<unknown>> {
  switch (turn % 11) {
    case 4:
      return phone.prepareTokenCreate()
    case 7:
      return phone.prepareVaultUnlock()
    default:
      return phone.prepareValidation({ body: `pay ${turn}`, factors: turn % 3 === 0 ? 'possession' : 'possession_knowledge' })
  }
}

/** Resolves when the server is ready, or at the end of the load. */
export async function waitForServer(url: string, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    const request = { method: 'GET', path: '/health/ready', headers: {}, body: NO_BODY }
    const status = await send(url, request).then(
      (reply) => reply.status,
      () => 0,
    )
    if (status === 200) return
    await sleep(RETRY_MS)
  }
}

export interface ReplayResult {
  readonly replayed: number
  /** Answers 401; at the vault 400 or 401. */
  readonly refused: number
  readonly accepted: readonly HttpRequest[]
  /** Other answers, as `STATUS method path`. They prove nothing. */
  readonly otherwise: readonly string[]
}

/**
 * Sends every request again, one after the other, the newest first. A server forgets the newest codes if any, and wrong codes with two factors
 * soon block the activation, after which no code is accepted.
 */
export async function replay(url: string, requests: readonly HttpRequest[]): Promise<ReplayResult> {
  const accepted: HttpRequest[] = []
  const otherwise: string[] = []
  let refused = 0
  for (const request of requests.toReversed()) {
    const { status } = await send(url, request)
    if (status === 200) accepted.push(request)
    else if (status === 401 || (status === 400 && opensFirst(request))) refused += 1
    else otherwise.push(`${status} ${request.method} ${request.path}`)
  }
  return { replayed: requests.length, refused, accepted, otherwise }
}

/** Whether an endpoint opens the envelope before it checks a code. Such an endpoint refuses a used envelope with 400. */
const opensFirst = ({ path }: HttpRequest): boolean =>
  ['/vault/unlock', '/activation/rename', '/activation/status', '/user/info'].some((end) => path.endsWith(end))

/** Whether a request got no answer, or the answer 503. */
export const isConnectionLost = (error: unknown): boolean =>
  error instanceof Error &&
  (('code' in error && LOST_CODES.includes(String(error.code))) || error.message.startsWith('HTTP 503 '))

function expectStatus200(reply: HttpReply): HttpReply {
  if (reply.status !== 200) throw new Error(`HTTP ${reply.status} ${reply.text}`)
  return reply
}

const LOST_CODES = ['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE']
const RETRY_MS = 200
const DAY_MS = 86_400_000
