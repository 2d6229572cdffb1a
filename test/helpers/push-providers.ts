// Starts replacements of APNs and FCM: servers that speak their protocols, check credentials, keep pushes and give the answers of a test
// (mobile-token §7.1). They are written from the documentation of Apple and Google, without code of the server.
import { generateKeyPairSync, type KeyObject, verify } from 'node:crypto'
import { createServer as createHttpServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import {
  createSecureServer,
  createServer,
  type Http2Server,
  type IncomingHttpHeaders as Http2Headers,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { AddressInfo } from 'node:net'
import type { TestCertificate } from './certificates.ts'

/** A push that was received, accepted or not. */
export interface ReceivedPush {
  /** The token of the device. */
  readonly token: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly json: Readonly<Record<string, unknown>>
  /** The values that the SDK reads. */
  readonly data: Readonly<Record<string, string>>
  /** The claims of the JWT or of the access token. */
  readonly claims: Readonly<Record<string, unknown>>
  readonly status: number
}

export interface PushAnswer {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly json?: unknown
}

/** The answer to a push. `hang`: none; `reset`: the connection ends; `cut`: it ends in the middle of the answer that a token is gone. */
type Answered = PushAnswer | 'hang' | 'reset' | 'cut'
export type AnswerPush = (push: Omit<ReceivedPush, 'status'>) => Answered | Promise<Answered>

export interface PushProviderServer {
  readonly url: string
  /** Settings of a server that sends its pushes here. */
  readonly env: Readonly<Record<string, string>>
  /** Texts that no log, answer or table may contain. */
  readonly secrets: readonly string[]
  readonly received: ReceivedPush[]
  /** The pushes that were answered 200. */
  readonly accepted: () => readonly ReceivedPush[]
  readonly take: () => ReceivedPush[]
  readonly answerWith: (answer: AnswerPush | number) => void
  /** The number so far of connections (APNs), or of issued access tokens (FCM). */
  readonly openings: () => number
  readonly close: () => Promise<void>
}

/** A text in every access token. */
const ACCESS_MARK = 'never-to-be-seen'
export const APNS_KEY_ID = 'ABC123DEFG'
export const APNS_TEAM_ID = 'TEAM567890'
export const APNS_TOPIC = 'com.example.bank'

/** Starts an APNs; without a certificate it uses no TLS. It answers 403 to a JWT that does not meet Apple's rules. */
export async function startApns({
  certificate,
  now = Date.now,
}: {
  certificate?: TestCertificate
  now?: () => number
} = {}): Promise<PushProviderServer> {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const kept = keepPushes()
  const sessions = new Set<ServerHttp2Session>()
  let openings = 0
  const server: Http2Server = certificate
    ? (createSecureServer({ cert: certificate.pem, key: certificate.privateKeyPem }) as unknown as Http2Server)
    : createServer()
  server.on('session', (session: ServerHttp2Session) => {
    openings += 1
    sessions.add(session)
    session.on('close', () => sessions.delete(session))
    session.on('error', () => undefined)
  })
  const takePush = async (stream: ServerHttp2Stream, headers: Http2Headers, text: string): Promise<void> => {
    const [, token = ''] = /^\/3\/device\/([^/]+)$/.exec(String(headers[':path'])) ?? []
    const json = JSON.parse(text) as Record<string, unknown>
    const data = Object.fromEntries(Object.entries(json).filter(([name]) => name !== 'aps')) as Record<string, string>
    const [, jwt = ''] = /^bearer (.+)$/.exec(String(headers.authorization)) ?? []
    const claims = readJwt(jwt, publicKey, { alg: 'ES256', kid: APNS_KEY_ID })
    const push = { token, headers, json, data, claims: claims ?? {} }
    const isFresh = Math.abs(now() / 1000 - Number(claims?.['iat'])) < 3_600
    const isRight = claims?.['iss'] === APNS_TEAM_ID && headers['apns-topic'] === APNS_TOPIC && headers[':method'] === 'POST'
    const answer = await kept.answer(
      push,
      isRight && isFresh ? undefined : { status: 403, json: { reason: 'InvalidProviderToken' } },
    )
    if (answer === 'hang') return
    if (answer === 'reset') {
      for (const session of sessions) session.destroy()
      return
    }
    if (stream.destroyed) return
    if (answer === 'cut') {
      stream.respond({ ':status': 410 })
      stream.write('{"reason":"Unregistered","timest', () => setTimeout(() => stream.session?.destroy(), CUT_MS))
      return
    }
    stream.respond({ ':status': answer.status, 'apns-id': String(headers['apns-id']), ...answer.headers })
    stream.end(answer.json === undefined ? undefined : JSON.stringify(answer.json))
  }
  server.on('stream', (stream: ServerHttp2Stream, headers: Http2Headers) => {
    const chunks: Buffer[] = []
    stream.on('error', () => undefined)
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    stream.on('end', () => {
      const text = Buffer.concat(chunks).toString('utf8')
      // A stream that was reset also gets this event.
      if (!stream.aborted && !stream.destroyed && text.endsWith('}')) void takePush(stream, headers, text)
    })
  })
  const port = await listen(server)
  const url = `${certificate ? 'https' : 'http'}://127.0.0.1:${port}`
  const pem = privateKey.export({ format: 'pem', type: 'pkcs8' })
  return {
    ...kept.server,
    url,
    env: {
      PAWL_APNS_KEY: pem,
      PAWL_APNS_KEY_ID: APNS_KEY_ID,
      PAWL_APNS_TEAM_ID: APNS_TEAM_ID,
      PAWL_APNS_TOPIC: APNS_TOPIC,
      PAWL_APNS_URL: url,
      PAWL_APNS_DEVELOPMENT_URL: url,
    },
    secrets: linesOf(pem),
    openings: () => openings,
    close: async () => {
      for (const session of sessions) session.destroy()
      await new Promise<void>((resolve) => {
        server.close(() => resolve())
      })
    },
  }
}

export interface FcmServer extends PushProviderServer {
  /** Sets the answer of the token endpoint from now on; for undefined it issues tokens. */
  readonly answerTokenWith: (answer: PushAnswer | 'hang' | undefined) => void
}

/** Starts an FCM with its token endpoint on one port. It answers 401 to an access token that it has not issued. */
export async function startFcm({ expiresIn = 3_600 } = {}): Promise<FcmServer> {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const kept = keepPushes()
  const tokens = new Set<string>()
  let tokenAnswer: PushAnswer | 'hang' | undefined
  const send = (response: ServerResponse, { status, headers, json }: PushAnswer): void => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(json ?? {}))
  }
  const giveToken = (response: ServerResponse, text: string): void => {
    if (tokenAnswer === 'hang') return
    if (tokenAnswer) return send(response, tokenAnswer)
    const form = new URLSearchParams(text)
    const claims = readJwt(form.get('assertion') ?? '', publicKey, { alg: 'RS256' })
    const isRight =
      form.get('grant_type') === 'urn:ietf:params:oauth:grant-type:jwt-bearer' &&
      claims?.['iss'] === CLIENT_EMAIL &&
      claims['aud'] === `${url}/token` &&
      claims['scope'] === 'https://www.googleapis.com/auth/firebase.messaging' &&
      Number(claims['exp']) - Number(claims['iat']) === 3_600
    if (!isRight) return send(response, { status: 400, json: { error: 'invalid_grant' } })
    const token = `ya29.access-${tokens.size + 1}-${ACCESS_MARK}`
    tokens.add(token)
    send(response, { status: 200, json: { access_token: token, expires_in: expiresIn, token_type: 'Bearer' } })
  }
  const takePush = async (response: ServerResponse, path: string, headers: IncomingHttpHeaders, text: string): Promise<void> => {
    const json = JSON.parse(text) as Record<string, unknown>
    const message = json['message'] as { token: string; data: Record<string, string> }
    const [, shown = ''] = /^Bearer (.+)$/.exec(String(headers.authorization)) ?? []
    const push = { token: message.token, headers, json, data: message.data, claims: { shown } }
    const refusal = tokens.has(shown) ? undefined : { status: 401, json: { error: { code: 401, status: 'UNAUTHENTICATED' } } }
    const wrongPath = path === '/v1/projects/bank-example/messages:send' ? undefined : { status: 404 }
    const answer = await kept.answer(push, wrongPath ?? refusal)
    if (answer === 'hang') return
    if (answer === 'reset') response.destroy()
    else if (answer === 'cut')
      response.writeHead(404).write('{"error":{"status":"NOT_FOUND","det', () => setTimeout(() => response.destroy(), CUT_MS))
    else send(response, answer)
  }
  const server = createHttpServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString('utf8')
      if (request.url === '/token') giveToken(response, text)
      else void takePush(response, request.url ?? '', request.headers, text)
    })
  })
  const url = `http://127.0.0.1:${await listen(server)}`
  const pem = privateKey.export({ format: 'pem', type: 'pkcs8' })

  const account = {
    type: 'service_account',
    project_id: 'bank-example',
    private_key_id: 'f00',
    private_key: pem,
    client_email: CLIENT_EMAIL,
    token_uri: `${url}/token`,
  }
  return {
    ...kept.server,
    url,
    env: { PAWL_FCM_SERVICE_ACCOUNT: JSON.stringify(account), PAWL_FCM_URL: url },
    secrets: [...linesOf(pem), ACCESS_MARK],
    openings: () => tokens.size,
    answerTokenWith: (answer) => {
      tokenAnswer = answer
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** The time in which written bytes arrive. */
const CUT_MS = 50
const CLIENT_EMAIL = 'pusher@bank-example.iam.gserviceaccount.com'

const linesOf = (pem: string): readonly string[] => pem.split('\n').filter((line) => line.length > 20 && !line.startsWith('-'))

function keepPushes() {
  const received: ReceivedPush[] = []
  let answering: AnswerPush | number = 200
  return {
    /** `refusal`: the answer to a push without a valid credential. */
    answer: async (push: Omit<ReceivedPush, 'status'>, refusal: PushAnswer | undefined): Promise<Answered> => {
      const kept = { ...push, status: 0 }
      received.push(kept)
      const answer = refusal ?? (typeof answering === 'number' ? { status: answering } : await answering(push))
      if (typeof answer === 'object') kept.status = answer.status
      return answer
    },
    server: {
      received,
      accepted: () => received.filter(({ status }) => status === 200),
      take: () => received.splice(0),
      answerWith: (answer: AnswerPush | number) => {
        answering = answer
      },
    },
  }
}

/** The claims of a JWT; undefined when its signature or a claim is wrong. */
function readJwt(jwt: string, key: KeyObject, expected: Readonly<Record<string, string>>): Record<string, unknown> | undefined {
  const [header = '', payload = '', signature = ''] = jwt.split('.')
  const signed = Buffer.from(`${header}.${payload}`)
  const isSigned = verify('sha256', signed, { key, dsaEncoding: 'ieee-p1363' }, Buffer.from(signature, 'base64url'))
  if (!isSigned) return undefined
  const shown = JSON.parse(Buffer.from(header, 'base64url').toString('utf8')) as Record<string, unknown>
  if (Object.entries(expected).some(([name, value]) => shown[name] !== value)) return undefined
  return JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')) as Record<string, unknown>
}

const listen = (server: Http2Server | ReturnType<typeof createHttpServer>): Promise<number> =>
  new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
  })
