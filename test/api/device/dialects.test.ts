// The two spellings of protocol headers, and the wording that follows them (v3 §1.1).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectError, expectRefused, expectUntouched } from '../../helpers/expectations.ts'
import { b64, random } from '../../../phone/v3/crypto.ts'
import { PHONE_VERSIONS } from '../../helpers/phone-versions.ts'
import type { EnvelopeJson } from '../../../phone/v3/envelope.ts'
import { withFlippedMember, withHeader, withPair } from '../../../phone/header.ts'
import type { World } from '../../helpers/world.ts'
import { expectOk, startWorld } from '../../helpers/world.ts'

const wrongKeys = { knowledge: random(16) }

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())

describe.each(PHONE_VERSIONS)('a phone that speaks X-Svc-* in %s', (version) => {
  test.each(['Svc', 'PowerAuth'])('is served on every endpoint under the scheme %s', async (scheme) => {
    const { phone } = await world.activePhone(version, { dialect: 'Svc', scheme })
    for (const factors of ['possession', 'possession_knowledge', 'possession_biometry'] as const) {
      expectOk(await phone.send(phone.prepareValidation({ factors, body: 'x' })))
    }
    const token = await phone.createToken()
    await phone.exchange(await phone.prepareDetail(token))
    await phone.exchange(await phone.prepareRename('renamed'))
    await phone.exchange(await phone.prepareVaultUnlock())
    await phone.exchange(await phone.prepareUserInfo())
    expectOk(await phone.send(phone.prepareTokenRemove(token.id)))
    expectOk(await phone.send(phone.prepareRemove()))
  })

  test('reads refusals in its own words', async () => {
    const { phone } = await world.activePhone(version, { dialect: 'Svc' })
    const alterEnvelope = (envelope: EnvelopeJson) => ({ ...envelope, mac: b64(random(32)) })
    expectRefused(await phone.send(phone.prepareValidation({ wrongKeys })), 'signature', 'Svc')
    expectRefused(await phone.send(withPair(phone.prepareValidation(), 'pa_nonce', 'AAAA')), 'signature', 'Svc')
    expectRefused(await phone.send(phone.prepareRemove({ factors: 'possession' })), 'signature', 'Svc')
    expectRefused(await phone.send(withFlippedMember(await phone.prepareUserInfo(), 'mac')), 'encryption', 'Svc')
    expectRefused(await phone.send(await phone.prepareVaultUnlock({ alterEnvelope })), 'vault', 'Svc')
    expectRefused(await phone.send(await phone.prepareTokenCreate({ alterEnvelope })), 'token', 'Svc')
    const empty = phone.prepareSigned({ path: '/pa/v3/token/create', resourceId: '/pa/token/create', body: 'null' })
    expectRefused(await phone.send(empty), 'request', 'Svc')
    const token = await phone.createToken('possession')
    expectRefused(await phone.send(await phone.prepareDetail(token)), 'signature', 'Svc')
    const late = world.newPhone(version, { dialect: 'Svc' })
    expectRefused(await late.send(await late.prepareActivation('AAAAA-AAAAA-AAAAA-AAAAA')), 'activation', 'Svc')
  })

  test('may change its dialect from request to request', async () => {
    const { phone } = await world.activePhone(version, { dialect: 'Svc' })
    const sdk = phone.speaking({ dialect: 'PowerAuth' })
    const token = await phone.createToken()
    await sdk.exchange(await sdk.prepareDetail(token))
    expectRefused(await sdk.send(sdk.prepareValidation({ wrongKeys })), 'signature', 'PowerAuth')
    expectRefused(await phone.send(phone.prepareValidation({ wrongKeys })), 'signature', 'Svc')
    expectOk(await sdk.send(sdk.prepareValidation()))
  })
})

describe('the spelling of headers', () => {
  test('X-PowerAuth-* takes no other scheme than PowerAuth', async () => {
    const { phone } = await world.activePhone('3.3', { dialect: 'PowerAuth', scheme: 'PowerAuth' })
    const renamed = phone.speaking({ scheme: 'Svc' })
    await expectUntouched(phone, async () => {
      expectRefused(await renamed.send(renamed.prepareValidation()), 'signature')
      expectRefused(await renamed.send(await renamed.prepareUserInfo()), 'encryption')
    })
  })

  test('is not sensitive to case', async () => {
    const { phone } = await world.activePhone('3.3')
    const request = phone.prepareValidation()
    const value = request.headers['X-PowerAuth-Authorization']
    const lower = withHeader(withHeader(request, 'X-PowerAuth-Authorization', undefined), 'x-powerauth-authorization', value)
    expectOk(await phone.send(lower))
  })

  test('one header in both spellings with different values is malformed', async () => {
    const { phone } = await world.activePhone('3.3')
    await expectUntouched(phone, async () => {
      const first = phone.prepareValidation()
      const other = phone.prepareValidation().headers['X-PowerAuth-Authorization']
      expectError(await phone.send(withHeader(first, 'X-Svc-Authorization', other)), 401, 'ERR_AUTHENTICATION')
    })
    const request = await phone.prepareUserInfo()
    const foreign = `PowerAuth version="3.3", application_key="${b64(random(16))}", activation_id="${phone.state.activationId}"`
    expectError(await phone.send(withHeader(request, 'X-Svc-Encryption', foreign)), 400, 'ERR_ENCRYPTION')
  })

  test('two headers in different spellings are malformed', async () => {
    const { phone } = await world.activePhone('3.3')
    const token = await phone.createToken()
    const request = await phone.prepareDetail(token)
    const svc = phone.speaking({ dialect: 'Svc', scheme: 'PowerAuth' })
    const mixed = { ...request, headers: { ...request.headers, ...svc.encryptionHeader('activation') } }
    const reply = await phone.send(withHeader(mixed, 'X-PowerAuth-Encryption', undefined))
    expect([400, 401]).toContain(reply.status)
    await phone.exchange(request)
  })

  test('without any header is answered in the words of the reference', async () => {
    const { phone } = await world.activePhone('3.3')
    const bare = withHeader(phone.prepareValidation(), 'X-PowerAuth-Authorization', undefined)
    expectRefused(await phone.send(bare), 'signature', 'PowerAuth')
    const remove = withHeader(phone.prepareRemove(), 'X-PowerAuth-Authorization', undefined)
    expectRefused(await phone.send(remove), 'header', 'PowerAuth')
  })
})
