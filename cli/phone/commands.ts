// Runs the commands of `pawl phone`.
import { randomBytes } from 'node:crypto'
import { newHandset, upgradeHandset } from '../../phone/handset-open.ts'
import {
  type HandsetApp,
  type HandsetIdentity,
  type HandsetRecord,
  type ListedOperation,
  readActivationCode,
} from '../../phone/handset.ts'
import type { HttpReply } from '../../phone/http.ts'
import type { Prepared } from '../../phone/v3/state.ts'
import { PHONE_ALGORITHMS } from '../../phone/v4/crypto.ts'
import { readApplication, sdkConfigOf } from '../applications.ts'
import { openBank } from '../bank.ts'
import type { Answer, Terminal } from '../command.ts'
import { phonesUrl, readUrl, showAddress } from '../environment.ts'
import { Fault, usageFault } from '../fault.ts'
import { layOutTable } from '../output.ts'
import { logIn } from './login.ts'
import type { BindValues, CallValues, DecideValues, PhoneValues, SignValues } from './options.ts'
import { readPicture } from './picture.ts'
import { readSdk } from './sdk.ts'
import { drawOperation, quote } from './screen.ts'
import { openPhones, readPassword, readUnlock, type Session, toFault, withPhone } from './session.ts'

const VERSIONS = ['3.0', '3.1', '3.2', '3.3', '4.0'] as const
const DIALECTS = { powerauth: 'PowerAuth', svc: 'Svc' } as const

/** Binds a new phone by the code of a registration, or by a login of its user. */
export async function bind(given: string | undefined, values: BindValues, terminal: Terminal): Promise<Answer> {
  if ([given, values.picture, values.oidc].filter((way) => way !== undefined).length !== 1)
    throw usageFault('give the code, or --picture FILE, or --oidc PROVIDER')
  const text = values.oidc === undefined ? (given ?? readPicture(values.picture ?? '')) : undefined
  const identity = await readIdentity(values, terminal)
  const store = await openPhones(values, terminal, false)
  try {
    if (!store.isSealed && !values.insecureStore)
      throw usageFault(`${store.path} has no passphrase: choose another --store, or say --insecure-store`)
    const name = values.name ?? `phone-${randomBytes(2).toString('hex')}`
    if (store.phones.has(name)) throw usageFault(`there is a phone ${name} already: --name gives another`)
    const code = text === undefined ? '' : readActivationCode(text, identity.app)
    const password = await readPassword(terminal, 'Password for the new phone: ')
    const phone = newHandset(identity, (record) => {
      // A phone that is not bound is not kept.
      if (record.state.activationId !== '') store.phones.set(name, record)
      store.save()
    })
    const login = values.oidc === undefined ? undefined : await logIn(phone, values.oidc, terminal)
    const fingerprint = await phone.bind(login ?? code, name, password, values.otp)
    const { activationId } = phone.record.state
    return {
      json: { phone: name, activationId, fingerprint, store: store.path },
      text: `${name} is bound to activation ${activationId}.\nIts fingerprint is ${fingerprint}: the bank compares it before a commit.\n`,
    }
  } catch (error) {
    throw toFault(error, identity.url)
  } finally {
    store.close()
  }
}

async function readIdentity(values: BindValues, terminal: Terminal): Promise<HandsetIdentity> {
  const algorithm = PHONE_ALGORITHMS.find((name) => name === values.algorithm)
  if (values.algorithm !== undefined && algorithm === undefined)
    throw usageFault(`--algorithm is one of ${PHONE_ALGORITHMS.join(', ')}`)
  const version = VERSIONS.find((one) => one === (values.protocol ?? (algorithm === undefined ? '3.3' : '4.0')))
  if (version === undefined) throw usageFault(`--protocol is one of ${VERSIONS.join(', ')}`)
  if ((version === '4.0') !== (algorithm !== undefined)) throw usageFault('--algorithm belongs to protocol 4.0, which needs it')
  const dialect = DIALECTS[(values.dialect ?? 'powerauth') as keyof typeof DIALECTS]
  if (dialect === undefined) throw usageFault('--dialect is powerauth or svc')
  const { operationsUrl } = values
  const { app, serviceBaseUrl } = await readApp(values, terminal)
  const url = readUrl(values.phonesUrl ?? serviceBaseUrl ?? phonesUrl(terminal.env))
  return {
    url,
    ...(operationsUrl !== undefined && { operationsUrl: readUrl(operationsUrl) }),
    dialect,
    version,
    ...(algorithm !== undefined && { algorithm }),
    app,
  }
}

