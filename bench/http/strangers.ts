// Makes the requests of a stranger. pawl refuses them, or answers them to everybody who has the app; each costs the server work before that.
import { randomUUID } from 'node:crypto'
import { b64, random } from '../../phone/v3/crypto.ts'
import { withPair } from '../../phone/header.ts'
import type { HttpRequest } from '../../phone/http.ts'
import { PHONE_ALGORITHMS } from '../../phone/v4/crypto.ts'
import { createPhoneV4, type VirtualPhoneV4 } from '../../phone/v4/virtual-phone.ts'
import { createPhone, type VirtualPhone } from '../../phone/v3/virtual-phone.ts'
import type { Target } from './target.ts'
import { activate, openServer, type Server } from './works.ts'

/** One kind of request; `make` makes a fresh one. */
export interface Stranger {
  readonly name: string
  /** Whether the request guesses a password of the bank's API. scrypt makes that expensive on purpose. */
  readonly isLogin?: true
  readonly make: () => Promise<HttpRequest> | HttpRequest
}

export interface Scene {
  readonly strangers: readonly Stranger[]
  /** Phones of users who work meanwhile. */
  readonly victims: readonly VirtualPhone[]
}

/** Opens an application on the server, and binds `victims` phones and a phone of each generation that the requests of strangers name. */
export async function openScene(target: Pick<Target, 'url' | 'admin'>, victims: number): Promise<Scene> {
  const place = await openServer(target, APPLICATION)
  const phones = []
  for (let i = 0; i < victims; i += 1) phones.push(await activate(place, '3.3', `victim-${randomUUID()}`))
  const known = await activate(place, '3.3', `known-${randomUUID()}`)
  const knownV4 = await activate(place, 'EC_P384', `known-${randomUUID()}`)
  return { strangers: listStrangers(place, known, knownV4), victims: phones }
}

function listStrangers({ url, app, appV4 }: Server, old: VirtualPhone, phone: VirtualPhoneV4): Stranger[] {
  const unknown = <R extends HttpRequest>(request: R): R => withPair(request, 'pa_activation_id', randomUUID())
  const wrongPossession = () => ({ factors: 'possession' as const, wrongKeys: { possession: random(32) } })
  const padded = (bytes: number): string => {
    const approval = (x: string): string =>
      JSON.stringify({ requestObject: { id: randomUUID(), data: 'A2', mobileTokenData: { x } } })
    return approval('x'.repeat(bytes - approval('').length))
  }
  const json = (path: string, body: string): HttpRequest => ({
    method: 'POST',
    path,
    headers: { 'Content-Type': 'application/json' },
    body: Buffer.from(body),
  })
  const approvalV4 = (): HttpRequest => {
    const request = { path: APPROVAL, resourceId: '/operation/authorize', body: padded(64 * KIB) }
    return unknown(phone.prepareSigned(request))
  }
  const status = (filler: string): HttpRequest =>
    json('/pa/v3/activation/status', `{"requestObject":{"activationId":"${randomUUID()}"},"x":${filler}}`)
  return [
    ...[64, 32].flatMap((size): Stranger[] => [
      {
        name: `4.0 code, ${size} KiB, unknown activation`,
        make: () => unknown(phone.prepareValidation({ body: random(size * KIB) })),
      },
      {
        name: `4.0 code, ${size} KiB, known activation`,
        make: () => phone.prepareValidation({ body: random(size * KIB), ...wrongPossession() }),
      },
    ]),
    { name: '4.0 code, 2 bytes', make: () => unknown(phone.prepareValidation({ body: '{}' })) },
    {
      name: '4.0 code, query of 12.5 KB, two readings',
      make: () => unknown(phone.prepareValidation({ method: 'GET', query: `x=${'%2541'.repeat(2500)}` })),
    },
    ...[256, 64].map(
      (size): Stranger => ({
        name: `3.3 code, ${size} KiB`,
        make: () => unknown(old.prepareValidation({ body: random(size * KIB) })),
      }),
    ),
    { name: '3.3 code, 2 bytes', make: () => unknown(old.prepareValidation({ body: '{}' })) },
    { name: '4.0 approval, 64 KiB of JSON', make: approvalV4 },
    {
      name: '3.3 approval, 255 KiB of JSON',
      make: () => unknown(old.prepareSignedCall('authorize', undefined, { body: padded(255 * KIB) })),
    },
    { name: 'activation/status, 255 KiB of arrays', make: () => status(`[${'[],'.repeat(85 * KIB)}0]`) },
    { name: 'activation/status, 15 KiB of arrays', make: () => status(`[${'[],'.repeat(5 * KIB)}0]`) },
    {
      name: 'activation/create, unknown code',
      make: () => createPhone({ url, app, version: '3.3' }).prepareActivation(UNKNOWN_CODE),
    },
    ...PHONE_ALGORITHMS.map(
      (algorithm): Stranger => ({
        name: `keystore/create, ${algorithm}`,
        make: () => {
          const request = createPhoneV4({ url, app: appV4, algorithm }).newTemporaryKeyRequest('application')
          return json('/pa/v4/keystore/create', JSON.stringify(request.json))
        },
      }),
    ),
    {
      name: 'app/init',
      make: () => ({
        method: 'GET',
        path: `/app/init?appName=${APPLICATION}`,
        headers: { 'X-Cert-Pinning-Challenge': b64(random(24)) },
        body: new Uint8Array(0),
      }),
    },
    {
      name: 'bank API, wrong password',
      isLogin: true,
      make: () => ({
        method: 'GET',
        path: '/admin/applications',
        headers: { Authorization: `Basic ${b64(Buffer.from(`admin:${randomUUID()}`))}` },
        body: new Uint8Array(0),
      }),
    },
  ]
}

const APPLICATION = 'bench-strangers'
const APPROVAL = '/api/auth/token/app/operation/authorize'
const UNKNOWN_CODE = 'MMMMM-MMMMM-MMMMM-MUTOA'
const KIB = 1024
