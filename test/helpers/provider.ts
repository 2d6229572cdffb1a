// Starts a server of the bank that pawl asks. It notes every question, and gives the answers of a test.
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Question {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** The parsed body; undefined for protobuf. */
  readonly json: unknown
  readonly body: Buffer
}

export interface ProviderAnswer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  /** The body: text or bytes are sent unchanged, any other value as JSON. */
  readonly body?: unknown
}

export interface Provider {
  /** http://127.0.0.1:PORT */
  readonly url: string
  /** All questions so far. */
  readonly questions: Question[]
  /** Sets the answers from now on; for `undefined` it never answers. */
  readonly answerWith: (answer: (question: Question) => ProviderAnswer | undefined) => void
  readonly close: () => void
}

/** Listens on 127.0.0.1, and answers `{}` until answerWith is called. */
export async function startProvider(): Promise<Provider> {
  const questions: Question[] = []
  let answer: (question: Question) => ProviderAnswer | undefined = () => ({ body: {} })
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { method = '', url: path = '', headers: sent } = request
      const bytes = Buffer.concat(chunks)
      const json: unknown = sent['content-type'] === 'application/x-protobuf' ? undefined : JSON.parse(bytes.toString('utf8'))
      const question = { method, path, headers: sent, json, body: bytes }
      questions.push(question)
      const given = answer(question)
      if (given === undefined) return
      const { status = 200, headers = {}, body } = given
      response.writeHead(status, headers)
      response.end(typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body))
    })
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    questions,
    answerWith: (next) => {
      answer = next
    },
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** JSON members that would change on their way to a phone: the text of each, its path, and the problem that pawl reports. */
export const UNCARRIED: readonly (readonly [text: string, path: string, problem: string])[] = [
  ['"limit":1e999', 'limit', 'must be a number up to 2^53 - 1'],
  ['"limit":-1e400', 'limit', 'must be a number up to 2^53 - 1'],
  ['"account":9007199254740993', 'account', 'must be a number up to 2^53 - 1'],
  ['"account":9007199254740992', 'account', 'must be a number up to 2^53 - 1'],
  ['"accounts":[1,{"id":-12345678901234567890}]', 'accounts.1.id', 'must be a number up to 2^53 - 1'],
  ['"share":1e300', 'share', 'must be a number up to 2^53 - 1'],
  ['"__proto__":{"isAdmin":true}', '__proto__', 'must have another name'],
  ['"of":{"\\u005f_proto__":1}', 'of.__proto__', 'must have another name'],
  ['"name":"a\\u0000b"', 'name', 'must be Unicode text without U+0000'],
  ['"names":["a","\\ud83d"]', 'names.1', 'must be Unicode text without U+0000'],
  ['"of":{"a\\u0000b":1}', 'of.a\u0000b', 'must be Unicode text without U+0000'],
]

/** A text in the form that it has in a log line. */
export const inLog = (text: string): string => JSON.stringify(text).slice(1, -1)

/** Answers that count as failures of any provider, each with its fault. */
export const BROKEN_ANSWERS: readonly [string, ProviderAnswer | undefined][] = [
  ['none within the time limit', undefined],
  ['an error', { status: 500, body: { userId: 'x' } }],
  ['no content', { status: 204, body: '' }],
  ['a redirect', { status: 302, headers: { location: '/elsewhere' }, body: { userId: 'x' } }],
  ['no body', { body: '' }],
  ['what is not JSON', { body: '{"userId":' }],
  ['what is not UTF-8', { body: Buffer.from([0x22, 0xff, 0x22]) }],
  ['a list', { body: ['x'] }],
  ['null', { body: 'null' }],
  ['a text', { body: '"x"' }],
  ['more than 64 KiB', { body: { userId: 'x', padding: 'x'.repeat(64 * 1024) } }],
  ['a member twice', { body: '{"userId":"x","userId":"y"}' }],
  ['a member twice with the same value', { body: '{"userId":"x","name":1,"userId":"x"}' }],
  ['a member twice, in two spellings', { body: '{"userId":"x","user\\u0049d":"y"}' }],
  ['a member twice, behind others and deep down', { body: '{"userId":"x","a":[{},{"b":{"c":1},"\\"":":{","c":2,"b":{}}]}' }],
  ['a member twice, behind a byte order mark', { body: '\uFEFF{"userId":"x","userId":"y"}' }],
  ['two byte order marks', { body: '\uFEFF\uFEFF{"userId":"x"}' }],
  ['an object nested too deeply', { body: `{"userId":"x","deep":${'['.repeat(65)}${']'.repeat(65)}}` }],
]
