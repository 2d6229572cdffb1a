// Faults outside the protocol, on every endpoint of the device API (v3 §16).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { errorCode, expectError, expectUntouched } from '../../helpers/expectations.ts'
import type { HttpRequest } from '../../../phone/http.ts'
import { NO_BODY, send, sendJson } from '../../../phone/http.ts'
import { random } from '../../../phone/v3/crypto.ts'
import { PHONE_VERSIONS } from '../../helpers/phone-versions.ts'
import { withBody, withHeader } from '../../../phone/header.ts'
import type { VirtualPhone } from '../../../phone/v3/virtual-phone.ts'
import type { World } from '../../helpers/world.ts'
import { expectOk, startWorld } from '../../helpers/world.ts'

const LIMIT = 256 * 1024
const TYPE = 'Content-Type'
const POST_PATHS = [
  '/pa/v3/status',
  '/pa/v3/keystore/create',
  '/pa/v3/activation/create',
  '/pa/v3/activation/status',
  '/pa/v3/activation/remove',
  '/pa/v3/activation/detail',
  '/pa/v3/activation/rename',
  '/pa/v3/token/create',
  '/pa/v3/token/remove',
  '/pa/v3/vault/unlock',
  '/pa/v3/user/info',
]

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())

/** A request of every endpoint that has a body, each good if it is sent as it is. */
const GENUINE: Record<string, (phone: VirtualPhone) => Promise<HttpRequest> | HttpRequest> = {
  '/pa/v3/activation/create': async (phone) => phone.prepareActivation((await world.register()).code),
  '/pa/v3/activation/detail': async (phone) => phone.prepareDetail(await phone.createToken()),
  '/pa/v3/activation/rename': (phone) => phone.prepareRename('renamed'),
  '/pa/v3/token/create': (phone) => phone.prepareTokenCreate(),
  '/pa/v3/token/remove': (phone) => phone.prepareTokenRemove('x'),
  '/pa/v3/vault/unlock': (phone) => phone.prepareVaultUnlock(),
  '/pa/v3/user/info': (phone) => phone.prepareUserInfo(),
  '/pa/v3/activation/status': (phone) => ({
    method: 'POST',
    path: '/pa/v3/activation/status',
    headers: { [TYPE]: 'application/json' },
    body: Buffer.from(JSON.stringify({ requestObject: { activationId: phone.state.activationId } })),
  }),
  '/pa/v3/keystore/create': (phone) => ({
    method: 'POST',
    path: '/pa/v3/keystore/create',
    headers: { [TYPE]: 'application/json' },
    body: Buffer.from(JSON.stringify(phone.newTemporaryKeyRequest('activation').json)),
  }),
}

/** Throws where the list has no such request: a test without one would check nothing. */
async function genuine(path: string, phone: VirtualPhone): Promise<HttpRequest> {
  const prepare = GENUINE[path]
  if (prepare === undefined) throw new Error(`no genuine request for ${path}`)
  return prepare(phone)
}

const IS_SIGNED = /token\/create|vault|rename/
/** Its body is parsed for the owner of a right code only. */
const CODE_FIRST = '/pa/v3/token/remove'

describe('paths and methods', () => {
  test.each([
    '/pa/v3',
    '/pa/v3/',
    '/pa/v3/nope',
    '/pa/v3/activation',
    '/pa/v3/activation/status/more',
    '/pa/v3/upgrade/start',
    '/pa/v3/upgrade/commit',
    '/pa/v3/recovery/confirm',
    '/pa/v2/activation/status',
    '/PA/v3/status',
  ])('%s is unknown', async (path) => {
    for (const method of ['GET', 'POST', 'PUT', 'DELETE']) {
      expectError(await sendJson(world.url, method, path), 404, 'ERROR_NOT_FOUND')
    }
  })

  test.each(POST_PATHS)('%s knows nothing but POST', async (path) => {
    for (const method of ['GET', 'PUT', 'DELETE', 'PATCH']) {
      expectError(await sendJson(world.url, method, path), 404, 'ERROR_NOT_FOUND')
    }
  })

  test('/pa/v3/signature/validate does not know PATCH', async () => {
    expectError(await sendJson(world.url, 'PATCH', '/pa/v3/signature/validate'), 404, 'ERROR_NOT_FOUND')
  })

  test('an unknown path with a body that is not JSON is still unknown', async () => {
    const request = { method: 'POST', path: '/pa/v3/nope', headers: { [TYPE]: 'application/json' }, body: Buffer.from('{') }
    expectError(await send(world.url, request), 404, 'ERROR_NOT_FOUND')
  })
})

