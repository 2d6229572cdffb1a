// A server that is killed in the middle of a load has forgotten nothing that it answered with 200 (ARCHITECTURE, "Invariants"; v3 §9.1, §10.5).
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import type { Bank } from '../helpers/bank.ts'
import { createBank, readQrCode } from '../helpers/bank.ts'
import { STATE } from '../helpers/expectations.ts'
import { member } from '../../phone/http.ts'
import { ctrDataHash } from '../../phone/v3/crypto.ts'
import { keysOf } from '../../phone/v3/state.ts'
import type { Installation, PawlProcess } from '../helpers/process.ts'
import { ADMIN_PASSWORD, createInstallation, DATABASE_KIND, endEverything, startPawl } from '../helpers/process.ts'
import type { LoadOptions, LoadPhone, LoadResult } from '../helpers/recorded-load.ts'
import { activatePhones, openApplication, openRecorder, readRecords, replay, runLoad } from '../helpers/recorded-load.ts'
import type { LoadPhoneV4 } from '../helpers/recorded-load-v4.ts'
import {
  activatePhonesV4,
  expectNothingForgottenV4,
  expectUsableV4,
  finishUpgrades,
  openUpgrades,
  runLoadV4,
  runUpgrades,
} from '../helpers/recorded-load-v4.ts'
import type { UpgradingPhone } from '../helpers/upgrading-phone.ts'

const KILLS = 2
const PHONES = 6
const PHONES_V4 = 3
const UPGRADES = 3
// How long to wait for what is slow; no load lasts that long.
const LOAD_MS_MAX = 30_000
const FILE_TIMEOUT_MS = 300_000
const APPLICATION = 'load'
const ADMIN = `admin:${ADMIN_PASSWORD}`

afterEach(endEverything)

describe.each([DATABASE_KIND])('killed on %s', (kind) => {
  test(
    'nothing answered 200 is accepted again, counters are where the phones left them, and the phones go on and upgrade',
    async () => {
      const installation = await createInstallation(kind)
      let server = await start(installation)
      const { bank } = await openApplication(server.url, ADMIN, APPLICATION)
      const phones = await activatePhones(createBank(server.url, ADMIN), bank, APPLICATION, PHONES)
      const phonesV4 = await activatePhonesV4(createBank(server.url, ADMIN), bank, APPLICATION, PHONES_V4)
      let lostInAll = 0
      // Answers that came together may leave nothing under way at one of the kills.
      for (let round = 0; round < KILLS || (lostInAll === 0 && round < 6); round++) {
        const file = join(installation.directory, `record-${round}`)
        const before = bank.as(bank.credential, server.url)
        const upgrades = await openUpgrades(createBank(server.url, ADMIN), before, APPLICATION, UPGRADES)
        const registered = new Map<string, string>()
        const registrations = registerUsers(before, registered)
        const { refused, lost } = await loadAndKill(server, { phones, phonesV4, upgrades, registered }, file)
        await registrations
        expect(refused).toEqual([])
        lostInAll += lost
        server = await start(installation)
        const after = bank.as(bank.credential, server.url)
        await expectNothingForgotten(server.url, phones)
        await expectNothingForgottenV4(server.url, phonesV4)
        await expectAllRefused(server.url, file)
        // A replay that moved a counter was accepted, whatever its answer was.
        await expectCounters(server.url, phones)
        await expectRegistered(after, registered)
        await expectUsable(after, phones)
        await expectUsableV4(after, phonesV4)
        await finishUpgrades(after, upgrades)
      }
      expect(lostInAll, 'requests that were under way').toBeGreaterThan(0)
    },
    FILE_TIMEOUT_MS,
  )
})

test('a request that was granted and forgotten would be found', async () => {
  const installation = await createInstallation(DATABASE_KIND)
  const { url } = await start(installation)
  const file = join(installation.directory, 'genuine')
  await recordUnsent(url, file)
  expect(await replay(url, readRecords(file))).toMatchObject({ replayed: 1, refused: 0, accepted: [{ method: 'POST' }] })
})

const start = (installation: Installation, env = {}): Promise<PawlProcess> =>
  startPawl(installation.env, { PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD, ...env })

interface Load {
  readonly phones: readonly LoadPhone[]
  readonly phonesV4: readonly LoadPhoneV4[]
  readonly upgrades: readonly UpgradingPhone[]
  /** Users whom the server has registered so far. */
  readonly registered: ReadonlyMap<string, string>
}

