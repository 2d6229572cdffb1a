// Phones of a simulation: what those of 3.x and of 4.0 do alike. What they prepare moves their counter, whether it is sent or not.
import { type HttpReply, type HttpRequest, member } from '../../phone/http.ts'
import type { Prepared } from '../../phone/state.ts'
import { createPhone } from '../../phone/virtual-phone.ts'
import { createPhoneV4 } from '../../phone/virtual-phone-v4.ts'
import { newState } from '../../phone/state.ts'
import { newV4State } from '../../phone/v4-state.ts'
import type { PhoneVersion } from '../../phone/crypto.ts'
import type { Chance } from './chance.ts'
import type { Prepared as PreparedSite, PreparedPhone } from './prepared.ts'

export type Factors = 'possession' | 'possession_knowledge' | 'possession_biometry'
export const FACTORS: readonly Factors[] = ['possession', 'possession_knowledge', 'possession_biometry']

/** A request with a code. */
export interface Code {
  readonly phone: SimulatedPhone
  readonly what: string
  readonly request: Prepared<unknown>
  /** Of the phone when it made the code. */
  readonly counter: number
  readonly isRight: boolean
  /** A wrong one counts as a failed attempt. */
  readonly isCounted: boolean
  /** How often it was answered with 200. */
  accepted: number
}

export interface SimulatedPhone {
  readonly name: string
  readonly userId: string
  readonly version: string
  readonly activationId: () => string
  readonly counter: () => number
  /** What it has made, sent or not, oldest first. */
  readonly codes: Code[]
  readonly validate: (factors: Factors, isRight: boolean) => Code
  readonly approve: (operation: { id: string; data: string }, isRight: boolean) => Code
  readonly reject: (operationId: string) => Code
  readonly remove: () => Code
  /** Of 4.0: the code that follows the commit. */
  readonly confirm: (() => Code) | undefined
  /** Asks servers for keys and time. */
  readonly createToken: () => Promise<Code>
  readonly prepareActivation: (activationCode: string) => Promise<Prepared<unknown>>
  readonly skip: (steps: number) => void
}

/** A phone of `prepared`, or a new one of `version` without an activation. */
export function createSimulatedPhone(
  site: Pick<PreparedSite, 'app' | 'appV4'>,
  name: string,
  { userId, version, state }: PreparedPhone | { userId: string; version: PhoneVersion | '4.0'; state?: undefined },
  chance: Chance,
): SimulatedPhone {
  const wrong = (isRight: boolean, bytes: number) =>
    isRight
      ? {}
      : { wrongKeys: { possession: chance.bytes(bytes), knowledge: chance.bytes(bytes), biometry: chance.bytes(bytes) } }
  const json = (requestObject: unknown) => JSON.stringify({ requestObject })
  const url = 'http://s1'
  const codes: Code[] = []
  const parts = version === '4.0' ? partsV4() : partsV3()
  const note = (what: string, isRight: boolean, isCounted: boolean, make: () => Prepared<unknown>): Code => {
    const counter = parts.state.counter
    const code: Code = { phone, what, counter, request: make(), isRight, isCounted, accepted: 0 }
    codes.push(code)
    return code
  }

  function partsV3() {
    const phone = createPhone(
      { url, app: site.app, version: version as PhoneVersion },
      state === undefined ? newState() : (state as never),
    )
    return {
      ...phone,
      validate: (factors: Factors, isRight: boolean) => phone.prepareValidation({ factors, ...wrong(isRight, 16) }),
      signed: (path: string, resourceId: string, body: string, factors: Factors, isRight: boolean) =>
        phone.prepareSigned({ path, resourceId, body, factors, ...wrong(isRight, 16) }),
      confirm: undefined,
    }
  }
  function partsV4() {
    const phone = createPhoneV4(
      { url, app: site.appV4, algorithm: 'EC_P384' },
      state === undefined ? newV4State('EC_P384') : (state as never),
    )
    return {
      ...phone,
      validate: (factors: Factors, isRight: boolean) => phone.prepareValidation({ factors, ...wrong(isRight, 32) }),
      signed: (path: string, resourceId: string, body: string, factors: Factors, isRight: boolean) =>
        phone.prepareSigned({ path, resourceId, body, factors, ...wrong(isRight, 32) }),
      confirm: () => phone.prepareConfirm(true),
    }
  }

  const { confirm } = parts
  const phone: SimulatedPhone = {
    name: `${name} (${version})`,
    userId,
    version,
    codes,
    activationId: () => parts.state.activationId,
    counter: () => parts.state.counter,
    validate: (factors, isRight) =>
      note(`validates with ${factors}${isRight ? '' : ', wrongly'}`, isRight, factors !== 'possession', () =>
        parts.validate(factors, isRight),
      ),
    approve: ({ id, data }, isRight) =>
      note(`approves${isRight ? '' : ', with a wrong code'}`, isRight, true, () =>
        parts.signed(AUTHORIZE, '/operation/authorize', json({ id, data }), 'possession_knowledge', isRight),
      ),
    reject: (id) =>
      note('rejects', true, false, () => parts.signed(CANCEL, '/operation/cancel', json({ id }), 'possession', true)),
    remove: () => note('removes itself', true, true, () => parts.prepareRemove()),
    confirm: confirm && (() => note('confirms', true, true, confirm)),
    createToken: async () => {
      // The counter moves last, when everything else has been asked for.
      const request = await parts.prepareTokenCreate({ factors: 'possession_knowledge' })
      const code: Code = {
        phone,
        what: 'creates a token',
        counter: parts.state.counter - 1,
        request: request as Prepared<unknown>,
        isRight: true,
        isCounted: true,
        accepted: 0,
      }
      codes.push(code)
      return code
    },
    prepareActivation: (activationCode) => parts.prepareActivation(activationCode),
    skip: parts.skip,
  }
  return phone
}

/** A request of the bank, or of an administrator. */
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
export const activationCodeOf = (reply: HttpReply): string =>
  String(member(reply.json, 'activationQrCodeData')).split('#')[0] ?? ''

const AUTHORIZE = '/api/auth/token/app/operation/authorize'
const CANCEL = '/api/auth/token/app/operation/cancel'
