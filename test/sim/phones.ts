// Makes the phones of a simulation, with the same functions for 3.x and 4.0. A prepared code moves the counter, whether it is sent or not.
import { type HttpRequest, member } from '../../phone/http.ts'
import type { Prepared } from '../../phone/v3/state.ts'
import { TOKEN_PATHS } from '../../phone/operations.ts'
import { createPhone } from '../../phone/v3/virtual-phone.ts'
import { createPhoneV4 } from '../../phone/v4/virtual-phone.ts'
import { newState } from '../../phone/v3/state.ts'
import { newV4State } from '../../phone/v4/state.ts'
import type { PhoneVersion } from '../../phone/v3/crypto.ts'
import type { PhoneToken } from '../../phone/v3/state.ts'
import { RESOURCE } from '../helpers/door.ts'
import { type SentEnvelope, signForBank } from '../helpers/door-envelope.ts'
import type { Chance } from './chance.ts'
import type { Prepared as PreparedSite, PreparedPhone } from './prepared.ts'

export type Factors = 'possession' | 'possession_knowledge' | 'possession_biometry'
export const FACTORS: readonly Factors[] = ['possession', 'possession_knowledge', 'possession_biometry']

/** The keys of a code: RIGHT, those of the phone; GUESS, that of possession and wrong other ones; STRANGE, none of the phone's. */
export type Quality = 'RIGHT' | 'GUESS' | 'STRANGE'
export const MOSTLY_RIGHT: readonly Quality[] = ['RIGHT', 'RIGHT', 'RIGHT', 'RIGHT', 'GUESS', 'STRANGE']

/** A request with a code. */
export interface Code {
  readonly phone: SimulatedPhone
  readonly what: string
  readonly request: Prepared<unknown>
  /** The phone's counter when it made the code. */
  readonly counter: number
  readonly isRight: boolean
  /** Whether the code is wrong and counts as a failed attempt when the server tries its counter value. */
  readonly isGuess: boolean
  readonly isBiometric: boolean
  /** Whether it is the first code of 4.0, until which the activation is of 3.x. */
  readonly isUpgrade: boolean
  /** The number of answers 200 to the code. */
  accepted: number
}

type Traits = Pick<Code, 'isRight' | 'isGuess' | 'isBiometric' | 'isUpgrade'>
const traitsOf = (factors: Factors, quality: Quality): Traits => ({
  // The only key of a possession code is right in a guess, too.
  isRight: quality === 'RIGHT' || (quality === 'GUESS' && factors === 'possession'),
  isGuess: quality === 'GUESS' && factors !== 'possession',
  isBiometric: factors === 'possession_biometry',
  isUpgrade: false,
})
const PLAIN: Traits = { isRight: true, isGuess: false, isBiometric: false, isUpgrade: false }

/** An operation as a QR code shows it. */
export interface ShownOperation {
  readonly id: string
  readonly data: string
  readonly text: string
  readonly nonce: string
}

/** Makes the headers with a code over a body. */
type Authorize = (body: Uint8Array) => Readonly<Record<string, string>>

export interface SimulatedPhone {
  readonly name: string
  readonly userId: string
  readonly version: string
  readonly activationId: () => string
  readonly counter: () => number
  /** The codes that the phone has made, sent or not, oldest first. */
  readonly codes: Code[]
  readonly validate: (factors: Factors, quality: Quality) => Code
  readonly approve: (operation: { id: string; data: string }, quality: Quality) => Code
  readonly reject: (operationId: string) => Code
  readonly remove: () => Code
  /** Makes the confirmation that follows the commit; undefined before 4.0. */
  readonly confirm: (() => Code) | undefined
  /** Makes the request for a token. It fetches keys and time from servers. */
  readonly createToken: () => Promise<Code>
  /** Makes a read with a token. It fetches the time from servers. */
  readonly useToken: (token: unknown) => Promise<Prepared<unknown>>
  readonly removeToken: (tokenId: string) => Code
  /** Makes a signed request to an endpoint of the bank, which the bank has pawl verify. */
  readonly signForBank: (factors: Factors, quality: Quality) => Code
  /** Makes an encrypted request to the bank, in the form that `/encryption/open` takes. It fetches keys from servers. */
  readonly sealForBank: (quality: Quality) => Promise<{ readonly code: Code; readonly body: SentEnvelope['body'] }>
  /** Makes the one-time password for an operation, in the request that the bank makes from it. */
  readonly approveOffline: (shown: ShownOperation, quality: Quality, toRequest: (otp: string) => HttpRequest) => Code
  /** Makes the one-time password for an offline challenge. */
  readonly answerOffline: (shown: ShownOperation, quality: Quality, toRequest: (otp: string) => HttpRequest) => Code
  /** Begins an upgrade to `next`, and fetches keys from servers; undefined in 4.0. */
  readonly prepareUpgrade: ((next: SimulatedPhone) => Promise<Code>) | undefined
  /** Begins the 4.0 side of an upgrade; undefined before 4.0. */
  readonly beginUpgrade: ((activationId: string, counter: number, authorize: Authorize) => Promise<Prepared<unknown>>) | undefined
  readonly confirmUpgrade: (() => Code) | undefined
  readonly prepareActivation: (activationCode: string) => Promise<Prepared<unknown>>
  readonly skip: (steps: number) => void
}