/** Reads the values of the app from the command line, or from a server of pawl, which also says at which URL it serves phones. */
async function readApp(
  values: BindValues,
  terminal: Terminal,
): Promise<{ readonly app: HandsetApp; readonly serviceBaseUrl?: string }> {
  const { sdkConfig, appKey, appSecret, masterKey } = values
  if (sdkConfig !== undefined) return { app: readSdk(sdkConfig) }
  if (appKey !== undefined && appSecret !== undefined && masterKey !== undefined)
    return { app: { applicationKey: appKey, applicationSecret: appSecret, masterPublicKey: masterKey } }
  if (values.app === undefined)
    throw usageFault(
      'what is compiled into the app is needed: --sdk-config, or --app-key, --app-secret and --master-key, or --app of a server of pawl',
    )
  const detail = await readApplication(openBank(values, terminal), values.app)
  return { app: readSdk(sdkConfigOf(detail)), serviceBaseUrl: detail.serviceBaseUrl }
}

export async function listPhones(values: PhoneValues, terminal: Terminal): Promise<Answer> {
  const store = await openPhones(values, terminal)
  store.close()
  const phones = [...store.phones].map(([name, record]) => describe(name, record))
  return { json: { store: store.path, phones }, text: phones.length === 0 ? 'none\n' : layOutTable(phones) }
}

const describe = (phone: string, { identity, state, isBiometryOn }: HandsetRecord) => ({
  phone,
  url: identity.url,
  protocol: identity.version,
  algorithm: identity.algorithm,
  activationId: state.activationId,
  biometry: isBiometryOn ? 'on' : 'off',
})

/** Confirms an activation of 4.0 that is not confirmed yet, and makes a missing token, which lists operations. */
async function prepareTo(session: Session, terminal: Terminal): Promise<void> {
  const { phone } = session
  if (phone.record.isConfirmed && phone.hasToken()) return
  const password = await readPassword(terminal)
  await phone.confirm({ password })
  if (!phone.hasToken()) await phone.createToken({ password })
}

export const list = (values: PhoneValues & { language: string | undefined }, terminal: Terminal): Promise<Answer> =>
  withPhone(values, terminal, async (session) => {
    await prepareTo(session, terminal)
    const operations = await session.phone.list(values.language)
    const shown = operations.map((operation) => `${operation.id}\n${drawOperation(operation)}`).join('')
    return { json: { operations }, text: operations.length === 0 ? 'Nothing waits.\n' : shown }
  })

export const approve = (
  id: string | undefined,
  values: DecideValues & { biometry: boolean },
  terminal: Terminal,
): Promise<Answer> =>
  decide(id, values, terminal, 'approved', async ({ phone }, operation) =>
    phone.approve(operation, await readUnlock(values.biometry, terminal, drawOperation(operation))),
  )

export const reject = (
  id: string | undefined,
  values: DecideValues & { reason: string | undefined },
  terminal: Terminal,
): Promise<Answer> =>
  decide(id, values, terminal, 'rejected', ({ phone }, operation) => phone.reject(operation.id, values.reason))

async function decide(
  id: string | undefined,
  values: DecideValues,
  terminal: Terminal,
  done: string,
  act: (session: Session, operation: ListedOperation) => Promise<unknown>,
): Promise<Answer> {
  if (id !== undefined && values.all) throw usageFault('an operation and --all exclude each other')
  return withPhone(values, terminal, async (session) => {
    await prepareTo(session, terminal)
    const waiting = await session.phone.list()
    const meant = values.all ? waiting : waiting.filter((one) => one.id === id || (id === undefined && waiting.length === 1))
    if (meant.length === 0 && id !== undefined) throw new Fault('missing', `${id} does not wait for ${session.name}`)
    if (meant.length === 0 && waiting.length > 0) throw usageFault(`${waiting.length} operations wait: name one, or say --all`)
    const lines: string[] = []
    for (const operation of meant) {
      await act(session, operation)
      lines.push(`${drawOperation(operation)}${session.name} ${done} ${operation.id}.\n`)
    }
    return { json: { [done]: meant.map((one) => one.id) }, text: lines.length === 0 ? 'Nothing waits.\n' : lines.join('') }
  })
}