describe.each(PHONE_VERSIONS)('bodies in %s', (version) => {
  test.each(Object.keys(GENUINE))('%s takes a content type with a charset', async (path) => {
    const { phone } = await world.activePhone(version)
    const request = await genuine(path, phone)
    expectOk(await send(world.url, withHeader(request, TYPE, 'application/json; charset=UTF-8')))
  })

  test.each(Object.keys(GENUINE))('%s refuses a content type that is not JSON', async (path) => {
    const { phone } = await world.activePhone(version)
    const request = await genuine(path, phone)
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/octet-stream', 'application/xml']) {
      expectError(await send(world.url, withHeader(request, TYPE, type)), 400, 'ERR_VALIDATION')
    }
    expectOk(await send(world.url, request))
  })

  test.each(Object.keys(GENUINE))('%s refuses a body over 256 KiB', async (path) => {
    const { phone } = await world.activePhone(version)
    const request = await genuine(path, phone)
    await expectUntouched(phone, async () => {
      const tooLarge = withBody(request, Buffer.from(JSON.stringify({ x: 'x'.repeat(LIMIT) })))
      expectError(await send(world.url, tooLarge), 400, 'ERR_VALIDATION')
    })
    expectOk(await send(world.url, request))
  })

  test.each(Object.keys(GENUINE).filter((path) => path !== CODE_FIRST))(
    '%s takes as much as it parses before it knows who sent it, and no more',
    async (path) => {
      const { phone } = await world.activePhone(version)
      const request = await genuine(path, phone)
      const limit = path === '/pa/v3/activation/create' ? 64 * 1024 : 16 * 1024
      const padded = (length: number) =>
        withBody(request, Buffer.concat([request.body, Buffer.alloc(length - request.body.length, ' ')]))
      await expectUntouched(phone, async () => {
        expectError(await send(world.url, padded(limit + 1)), 400, 'ERR_VALIDATION')
      })
      // A code covers the spaces too.
      expectOk(await send(world.url, IS_SIGNED.test(path) ? request : padded(limit)))
    },
  )

  test('/pa/v3/signature/validate refuses a body over 256 KiB and counts nothing', async () => {
    const { phone } = await world.activePhone(version)
    await expectUntouched(phone, async () => {
      expectError(await phone.send(phone.prepareValidation({ body: random(LIMIT + 1) })), 400, 'ERR_VALIDATION')
    })
  })
})

describe('text that is not JSON', () => {
  const BROKEN: [string, string | Uint8Array][] = [
    ['half of an object', '{"requestObject":'],
    ['no quotes', '{requestObject:{}}'],
    ['two values', '{} {}'],
    ['invalid UTF-8', new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
    ['NaN', 'NaN'],
    ['zero bytes', new Uint8Array(16)],
  ]

  test.each(BROKEN)('is refused on unsigned endpoints: %s', async (_, body) => {
    for (const path of ['/pa/v3/keystore/create', '/pa/v3/activation/status']) {
      const request = { method: 'POST', path, headers: { [TYPE]: 'application/json' }, body: Buffer.from(body) }
      expectError(await send(world.url, request), 400, 'ERR_VALIDATION')
    }
  })

  test.each(BROKEN)('is refused on encrypted endpoints, where it burns nothing: %s', async (_, body) => {
    const { phone } = await world.activePhone('3.3')
    for (const path of ['/pa/v3/activation/create', '/pa/v3/activation/detail', '/pa/v3/user/info']) {
      const request = await genuine(path, phone)
      expectError(await send(world.url, withBody(request, body)), 400, 'ERR_VALIDATION')
      expectOk(await send(world.url, request))
    }
  })

  test.each(BROKEN)('is refused on signed endpoints after the signature: %s', async (_, body) => {
    const { phone } = await world.activePhone('3.3')
    const endpoints = [
      ['/pa/v3/token/create', '/pa/token/create'],
      ['/pa/v3/token/remove', '/pa/token/remove'],
    ] as const
    for (const [path, resourceId] of endpoints) {
      expectError(await phone.send(phone.prepareSigned({ path, resourceId, body })), 400, 'ERR_VALIDATION')
      const wrongKeys = { knowledge: random(16) }
      expectError(await phone.send(phone.prepareSigned({ path, resourceId, body, wrongKeys })), 401, 'ERR_AUTHENTICATION')
    }
  })

  test('is never a server error, whatever the endpoint', async () => {
    const bodies = ['', 'null', '[]', '"x"', '7', '{}', '{"requestObject":null}', '{"__proto__":null}', '[[[[[[[[']
    for (const path of POST_PATHS) {
      for (const body of bodies) {
        const request = { method: 'POST', path, headers: { [TYPE]: 'application/json' }, body: Buffer.from(body) }
        const reply = await send(world.url, request)
        expect(reply.status, `${path} ${body} ${reply.text}`).toBeLessThan(500)
        if (reply.status !== 200) expect(String(errorCode(reply)), `${path} ${body}`).toMatch(/^ERR_/)
      }
    }
  })
})

describe('a body without content type', () => {
  test.each(Object.keys(GENUINE))('is taken for JSON by %s', async (path) => {
    const { phone } = await world.activePhone('3.3')
    const request = await genuine(path, phone)
    expectOk(await send(world.url, withHeader(request, TYPE, undefined)))
  })
})

describe('a JSON content type without a body', () => {
  test('is an empty body on signed endpoints', async () => {
    const { phone } = await world.activePhone('3.3')
    const validation = phone.prepareValidation()
    expect(validation).toMatchObject({ headers: { [TYPE]: 'application/json' }, body: NO_BODY })
    expectOk(await phone.send(validation))
    expectOk(await phone.send(phone.prepareRemove()))
  })

  test('is a missing body where one is due', async () => {
    for (const path of ['/pa/v3/keystore/create', '/pa/v3/activation/status']) {
      const headers = { [TYPE]: 'application/json' }
      expectError(await send(world.url, { method: 'POST', path, headers, body: NO_BODY }), 400, 'ERR_VALIDATION')
    }
  })
})
