// Makes the calls of a bank to doors: each door gets requests of phones of the kind that it verifies (docs/DOORS.md).
import { randomBytes, randomUUID } from 'node:crypto'
import { seal } from '../../phone/v3/channel.ts'
import { b64, random } from '../../phone/v3/crypto.ts'
import type { TemporaryKey } from '../../phone/v3/envelope.ts'
import type { PhoneToken } from '../../phone/v3/state.ts'
import type { VirtualPhone } from '../../phone/v3/virtual-phone.ts'
import type { VirtualPhoneV4 } from '../../phone/v4/virtual-phone.ts'
import { withPair } from '../../phone/header.ts'
import { type HttpReply, type HttpRequest, member, send } from '../../phone/http.ts'
import { basicAuthorization } from '../../test/helpers/bank.ts'
import { headerOf, RESOURCE, toDoor } from '../../test/helpers/door.ts'
import type { Target } from './target.ts'
import { activate, openServer, type Server, takeTurns, toUnit, type Work } from './works.ts'

export interface DoorScene {
  /** A code at pawl's own endpoint, with which doors are compared. */
  readonly validate: Work
  readonly doors: readonly Work[]
  /** Requests with long bodies. */
  readonly bodies: readonly Asked[]
  /** Groups of headers that are refused, with one kind for each reason. */
  readonly refused: readonly { readonly name: string; readonly kinds: readonly Asked[] }[]
}

/** A kind of request; `make` gives a fresh one. */
export interface Asked {
  readonly name: string
  readonly make: () => Promise<HttpRequest> | HttpRequest
  /** Throws when the answer is not the one to measure. */
  readonly check: (reply: HttpReply) => void
}

/** Opens two applications on the server, and binds `phones` phones of 3.3 and the few others that the calls need. */
export async function openDoors(target: Pick<Target, 'url' | 'admin'>, phones: number): Promise<DoorScene> {
  const own = await openServer(target, 'doors')
  const other = await openServer(target, 'foreign')
  // A call that names no application is about the first one, so the other one needs a credential of its own.
  const foreign = { ...other, bank: other.bank.as(await createCredential(other, 'foreign-bank', 'integration', 'foreign')) }
  const bank = composeCalls(await createCredential(own, 'web-tier', 'verification', 'doors'))
  const holders: Holder[] = []
  for (let i = 0; i < phones; i += 1) holders.push(await bind(own))
  const [first = await bind(own)] = holders
  const old: Parties = { own: first, foreign: await bind(foreign) }
  const current = { own: await bindV4(own), foreign: await bindV4(foreign) }
  return {
    validate: {
      name: '3.3 validate',
      prepare: takeTurns(holders)(({ phone }) => toUnit(own.url, phone.prepareValidation({ body: BODY }))),
    },
    doors: listDoors(own, bank, holders),
    bodies: listBodies(own.url, bank, first, { right: await bindV4(own), wrong: current.own }),
    refused: [
      { name: '3.3 code', kinds: refuseCodes(bank, old.own.phone, old.foreign.phone) },
      { name: '4.0 code', kinds: refuseCodes(bank, current.own, current.foreign) },
      { name: '3.3 token', kinds: refuseTokens(bank, old) },
    ],
  }
}

interface Holder {
  readonly phone: VirtualPhone
  readonly token: PhoneToken
  /** The temporary key of the last `renew`. */
  temporaryKey: TemporaryKey | undefined
}

interface Parties {
  readonly own: Holder
  readonly foreign: Holder
}

/** Makes a call of the bank. */
type Call = (path: string, body: object, key?: string) => HttpRequest

async function createCredential({ bank }: Server, username: string, role: string, application: string): Promise<string> {
  const { json } = await bank.call('POST', '/admin/users', { username, role, application })
  return `${username}:${String(member(json, 'password'))}`
}