/** Kills the server at the moment one of the phones gets an answer; the others wait for theirs. */
async function loadAndKill(server: PawlProcess, load: Load, file: string): Promise<Pick<LoadResult, 'refused' | 'lost'>> {
  const recorder = openRecorder(file)
  const killAfter = 40 + Math.floor(Math.random() * 40)
  const end = Date.now() + LOAD_MS_MAX
  let recorded = 0
  let isKilled = false
  const kill = (): void => {
    isKilled = true
    server.send('SIGKILL')
  }
  const timer = setTimeout(kill, LOAD_MS_MAX / 2)
  const options: LoadOptions = {
    url: server.url,
    isOver: () => isKilled || Date.now() >= end,
    record: (request) => {
      recorder.record(request)
      recorded += 1
      if (!isKilled && recorded >= killAfter && load.registered.size > 0) kill()
    },
  }
  const [old, recent] = await Promise.all([
    runLoad(load.phones, options),
    runLoadV4(load.phonesV4, options),
    runUpgrades(load.upgrades, options.isOver),
  ])
  clearTimeout(timer)
  recorder.close()
  expect(await server.ended).toMatchObject({ code: null, signal: 'SIGKILL' })
  return { refused: [...old.refused, ...recent.refused], lost: old.lost + recent.lost }
}

/** The server stands where the last accepted code put it, or behind the one that was under way; 3.0 hides the counter, so all ask as 3.1. */
async function expectNothingForgotten(url: string, phones: readonly LoadPhone[]): Promise<void> {
  for (const { state, failedAttempts } of await expectCounters(url, phones)) {
    expect({ state, failedAttempts }).toEqual({ state: STATE.ACTIVE, failedAttempts: 0 })
  }
}

/** The counters alone, of blocked activations too; gives the status of each phone. */
async function expectCounters(url: string, phones: readonly LoadPhone[]) {
  const statuses = await Promise.all(phones.map(({ phone }) => phone.readStatus({ withChallenge: true, url })))
  for (const [index, { phone, codesMade, codesAccepted, ctrDataAccepted }] of phones.entries()) {
    const { ctrByte, ctrDataHash: hash } = statuses[index] as (typeof statuses)[number]
    const keys = keysOf(phone.state)
    const possible = [
      { steps: codesAccepted & 0xff, hash: hex(ctrDataHash(keys, ctrDataAccepted)) },
      { steps: codesMade & 0xff, hash: hex(ctrDataHash(keys, phone.state.ctrData)) },
    ]
    expect(possible).toContainEqual({ steps: ctrByte, hash: hex(hash) })
    expect(codesMade - codesAccepted).toBeLessThanOrEqual(1)
  }
  return statuses
}

async function expectAllRefused(url: string, file: string): Promise<void> {
  const records = readRecords(file)
  expect(records.length).toBeGreaterThan(0)
  expect(await replay(url, records)).toEqual({ replayed: records.length, refused: records.length, accepted: [], otherwise: [] })
}

/** The replays have blocked nobody, and tokens handed out before the kill are there. */
async function expectUsable(bank: Bank, phones: readonly LoadPhone[]): Promise<void> {
  for (const load of phones) {
    const { userId } = load
    expect(member((await bank.view(userId)).json, 'registration')).toBe('ACTIVE')
    const phone = load.phone.speaking({ url: bank.url })
    expect((await phone.send(phone.prepareValidation())).status).toBe(200)
    load.codesMade += 1
    load.codesAccepted = load.codesMade
    load.ctrDataAccepted = phone.state.ctrData
    const token = phone.state.tokens.at(-1)
    if (token) expect((await phone.send(await phone.prepareDetail(token))).status).toBe(200)
  }
}

/** Registers users until the server is gone, and notes what it answered with 200, by user. */
async function registerUsers(bank: Bank, registered: Map<string, string>): Promise<void> {
  const run = Date.now().toString(36)
  for (let i = 0; i < 1_000; i++) {
    const userId = `bank-${run}-${i}`
    const reply = await bank.register(userId).catch(() => undefined)
    if (reply === undefined) return
    readQrCode(reply)
    registered.set(userId, String(member(reply.json, 'activationQrCodeData')))
  }
}

async function expectRegistered(bank: Bank, registered: ReadonlyMap<string, string>): Promise<void> {
  expect(registered.size).toBeGreaterThan(0)
  for (const [userId, activationQrCodeData] of [...registered].slice(-10)) {
    expect((await bank.view(userId)).json).toEqual({ registration: 'CREATED', activationQrCodeData })
  }
}

/** A right request that the server has never seen, as if it had been granted and forgotten. */
async function recordUnsent(url: string, file: string): Promise<void> {
  const { bank } = await openApplication(url, ADMIN, APPLICATION)
  const [load] = await activatePhones(createBank(url, ADMIN), bank, APPLICATION, 1)
  const recorder = openRecorder(file)
  if (load) recorder.record(load.phone.prepareValidation())
  recorder.close()
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')