/** Makes a request with an authentication code, and prints it as a curl command or sends it. */
export const sign = (values: SignValues, terminal: Terminal): Promise<Answer> =>
  withPhone(values, terminal, async ({ phone }) => {
    const { method = 'POST', body, query, path = phone.generation.validation.path } = values
    const resourceId = values.resourceId ?? (values.path === undefined ? phone.generation.validation.resourceId : undefined)
    if (resourceId === undefined) throw usageFault('--path needs --resource-id')
    if (!path.startsWith('/')) throw usageFault(`--path begins with a slash, and ${path} does not`)
    const unlock = values.possession ? undefined : await readUnlock(values.biometry, terminal)
    const request = phone.sign(
      { method, path, resourceId, ...(method !== 'GET' && { body: body ?? '{}' }), ...(query !== undefined && { query }) },
      unlock,
    )
    const { url } = phone.record.identity
    if (!values.send) {
      const headers = Object.entries(request.headers).map(([header, value]) => `-H ${quote(`${header}: ${value}`)}`)
      const data = request.body.length === 0 ? [] : [`-d ${quote(Buffer.from(request.body).toString())}`]
      const curl = ['curl', `-w '\\n'`, `-X ${method}`, quote(url + request.path), ...headers, ...data].join(' ')
      return {
        json: { method, url: url + request.path, headers: request.headers, body: Buffer.from(request.body).toString() },
        text: `${curl}\n`,
      }
    }
    const { status, text, json } = await phone.transfer(request)
    return { json: { status, body: json ?? text }, text: `HTTP ${status} ${text}\n`, exitCode: status === 200 ? 0 : 1 }
  })

/** Calls an endpoint of the bank as its app would: signed, encrypted, both, or with a token. */
export const call = (target: string, values: CallValues, terminal: Terminal): Promise<Answer> =>
  withPhone(values, terminal, async (session) => {
    const { origin, pathname, search } = readTarget(target)
    const { resourceId, body, method = body === undefined && !values.encrypt ? 'GET' : 'POST' } = values
    if (values.token && (resourceId !== undefined || values.encrypt)) throw usageFault('--token stands alone')
    if (!values.token && !values.encrypt && resourceId === undefined)
      throw usageFault('say how the request is protected: --resource-id, --encrypt, both, or --token')
    if (values.encrypt && (method !== 'POST' || search !== '')) throw usageFault('--encrypt sends a POST without a query')
    // The bank's endpoint may be away while pawl is not.
    const send = (request: Prepared<unknown>) =>
      session.phone.transfer(request, origin).catch((error: unknown) => {
        throw toFault(error, origin)
      })
    const isSigned = resourceId !== undefined
    const unlock = isSigned && !values.possession ? await readUnlock(values.biometry, terminal) : undefined
    if (values.encrypt) {
      if (values.possession) throw usageFault('--encrypt with --resource-id needs the password or --biometry')
      const request = await session.phone.encrypt(
        { path: pathname, resourceId: resourceId ?? '', plaintext: body ?? '{}' },
        unlock,
      )
      return describeReply(await send(request), request)
    }
    const parts = {
      method,
      path: pathname,
      ...(search !== '' && { query: search.slice(1) }),
      ...(body !== undefined && { body }),
    }
    if (isSigned) return describeReply(await send(session.phone.sign({ ...parts, resourceId }, unlock)))
    await prepareTo(session, terminal)
    const headers = { ...(body !== undefined && JSON_TYPE), ...(await session.phone.generation.tokenHeader()) }
    const path = `${pathname}${search}`
    return describeReply(await send({ ...NOT_OPENED, method, path, headers, body: Buffer.from(body ?? '') }))
  })

const JSON_TYPE = { 'Content-Type': 'application/json' } as const
const NOT_OPENED = { open: (reply: HttpReply): unknown => reply.json }

/** Parses the address of an endpoint. Throws a Fault when it is no HTTP URL. */
function readTarget(target: string): URL {
  const url = URL.canParse(target) ? new URL(target) : undefined
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:')
    throw usageFault(`${showAddress(target)} is no address of an endpoint`)
  return url
}

/** Describes an answer. It opens an encrypted answer; errors are never encrypted. */
function describeReply(reply: HttpReply, sealed?: Prepared<unknown>): Answer {
  const isGood = reply.status >= 200 && reply.status < 300
  const body = sealed && reply.status === 200 ? sealed.open(reply) : (reply.json ?? reply.text)
  const shown = typeof body === 'string' ? body : JSON.stringify(body)
  const how = sealed && reply.status === 200 ? ', opened' : ''
  return { json: { status: reply.status, body }, text: `HTTP ${reply.status}${how} ${shown}\n`, exitCode: isGood ? 0 : 1 }
}