function composeCalls(credential: string): Call {
  const headers = { 'Content-Type': 'application/json', ...basicAuthorization(credential) }
  return (path, body, key) => ({
    method: 'POST',
    path,
    headers: key === undefined ? headers : { ...headers, 'Idempotency-Key': key },
    body: Buffer.from(JSON.stringify(body)),
  })
}

async function bind(server: Server): Promise<Holder> {
  const phone = await activate(server, '3.3', `doors-${randomUUID()}`)
  return { phone, token: await phone.createToken(), temporaryKey: undefined }
}

const bindV4 = (server: Server): Promise<VirtualPhoneV4> => activate(server, 'EC_P384', `doors-${randomUUID()}`)

const AT = { path: '/bank/transfer', resourceId: RESOURCE }

const codeOf = (phone: VirtualPhone | VirtualPhoneV4, body: string | Uint8Array = BODY): object =>
  toDoor(phone.prepareSigned({ ...AT, body }))

const tokenOf = ({ phone, token }: Holder): string =>
  headerOf({ method: 'GET', path: '/', headers: phone.tokenHeader(token, Date.now()), body: Buffer.alloc(0) }, 'Token')

async function envelopeOf({ phone, temporaryKey }: Holder, plaintext: string): Promise<object> {
  const options = { timestamp: Date.now(), ...(temporaryKey && { temporaryKey }) }
  const { envelope } = await seal(phone, '/pa/generic/activation', 'activation', Buffer.from(plaintext), options)
  return { scope: 'ACTIVATION', encryption: Object.values(phone.encryptionHeader('activation'))[0], envelope, client }
}

const signatureOf = ({ phone }: Holder, data: Uint8Array): object => ({
  activationId: phone.state.activationId,
  data: b64(data),
  signature: b64(phone.deviceSigners()[0]?.signDer(data) ?? data),
})

function listDoors({ url }: Server, call: Call, holders: readonly Holder[]): readonly Work[] {
  const prepareEach = takeTurns(holders)
  const renew = async (holder: Holder): Promise<void> => {
    holder.temporaryKey = await holder.phone.fetchTemporaryKey('activation')
  }
  const work = (
    name: string,
    make: (holder: Holder) => Promise<HttpRequest> | HttpRequest,
    before?: (holder: Holder) => Promise<void>,
  ): Work => ({ name, prepare: prepareEach(async (holder) => toUnit(url, await make(holder)), before) })
  const open = async (holder: Holder) => call('/encryption/open', await envelopeOf(holder, BODY))
  return [
    work('code', ({ phone }) => call('/verification/code', codeOf(phone))),
    work('code, with a key', ({ phone }) => call('/verification/code', codeOf(phone), randomUUID())),
    work('token', (holder) => call('/verification/token', { token: tokenOf(holder), client })),
    work('token, repeatable', (holder) => call('/verification/token', { token: tokenOf(holder), client, isRepeatable: true })),
    work('open', open, renew),
    work(
      'seal',
      async (holder) => {
        const sealTicket = member((await send(url, await open(holder))).json, 'sealTicket')
        return call('/encryption/seal', { sealTicket, plaintext: b64(Buffer.from(BODY)) })
      },
      renew,
    ),
    work('device signature', (holder) => call('/verification/device-signature', signatureOf(holder, Buffer.from(BODY)))),
  ]
}

/** Two phones: wrong codes move a phone's counter ahead of the server's, and for a long body the server tries few counter values. */
interface PhonesV4 {
  readonly right: VirtualPhoneV4
  readonly wrong: VirtualPhoneV4
}

