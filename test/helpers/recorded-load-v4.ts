// Runs phones of protocol 4.0 under the same load as those of 3.x (recorded-load.ts), and phones that upgrade, and checks both when the server
// is back.
import { expect } from 'vitest'
import type { Bank } from './bank.ts'
import { readApplication, readQrCode } from './bank.ts'
import { unblock } from './flood.ts'
import type { Prepared } from '../../phone/v3/state.ts'
import { PHONE_ALGORITHMS, v4CtrDataHash } from '../../phone/v4/crypto.ts'
import { v4KeysOf } from '../../phone/v4/state.ts'
import { isConnectionLost, type LoadOptions, type LoadResult, waitForServer } from './recorded-load.ts'
import { type UpgradingPhone, upgradeOf } from './upgrading-phone.ts'
import { createPhone } from '../../phone/v3/virtual-phone.ts'
import { createPhoneV4 } from '../../phone/v4/virtual-phone.ts'
import { type PhoneV4, readAppV4 } from './world-v4.ts'
import { expectOk } from './world.ts'

/** A phone, its user, and the counter that the server must have. */
export interface LoadPhoneV4 {
  readonly userId: string
  readonly phone: PhoneV4
  /** The phone's counter when the newest code was answered 200. */
  accepted: { readonly counter: number; readonly ctrData: Uint8Array }
}

/** Activates `count` new phones of new users, in every algorithm. */
export async function activatePhonesV4(admin: Bank, bank: Bank, applicationId: string, count: number): Promise<LoadPhoneV4[]> {
  const app = await readAppV4(admin, applicationId)
  const activate = async (index: number): Promise<LoadPhoneV4> => {
    const userId = `load-v4-${Date.now().toString(36)}-${index}`
    const phone = createPhoneV4({ url: bank.url, app, algorithm: PHONE_ALGORITHMS[index % 3] ?? 'EC_P384' })
    await phone.activate(readQrCode(expectOk(await bank.register(userId))).code)
    expectOk(await bank.commit(userId))
    await phone.exchange(phone.prepareConfirm(true))
    return { userId, phone, accepted: positionOf(phone) }
  }
  return Promise.all(Array.from({ length: count }, (_, index) => activate(index)))
}

/** Has every phone send one request after the other. A phone without an answer waits for the server, or for the end of the load. */
export async function runLoadV4(phones: readonly LoadPhoneV4[], options: LoadOptions): Promise<LoadResult> {
  const result: LoadResult = { recorded: 0, refused: [], lost: 0 }
  const { url, isOver, record } = options
  const run = async (load: LoadPhoneV4, index: number): Promise<void> => {
    const phone = goOn(load.phone, url)
    for (let turn = index * 5; !isOver(); turn += 1) {
      try {
        const { request, use } = await prepareOne(phone, turn)
        const reply = await phone.send(request)
        if (reply.status === 200) {
          use?.(request.open(reply) as Uint8Array)
          record(request)
          result.recorded += 1
          load.accepted = positionOf(phone)
        } else if (reply.status === 503) result.lost += 1
        else result.refused.push(`${reply.status} ${request.path} ${reply.text}`)
      } catch (error) {
        if (!isConnectionLost(error)) throw error
        result.lost += 1
        await waitForServer(url, isOver)
      }
    }
  }
  await Promise.all(phones.map(run))
  return result
}

interface Planned {
  readonly request: Prepared<unknown>
  /** Gives the phone a new key. It is not called when the answer is lost. */
  readonly use?: (key: Uint8Array) => void
}

async function prepareOne(phone: PhoneV4, turn: number): Promise<Planned> {
  switch (turn % 9) {
    case 1:
      return { request: await phone.prepareTokenCreate() }
    case 3:
      return { request: await phone.preparePasswordChange(), use: (knowledge) => phone.adopt({ knowledge }) }
    case 5:
      return { request: await phone.prepareBiometryAdd(), use: (biometry) => phone.adopt({ biometry }) }
    case 7:
      return { request: await phone.prepareVaultUnlock('KDK_APP_VAULT_2FA') }
    case 8:
      return { request: await phone.prepareEncrypted('/pa/v4/activation/status', 'activation') }
    default:
      return { request: phone.prepareValidation({ body: `pay ${turn}`, factors: FACTORS[turn % 3] ?? 'possession' }) }
  }
}