export const status = (values: PhoneValues, terminal: Terminal): Promise<Answer> =>
  withPhone(values, terminal, async ({ name, phone }) => ({
    json: { ...describe(name, phone.record), ...(await phone.status()) },
  }))

/** Makes a token anew, and prints the header of one request with it. */
export const token = (values: PhoneValues & { remove: boolean }, terminal: Terminal): Promise<Answer> =>
  withPhone(values, terminal, async (session) => {
    const { phone } = session
    if (values.remove) {
      const removed = await phone.removeTokens()
      return { json: { removed }, text: `${removed} removed\n` }
    }
    await prepareTo(session, terminal)
    const headers = await phone.generation.tokenHeader()
    return {
      json: { headers },
      text: Object.entries(headers)
        .map(([name, value]) => `${name}: ${value}\n`)
        .join(''),
    }
  })

/** Asks for a code for another application, with an OTP of its own (mobile-token §9). */
export const handOver = (
  applicationId: string,
  values: PhoneValues & { biometry: boolean },
  terminal: Terminal,
): Promise<Answer> =>
  withPhone(values, terminal, async ({ phone }) => {
    const otp = randomBytes(16).toString('hex')
    const code = await phone.askForCode(applicationId, otp, await readUnlock(values.biometry, terminal))
    return {
      json: { application: applicationId, code, otp },
      text: `Within five minutes: pawl phone bind '${code}' --otp ${otp} --app ${applicationId} --name NAME\n`,
    }
  })

export const rename = (name: string, values: PhoneValues, terminal: Terminal): Promise<Answer> =>
  withPhone(values, terminal, async ({ phone }) => {
    await phone.rename(name, { password: await readPassword(terminal) })
    return { json: { activationName: name }, text: `the activation is called ${name}\n` }
  })

/** Changes the password, after the server said that the old one is right. */
export const password = (values: PhoneValues, terminal: Terminal): Promise<Answer> =>
  withPhone(values, terminal, async ({ phone }) => {
    const old = await readPassword(terminal)
    const next = await readPassword(terminal, 'New password: ', 'PAWL_PHONE_NEW_PASSWORD')
    await phone.changePassword(old, next)
    return { json: { isChanged: true }, text: 'the password is changed\n' }
  })

export const biometry = (state: string, values: PhoneValues, terminal: Terminal): Promise<Answer> =>
  withPhone(values, terminal, async ({ phone }) => {
    if (state !== 'on' && state !== 'off') throw usageFault('biometry is on or off')
    await phone.setBiometry(state === 'on', state === 'on' ? { password: await readPassword(terminal) } : {})
    return { json: { biometry: state }, text: `biometry is ${state}\n` }
  })

export const upgrade = (values: PhoneValues & { algorithm: string | undefined }, terminal: Terminal): Promise<Answer> =>
  withPhone(values, terminal, async ({ name, phone, store }) => {
    const algorithm = PHONE_ALGORITHMS.find((one) => one === (values.algorithm ?? 'EC_P384_ML_L3'))
    if (algorithm === undefined) throw usageFault(`--algorithm is one of ${PHONE_ALGORITHMS.join(', ')}`)
    const { record, fingerprint } = await upgradeHandset(phone, algorithm, {
      password: await readPassword(terminal),
      pending: phone.record.pending,
      keep: (pending) => {
        phone.record.pending = pending
        store.save()
      },
    })
    store.phones.set(name, record)
    store.save()
    const known = fingerprint === undefined ? '' : `, its fingerprint is ${fingerprint}`
    return {
      json: { phone: name, protocol: '4.0', algorithm, fingerprint },
      text: `${name} is a phone of 4.0 (${algorithm})${known}\n`,
    }
  })

/** Ends the activation, and forgets the phone; with `--local` only forgets it. */
export const remove = (values: PhoneValues & { local: boolean }, terminal: Terminal): Promise<Answer> =>
  withPhone(values, terminal, async ({ name, phone, store }) => {
    if (!values.local) await phone.remove({ password: await readPassword(terminal) })
    store.phones.delete(name)
    store.save()
    return { json: { removed: name }, text: `${name} is removed\n` }
  })