function listBodies(url: string, call: Call, holder: Holder, phonesV4: PhonesV4): readonly Asked[] {
  const { phone } = holder
  const right = expecting('isValid', true)
  const sealing = async (bytes: number): Promise<HttpRequest> => {
    const opened = await send(url, call('/encryption/open', await envelopeOf({ ...holder, temporaryKey: undefined }, '{}')))
    return call('/encryption/seal', { sealTicket: member(opened.json, 'sealTicket'), plaintext: b64(random(bytes)) })
  }
  return SIZES.flatMap((size): readonly Asked[] => {
    const bytes = size * KIB
    const of = (name: string) => `${name}, ${size} KiB`
    return [
      { name: of('3.3 code'), make: () => call('/verification/code', codeOf(phone, random(bytes))), check: right },
      { name: of('4.0 code'), make: () => call('/verification/code', codeOf(phonesV4.right, random(bytes))), check: right },
      {
        name: of('4.0 code, wrong'),
        make: () => call('/verification/code', { ...toDoor(signWrongly(phonesV4.wrong, random(bytes))), client: anyClient() }),
        check: expecting('reason', 'CODE_WRONG'),
      },
      {
        name: of('open'),
        make: async () => call('/encryption/open', await envelopeOf({ ...holder, temporaryKey: undefined }, 'x'.repeat(bytes))),
        check: expecting('isOpened', true),
      },
      { name: of('seal'), make: () => sealing(bytes), check: expecting('encryptedData') },
      {
        name: of('device signature'),
        make: () => call('/verification/device-signature', signatureOf(holder, random(bytes))),
        check: right,
      },
    ]
  })
}

/** Makes a request that is signed with a random key, as somebody does who has no key of the phone. */
function signWrongly(phone: VirtualPhone | VirtualPhoneV4, body: string | Uint8Array): HttpRequest {
  const wrongKeys = { possession: random('version' in phone ? 16 : 32) }
  return phone.prepareSigned({ ...AT, body, wrongKeys })
}

function refuseCodes(call: Call, own: VirtualPhone | VirtualPhoneV4, foreign: VirtualPhone | VirtualPhoneV4): readonly Asked[] {
  const ask = (request: HttpRequest) => call('/verification/code', { ...toDoor(request), client: anyClient() })
  const sign = (phone: VirtualPhone | VirtualPhoneV4) => signWrongly(phone, BODY)
  const unknown = expecting('reason', 'UNKNOWN')
  return [
    { name: 'wrong', make: () => ask(sign(own)), check: expecting('reason', 'CODE_WRONG') },
    { name: 'unknown', make: () => ask(withPair(sign(own), 'pa_activation_id', randomUUID())), check: unknown },
    { name: 'foreign', make: () => ask(sign(foreign)), check: unknown },
  ]
}

function refuseTokens(call: Call, { own, foreign }: Parties): readonly Asked[] {
  const ask = (token: string) => call('/verification/token', { token, client: anyClient() })
  const unknown = expecting('reason', 'UNKNOWN')
  const wrong = { ...own, token: { ...own.token, secret: random(16) } }
  return [
    { name: 'wrong', make: () => ask(tokenOf(wrong)), check: expecting('reason', 'DIGEST_WRONG') },
    {
      name: 'unknown',
      make: () => ask(tokenOf({ ...own, token: { ...own.token, id: randomUUID() } })),
      check: unknown,
    },
    { name: 'foreign', make: () => ask(tokenOf(foreign)), check: unknown },
  ]
}

const expecting = (name: string, value?: unknown) => (reply: HttpReply) => {
  const found = member(reply.json, name)
  if (reply.status !== 200 || (value === undefined ? found === undefined : found !== value))
    throw new Error(`${name} is to be ${String(value)}: HTTP ${reply.status} ${reply.text}`)
}

/** A random address, so that no address uses up its budget of failures. */
const anyClient = () => ({ address: `2001:db8:${randomBytes(2).toString('hex')}:${randomBytes(2).toString('hex')}::1` })
const client = { address: '203.0.113.7' }

const BODY = JSON.stringify({ amount: '10.00', currency: 'EUR', iban: 'DE89370400440532013000', note: 'x'.repeat(100) })
const KIB = 1024
const SIZES = [1, 16, 64, 128]