/** Expects that the server's counter is that of the last accepted code, or of the code that was under way. */
export async function expectNothingForgottenV4(url: string, phones: readonly LoadPhoneV4[]): Promise<void> {
  for (const { phone, accepted } of phones) {
    const { state, failedAttempts, ctrByte, ctrDataHash } = await goOn(phone, url).readStatus()
    expect({ state, failedAttempts }).toEqual({ state: 3, failedAttempts: 0 })
    const hashOf = (ctrData: Uint8Array) => Buffer.from(v4CtrDataHash(v4KeysOf(phone.state), ctrData)).toString('hex')
    const possible = [accepted, positionOf(phone)].map(({ counter, ctrData }) => ({
      byte: counter & 0xff,
      hash: hashOf(ctrData),
    }))
    expect(possible).toContainEqual({ byte: ctrByte, hash: Buffer.from(ctrDataHash).toString('hex') })
  }
}

/** Expects that every factor works with the keys whose answers arrived, and that issued tokens exist. Replays may have blocked activations. */
export async function expectUsableV4(bank: Bank, phones: readonly LoadPhoneV4[]): Promise<void> {
  for (const load of phones) {
    await unblock({ bank }, load.userId)
    const phone = goOn(load.phone, bank.url)
    for (const factors of FACTORS) await phone.exchange(phone.prepareValidation({ factors }))
    load.accepted = positionOf(phone)
    const token = phone.state.tokens.at(-1)
    if (token) await phone.exchange(await phone.prepareDetail(token))
  }
}

/** Activates `count` phones of 3.3 for upgrades. */
export async function openUpgrades(admin: Bank, bank: Bank, applicationId: string, count: number): Promise<UpgradingPhone[]> {
  const app = readApplication(await admin.call('GET', `/admin/application?id=${applicationId}`))
  const appV4 = await readAppV4(admin, applicationId)
  const open = async (index: number): Promise<UpgradingPhone> => {
    const userId = `upgrade-${Date.now().toString(36)}-${index}`
    const old = createPhone({ url: bank.url, app, version: '3.3' })
    await old.activate(readQrCode(expectOk(await bank.register(userId))).code)
    expectOk(await bank.commit(userId))
    const algorithm = PHONE_ALGORITHMS[index % 3] ?? 'EC_P384'
    return upgradeOf({ newPhone: () => createPhoneV4({ url: bank.url, app: appV4, algorithm }) }, { userId, old }, algorithm)
  }
  return Promise.all(Array.from({ length: count }, (_, index) => open(index)))
}

/** Starts each upgrade a random number of times, then confirms it and goes on in 4.0, until the end of the load or the loss of the server. */
export async function runUpgrades(upgrades: readonly UpgradingPhone[], isOver: () => boolean): Promise<void> {
  const run = async ({ phone, prepareStart }: UpgradingPhone): Promise<void> => {
    for (let starts = 1 + Math.floor(Math.random() * 12); starts > 0 && !isOver(); starts -= 1) {
      await phone.exchange(await prepareStart({ enableBiometry: true }))
    }
    if (!isOver()) await phone.exchange(phone.prepareUpgradeConfirm())
    while (!isOver()) await phone.exchange(phone.prepareValidation())
  }
  const runs = upgrades.map((upgrade) =>
    run(upgrade).catch((error: unknown) => {
      if (!isConnectionLost(error)) throw error
    }),
  )
  await Promise.all(runs)
}

/** Expects that each is a working activation of 3.3 or 4.0, and finishes its upgrade as a phone does (v4 §10.3). */
export async function finishUpgrades(bank: Bank, upgrades: readonly UpgradingPhone[]): Promise<void> {
  for (const { old, phone: mobile, prepareStart } of upgrades) {
    const url = bank.url
    const phone = goOn(mobile, url)
    // The phone cannot read a status of 4.0 without keys, or with keys of a start that was followed by another one whose answer was lost.
    const status = phone.state.keys && (await phone.readStatus().catch(() => undefined))
    const version = status?.currentVersion ?? 3
    const isOldGood = (await old.send(old.prepareValidation(), url)).status === 200
    expect(isOldGood).toBe(version === 3)
    if (version === 3) {
      const start = await prepareStart({ enableBiometry: true }, phone)
      start.open(await phone.send(start, url))
      await phone.exchange(phone.prepareUpgradeConfirm())
    }
    for (const factors of FACTORS) await phone.exchange(phone.prepareValidation({ factors }))
    expect(await phone.readStatus()).toMatchObject({ state: 3, currentVersion: 4, distance: 0, isDeadlocked: false })
  }
}

/** The same phone at the present address of the server. */
const goOn = (phone: PhoneV4, url: string): PhoneV4 => createPhoneV4({ ...phone.options, url }, phone.state)
const positionOf = ({ state: { counter, ctrData } }: PhoneV4) => ({ counter, ctrData })
const FACTORS = ['possession', 'possession_knowledge', 'possession_biometry'] as const