/** Makes a phone of `prepared`, or a new one of `version` without an activation. */
export function createSimulatedPhone(
  site: Pick<PreparedSite, 'app' | 'appV4'>,
  name: string,
  { userId, version, state }: PreparedPhone | { userId: string; version: PhoneVersion | '4.0'; state?: undefined },
  chance: Chance,
): SimulatedPhone {
  const wrong = (quality: Quality, bytes: number) => {
    if (quality === 'RIGHT') return {}
    const others = { knowledge: chance.bytes(bytes), biometry: chance.bytes(bytes) }
    return { wrongKeys: quality === 'GUESS' ? others : { ...others, possession: chance.bytes(bytes) } }
  }
  const json = (requestObject: unknown) => JSON.stringify({ requestObject })
  const url = 'http://s1'
  const codes: Code[] = []
  const parts = version === '4.0' ? partsV4() : partsV3()
  /** Makes a code and adds it to `codes`. It is right unless `traits` say otherwise. */
  const note = (what: string, make: () => Prepared<unknown>, traits: Partial<Traits> = {}, behind = 0): Code => {
    const counter = parts.state.counter - behind
    const code: Code = { phone, what, counter, request: make(), ...PLAIN, ...traits, accepted: 0 }
    codes.push(code)
    return code
  }

  /** A code for the bank that was just made. It is not in `codes`, because it goes through a door. */
  const atBank = (what: string, request: HttpRequest, factors: Factors, quality: Quality): Code => ({
    phone,
    what: `${what} for the bank with ${factors}${WORDS[quality]}`,
    counter: parts.state.counter - 1,
    request: { ...request, open: () => undefined },
    ...traitsOf(factors, quality),
    accepted: 0,
  })

  function partsV3() {
    const phone = createPhone(
      { url, app: site.app, version: version as PhoneVersion },
      state === undefined ? newState() : (state as never),
    )
    return {
      ...phone,
      validate: (factors: Factors, quality: Quality) => phone.prepareValidation({ factors, ...wrong(quality, 16) }),
      signed: (path: string, resourceId: string, body: string, factors: Factors, quality: Quality) =>
        phone.prepareSigned({ path, resourceId, body, factors, ...wrong(quality, 16) }),
      sealed: (quality: Quality) => signForBank(phone, BANK_BODY, wrong(quality, 16)),
      useToken: (token: unknown) => phone.prepareTokenCall('list', token as PhoneToken),
      typeOtp: ({ text }: ShownOperation, quality: Quality) => phone.computeOtp(phone.scanOperation(text), wrong(quality, 16)),
      authorizeUpgrade: (body: Uint8Array) =>
        phone.prepareSigned({ path: '/pa/v4/upgrade/start', resourceId: '/pa/upgrade/start', body }).headers,
      confirm: undefined,
      confirmUpgrade: undefined,
      beginUpgrade: undefined,
    }
  }
  function partsV4() {
    const phone = createPhoneV4(
      { url, app: site.appV4, algorithm: 'EC_P384' },
      state === undefined ? newV4State('EC_P384') : (state as never),
    )
    return {
      ...phone,
      validate: (factors: Factors, quality: Quality) => phone.prepareValidation({ factors, ...wrong(quality, 32) }),
      signed: (path: string, resourceId: string, body: string, factors: Factors, quality: Quality) =>
        phone.prepareSigned({ path, resourceId, body, factors, ...wrong(quality, 32) }),
      sealed: (quality: Quality) => signForBank(phone, BANK_BODY, wrong(quality, 32)),
      useToken: async (token: unknown): Promise<Prepared<unknown>> => {
        if (chance.happens(0.3)) return phone.prepareDetail(token as PhoneToken)
        const headers = {
          'Content-Type': 'application/json',
          ...phone.tokenHeader(token as PhoneToken, await phone.serverTime()),
        }
        return { method: 'POST', path: TOKEN_PATHS.list, headers, body: Buffer.from('{}'), open: () => undefined }
      },
      typeOtp: ({ id: operationId, data: operationData, nonce }: ShownOperation, quality: Quality) =>
        phone.typeOtp({ operationId, operationData, nonce, ...wrong(quality, 32) }),
      authorizeUpgrade: undefined,
      confirm: () => phone.prepareConfirm(true),
      confirmUpgrade: () => phone.prepareUpgradeConfirm(),
      beginUpgrade: (activationId: string, counter: number, authorize: Authorize) => {
        phone.state.activationId = activationId
        // The counter of 4.0 goes on from that of the code that begins the upgrade.
        return phone.prepareUpgradeStart((body) => authorize(body), { counter: counter + 1, enableBiometry: true })
      },
    }
  }

  const { confirm, confirmUpgrade, authorizeUpgrade, beginUpgrade } = parts
  /** Adds a code that was just made, after keys were fetched. */
  const noteMade = (what: string, request: Prepared<unknown>): Code => note(what, () => request, {}, 1)
  const phone: SimulatedPhone = {
    name: `${name} (${version})`,
    userId,
    version,
    codes,
    activationId: () => parts.state.activationId,
    counter: () => parts.state.counter,
    validate: (factors, quality) =>
      note(`validates with ${factors}${WORDS[quality]}`, () => parts.validate(factors, quality), traitsOf(factors, quality)),
    approve: ({ id, data }, quality) =>
      note(
        `approves${WORDS[quality]}`,
        () => parts.signed(AUTHORIZE, '/operation/authorize', json({ id, data }), 'possession_knowledge', quality),
        { isRight: quality === 'RIGHT', isGuess: quality === 'GUESS' },
      ),
    reject: (id) => note('rejects', () => parts.signed(CANCEL, '/operation/cancel', json({ id }), 'possession', 'RIGHT')),
    remove: () => note('removes itself', () => parts.prepareRemove()),
    confirm: confirm && (() => note('confirms', confirm)),
    // The counter moves last, after keys and time were fetched.
    createToken: async () => noteMade('creates a token', await parts.prepareTokenCreate({ factors: 'possession_knowledge' })),
    useToken: parts.useToken,
    signForBank: (factors, quality) => {
      const { method, path, headers, body } = parts.signed(BANK_PATH, RESOURCE, BANK_BODY, factors, quality)
      return atBank('signs', { method, path, headers, body }, factors, quality)
    },
    sealForBank: async (quality) => {
      const { body } = await parts.sealed(quality)
      const headers = { 'X-PowerAuth-Authorization': String(body['authorization']) }
      const request = { method: 'POST', path: BANK_PATH, headers, body: Buffer.from(BANK_BODY) }
      return { code: atBank('signs and encrypts', request, 'possession_knowledge', quality), body }
    },
    removeToken: (tokenId) => note('removes a token', () => parts.prepareTokenRemove(tokenId)),
    approveOffline: (shown, quality, toRequest) =>
      note(`approves offline${WORDS[quality]}`, () => ({ ...toRequest(parts.typeOtp(shown, quality)), open: () => undefined }), {
        isRight: quality === 'RIGHT',
        isGuess: quality === 'GUESS',
      }),
    answerOffline: (shown, quality, toRequest) =>
      atBank('types a code', toRequest(parts.typeOtp(shown, quality)), 'possession_knowledge', quality),
    prepareUpgrade:
      authorizeUpgrade &&
      (async (next) => {
        const begun = next.beginUpgrade?.(parts.state.activationId, parts.state.counter, authorizeUpgrade)
        if (begun === undefined) throw new Error(`${next.name} is not of 4.0`)
        return noteMade('begins an upgrade', await begun)
      }),
    beginUpgrade,
    confirmUpgrade: confirmUpgrade && (() => note('confirms its upgrade', confirmUpgrade, { isUpgrade: true })),
    prepareActivation: (activationCode) => parts.prepareActivation(activationCode),
    skip: parts.skip,
  }
  return phone
}

/** Makes a request of the bank, or of an administrator. */
export function bankRequest(
  credential: string,
  method: string,
  path: string,
  json?: unknown,
  more: Readonly<Record<string, string>> = {},
): HttpRequest {
  return {
    method,
    path,
    headers: {
      Authorization: `Basic ${Buffer.from(credential).toString('base64')}`,
      ...(json !== undefined && { 'Content-Type': 'application/json' }),
      ...more,
    },
    body: Buffer.from(json === undefined ? '' : JSON.stringify(json)),
  }
}

/** The activation code in the answer to a registration. */
export const activationCodeOf = (json: unknown): string => String(member(json, 'activationQrCodeData')).split('#')[0] ?? ''

const AUTHORIZE = '/api/auth/token/app/operation/authorize'
const CANCEL = '/api/auth/token/app/operation/cancel'
const BANK_PATH = '/bank/transfer'
const BANK_BODY = '{"amount":1}'

const WORDS = { RIGHT: '', GUESS: ', and guesses', STRANGE: ', as a stranger would' } as const satisfies Record<Quality, string>
