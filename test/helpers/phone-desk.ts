// Runs `pawl phone` in this process, on phones of a world's application, each in a file of its own.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PNG } from 'pngjs'
import { encodeQR } from 'qr'
import { expect } from 'vitest'
import { member } from '../../phone/http.ts'
import { type CliEnd, runCli } from './cli.ts'
import { expectOk, startWorld, type World } from './world.ts'

export const PASSWORD = 'a good one'

export interface PhoneDesk {
  readonly world: World
  /** The configuration text that is compiled into the app. */
  readonly sdkConfig: string
  /** The directory of the files of phones and pictures. */
  readonly directory: string
  /** Runs `pawl phone` with these words on this file. */
  readonly phone: (store: string, args: readonly string[], env?: Readonly<Record<string, string>>) => Promise<CliEnd>
  /** Registers a user, and returns the text of the QR code. */
  readonly register: (userId: string) => Promise<string>
  /** Binds a phone of a new user in a new file, and commits. `show` makes the words that name the code. Returns the user. */
  readonly bindPhone: (store: string, more?: readonly string[], show?: (qrText: string) => readonly string[]) => Promise<string>
  /** Asks for a payment and returns the operation. */
  readonly ask: (userId: string, amount?: string) => Promise<string>
  readonly statusOf: (operationId: string) => Promise<unknown>
  readonly close: () => Promise<void>
}

/** The output of a command, which must have succeeded and printed nothing to stderr. */
export async function ok(end: Promise<CliEnd>): Promise<string> {
  const { code, stdout, stderr } = await end
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return stdout
}

/** Starts a world whose phones are those of the command line. */
export async function openPhoneDesk(): Promise<PhoneDesk> {
  const world = await startWorld()
  const { bank } = world
  const directory = mkdtempSync(join(tmpdir(), 'pawl-phone-'))
  const answer = expectOk(await bank.call('GET', '/admin/applications/test-app'))
  const sdkConfig = String(member(answer.json, 'responseObject', 'mobileSdkConfig'))
  const phone: PhoneDesk['phone'] = (store, args, env = {}) =>
    runCli(['phone', ...args], { PAWL_PHONES: join(directory, store), PAWL_PHONE_PASSWORD: PASSWORD, ...env })
  const register = async (userId: string): Promise<string> =>
    String(member(expectOk(await bank.register(userId)).json, 'activationQrCodeData'))
  return {
    world,
    sdkConfig,
    directory,
    phone,
    register,
    bindPhone: async (store, more = [], show = (text) => [text]) => {
      const userId = `user of ${store}`
      const words = show(await register(userId))
      const app = ['--name', 'mine', '--phones-url', world.url, '--sdk-config', sdkConfig, '--insecure-store', '--json']
      const bound = JSON.parse(await ok(phone(store, ['bind', ...words, ...app, ...more]))) as Record<string, unknown>
      expect(member(expectOk(await bank.view(userId)).json, 'activationFingerprint')).toBe(bound['fingerprint'])
      expectOk(await bank.commit(userId))
      return userId
    },
    ask: async (userId, amount = '10.00') => {
      const parameters = { amount, currency: 'EUR', iban: 'DE89370400440532013000' }
      const created = expectOk(await bank.createOperation({ userId, template: 'payment', parameters }))
      return String(member(created.json, 'operationId'))
    },
    statusOf: async (operationId) => member((await bank.readOperation(operationId)).json, 'status'),
    close: async () => {
      await world.close()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** Draws a picture of a QR code with four pixels a module, or an empty picture. */
export function drawPicture(text: string | undefined): Uint8Array {
  const modules = text === undefined ? [] : encodeQR(text, 'raw', { ecc: 'low', border: 4 })
  const size = text === undefined ? 40 : modules.length
  const picture = new PNG({ width: size * 4, height: size * 4 })
  for (let y = 0; y < picture.height; y += 1) {
    for (let x = 0; x < picture.width; x += 1) {
      const shade = modules[Math.floor(y / 4)]?.[Math.floor(x / 4)] === true ? 0 : 255
      picture.data.set([shade, shade, shade, 255], (y * picture.width + x) * 4)
    }
  }
  return PNG.sync.write(picture)
}
