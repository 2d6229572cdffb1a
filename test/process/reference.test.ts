// One proof of a phone over all ways to have it judged, on two processes: the doors, the back-end API of the reference, and the phone's own paths
// (cloud §12, §13, §15). It is good once.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { headerName } from '../../phone/header.ts'
import type { HttpRequest } from '../../phone/http.ts'
import { bytesOf } from '../../phone/v3/crypto.ts'
import { serverUrl } from '../helpers/app.ts'
import type { Bank } from '../helpers/bank.ts'
import { callDoor, createCaller, PHONE_ADDRESS, readVerdict, verdictOf } from '../helpers/door.ts'
import { openAt, type SentEnvelope, sealForBank, signForBank } from '../helpers/door-envelope.ts'
import { readCounters } from '../helpers/expectations.ts'
import { ADMIN_PASSWORD, createInstallation, endEverything, startPawl } from '../helpers/process.ts'
import { askReference, callReference, codeOf, tokenOf, verifyAt } from '../helpers/reference.ts'
import { expectOk, openWorld, type World } from '../helpers/world.ts'
import { openPhonesV4, type PhonesV4 } from '../helpers/world-v4.ts'

const TIMES = 50

describe.skipIf(serverUrl() === undefined)('over two processes and all ways', () => {
  let world: World
  let v4: PhonesV4
  let urls: readonly string[]
  let banks: readonly Bank[]
  beforeAll(async () => {
    const { env } = await createInstallation('postgresql')
    const settings = { PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD, PAWL_REFERENCE_API: 'true', PAWL_CODE_FAILURES_PER_MINUTE: '1000' }
    const servers = [await startPawl(env, settings), await startPawl(env, settings)]
    urls = servers.map(({ url }) => url)
    world = await openWorld({
      urls,
      admin: `admin:${ADMIN_PASSWORD}`,
      advance: () => {
        throw new Error('the clock of a process is not to be moved')
      },
      close: async () => undefined,
    })
    v4 = await openPhonesV4(world)
    const bank = await createCaller(world.bank, 'web-tier', 'verification', world.applicationId)
    expectOk(await world.bank.call('PATCH', '/admin/users/web-tier', { rights: ['keys:derive'] }))
    banks = urls.map((url) => bank.as(bank.credential, url))
  })
  afterAll(endEverything)

  /** How many of fifty at once were told that it is good: the ways take turns, and each way goes to both processes. */
  async function countGood(ways: readonly ((bank: Bank, place: number) => Promise<boolean>)[]): Promise<number> {
    const tries = Array.from({ length: TIMES }, async (_, i) => {
      const place = Math.floor(i / ways.length) % banks.length
      return ways[i % ways.length]?.(banks[place] as Bank, place)
    })
    return (await Promise.all(tries)).filter(Boolean).length
  }

  /** The signed request whose plaintext is in an envelope. */
  const plainOf = ({ body }: SentEnvelope, plaintext: string): HttpRequest => ({
    method: 'POST',
    path: '/bank',
    headers: { 'X-PowerAuth-Authorization': String(body['authorization']) },
    body: bytesOf(plaintext),
  })

  test.each(['3.1', '3.3', '4.0'] as const)("a code of %s for the bank's endpoint, in ten rounds", async (version) => {
    const { phone } = version === '4.0' ? await v4.activePhone('EC_P384') : await world.activePhone(version)
    for (let round = 0; round < 10; round += 1) {
      const plaintext = `{"round":${round}}`
      const sent = await signForBank(phone, plaintext)
      const request = plainOf(sent, plaintext)
      const good = await countGood([
        async (bank) => (await verdictOf(bank, request))['isValid'] === true,
        async (bank) => (await verifyAt(bank, 'v3', request))['signatureValid'] === true,
        async (bank) => (await verifyAt(bank, 'v4', request))['authenticationValid'] === true,
        async (bank) => ((await openAt(bank, sent))['verdict'] as { isValid?: boolean } | undefined)?.isValid === true,
      ])
      expect(good, `round ${round}`).toBe(1)
    }
    expect(await phone.readStatus()).toMatchObject({ failedAttempts: 0 })
  })

  test('a code for a path of pawl, there and at the back-end API of the reference', async () => {
    const { phone } = await world.activePhone('3.3')
    const resourceId = '/pa/signature/validate'
    for (let round = 0; round < 5; round += 1) {
      const request = phone.prepareValidation()
      const good = await countGood([
        async (_, place) => (await phone.send(request, urls[place])).status === 200,
        async (bank) =>
          (await askReference(bank, 'v3', 'signature/verify', codeOf('v3', request, { resourceId })))['signatureValid'] === true,
      ])
      expect(good, `round ${round}`).toBe(1)
    }
    expect(await readCounters(phone)).toMatchObject({ failedAttempts: 0 })
  })

  test('a header of a token', async () => {
    const { phone } = await world.activePhone('3.3')
    const token = await phone.createToken('possession')
    for (let round = 0; round < 5; round += 1) {
      const header = phone.tokenHeader(token, await phone.serverTime())[headerName('PowerAuth', 'Token')] ?? ''
      const good = await countGood([
        async (bank) =>
          readVerdict(await callDoor(bank, 'token', { token: header, client: { address: PHONE_ADDRESS } }))['isValid'] === true,
        async (bank) => (await askReference(bank, 'v3', 'token/validate', tokenOf(header)))['tokenValid'] === true,
        async (bank) => (await askReference(bank, 'v4', 'token/validate', tokenOf(header)))['tokenValid'] === true,
      ])
      expect(good, `round ${round}`).toBe(1)
    }
  })

  test('an envelope: one opens it, or one is given its keys', async () => {
    const { phone } = await world.activePhone('3.3')
    for (let round = 0; round < 5; round += 1) {
      const sent = await sealForBank(phone, '{}')
      const { temporaryKeyId, ephemeralPublicKey, nonce, timestamp } = sent.body['envelope'] as Readonly<Record<string, unknown>>
      const asked = {
        activationId: phone.state.activationId,
        applicationKey: phone.options.app.applicationKey,
        protocolVersion: '3.3',
        temporaryKeyId,
        ephemeralPublicKey,
        nonce,
        timestamp,
      }
      const good = await countGood([
        async (bank) => (await openAt(bank, sent)).isOpened,
        async (bank) => (await callReference(bank, 'v3', 'ecies/decryptor', asked)).status === 200,
      ])
      expect(good, `round ${round}`).toBe(1)
    }
  })
})
