// Checks the examples of doors in Python and Go: starts them as a bank does, with a pawl for the check, and calls them with a phone:
//   node scripts/ci/doors.ts python PYTHON   (an interpreter that has examples/doors-python/requirements.txt)
//   node scripts/ci/doors.ts go
import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { withBody } from '../../phone/header.ts'
import { type HttpReply, type HttpRequest, NO_BODY, send } from '../../phone/http.ts'
import { random } from '../../phone/v3/crypto.ts'
import type { VirtualPhone } from '../../phone/v3/virtual-phone.ts'
import { asksForHelp } from '../command-line.ts'
import { bindPhone, createVerifier, project, runToEnd, withServer } from './server.ts'
import { openWay, type Way } from './way.ts'

const USAGE = `Starts an example of doors in front of a pawl of its own, and lets a phone call it:
  node scripts/ci/doors.ts python PYTHON   (an interpreter that has examples/doors-python/requirements.txt)
  node scripts/ci/doors.ts go\n`

/** The command that starts the bank on a free port. The first address that it prints is its own. */
async function prepare(language: string, folder: string): Promise<readonly [string, string[], cwd: string]> {
  const place = join(project, `examples/doors-${language}`)
  if (language === 'python') return [process.argv[3] ?? '', ['-B', '-m', 'uvicorn', 'bank:app', '--port', '0'], place]
  const program = join(folder, 'bank')
  await runToEnd('go', ['build', '-o', program, '.'], place)
  return [program, ['127.0.0.1:0'], place]
}

/** The first address that a process prints. All of its output is added to `printed`. */
function addressOf(child: ChildProcess, printed: string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (chunk: string) => {
        printed.push(chunk)
        const [url] = /http:\/\/127\.0\.0\.1:\d+(?=\D)/.exec(printed.join('')) ?? []
        if (url !== undefined) resolve(url)
      })
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`the bank ended with ${String(code)}`)))
  })
}

interface Scene {
  /** The address of the example. */
  readonly url: string
  /** The way from the example to pawl. */
  readonly way: Way
  readonly phone: VirtualPhone
  readonly userId: string
}

/** Throws at the first wrong answer. */
async function judge(scene: Scene): Promise<void> {
  await judgeCodes(scene)
  await judgeTokens(scene)
  await judgeEnvelopes(scene)
  await judgeLostAnswers(scene)
}

const TRANSFER = '{ "amount" : 12.5 }'
const sign = ({ phone }: Scene, more: { readonly resourceId?: string; readonly body?: string } = {}): HttpRequest =>
  phone.prepareSigned({ path: '/transfer', resourceId: '/transfer', body: TRANSFER, ...more })

async function judgeCodes(scene: Scene): Promise<void> {
  const { userId } = scene
  const right = sign(scene)
  const served = await expectStatus(scene, 'a right code', right, 200)
  expectJson('a right code', served, { from: userId, amount: 12.5 })
  await expectStatus(scene, 'the same request again', right, 401)
  await expectStatus(scene, 'another body', withBody(sign(scene), '{ "amount" : 99.5 }'), 401)
  await expectStatus(scene, 'the same JSON in other bytes', withBody(sign(scene), '{"amount":12.5}'), 401)
  await expectStatus(scene, 'a code for something else', sign(scene, { resourceId: '/accounts' }), 401)
  await expectStatus(scene, 'a query that is not covered', { ...sign(scene), path: '/transfer?amount=99.5' }, 401)
  await expectStatus(scene, 'no header', { ...sign(scene), headers: {} }, 401)
  // pawl would answer these requests as a mistake of the bank, so the example has to refuse them itself.
  await expectStatus(scene, 'a long query', { ...sign(scene), path: `/transfer?${'x'.repeat(20_000)}` }, 401)
  for (const method of ['OPTIONS', 'TRACE']) {
    const { status } = await send(scene.url, { ...sign(scene), method })
    if (status !== 401 && status !== 405) throw new Error(`the method ${method}: ${status} in place of 401 or 405`)
  }
  const twice = sign(scene)
  const value = twice.headers['X-PowerAuth-Authorization'] ?? ''
  const other = { 'X-PowerAuth-Authorization': value, 'X-Svc-Authorization': value.replace('pa_nonce="', 'pa_nonce="A') }
  await expectStatus(scene, 'two headers', { ...twice, headers: other }, 401)
  const same = { 'X-PowerAuth-Authorization': value, 'X-Svc-Authorization': value }
  await expectStatus(scene, 'one header by both names', { ...twice, headers: same }, 200)
  await expectStatus(scene, 'a long header', { ...twice, headers: { 'X-PowerAuth-Authorization': 'x'.repeat(5_000) } }, 401)
  await expectStatus(scene, 'an empty header', { ...twice, headers: { 'X-PowerAuth-Authorization': '' } }, 401)
  await expectStatus(scene, 'a long body', sign(scene, { body: `"${'x'.repeat(140_000)}"` }), 413)
  await expectStatus(scene, 'no JSON behind a right code', sign(scene, { body: 'amount' }), 400)
}

async function judgeTokens(scene: Scene): Promise<void> {
  const { phone, userId } = scene
  const token = await phone.createToken('possession')
  const read = async (one = token): Promise<HttpRequest> => ({
    method: 'GET',
    path: '/accounts',
    headers: phone.tokenHeader(one, await phone.serverTime()),
    body: NO_BODY,
  })
  const served = await expectStatus(scene, 'a token', await read(), 200)
  expectJson('a token', served, { of: userId, accounts: ['DE89370400440532013000'] })
  await expectStatus(scene, 'a token with another secret', await read({ ...token, secret: random(16) }), 401)
  await expectStatus(scene, 'no token', { ...(await read()), headers: {} }, 401)
  await expectStatus(scene, 'an empty token', { ...(await read()), headers: { 'X-PowerAuth-Token': '' } }, 401)
  const [value = ''] = Object.values((await read()).headers)
  await expectStatus(scene, 'a token where a code belongs', { ...sign(scene), headers: { 'X-PowerAuth-Token': value } }, 401)
}

async function judgeEnvelopes(scene: Scene): Promise<void> {
  const { phone, userId } = scene
  const sealed = await phone.prepareEncrypted('/statement', { plaintext: '{"month":"2026-11"}' })
  const served = await expectStatus(scene, 'an envelope', sealed, 200)
  expectSame('an envelope', sealed.open(served), { of: userId, month: '2026-11', lines: [] })
  await expectStatus(scene, 'the same envelope again', sealed, 401)
  await expectStatus(scene, 'no envelope', withBody(sealed, 'month'), 401)
  await expectStatus(scene, 'a list', withBody(sealed, '[]'), 401)
  // pawl would answer these bodies as a mistake of the bank, so the example has to refuse them itself.
  for (const member of ['"__proto__":"a"', '"a":"\\u0000"', '"a":"\\ud800"', `"a":${'['.repeat(500)}${']'.repeat(500)}`])
    await expectStatus(scene, `an envelope with ${member.slice(0, 20)}`, withBody(sealed, `{"encryptedData":"x",${member}}`), 401)
}

/** Checks that the bank refuses requests while pawl does not answer in time, and asks for a lost answer again, under the same key. */
async function judgeLostAnswers(scene: Scene): Promise<void> {
  const { way, phone } = scene
  const before = way.keys.length
  way.loseNext()
  await expectStatus(scene, 'a right code whose answer is lost', sign(scene), 200)
  const [first, second, ...more] = way.keys.slice(before)
  if (first === undefined || first !== second || more.length > 0)
    throw new Error(`one request must make two calls with the same key: ${way.keys.slice(before).join(', ')}`)
  // Earlier requests may have made two calls as well, because a busy machine may need two seconds. So only neighbours may share a key.
  const others = way.keys.filter((key, index) => key !== way.keys[index - 1])
  if (new Set(others).size !== others.length) throw new Error(`two requests have the same key: ${way.keys.join(', ')}`)
  const token = await phone.createToken('possession')
  const requests = async (): Promise<HttpRequest[]> => [
    sign(scene),
    { method: 'GET', path: '/accounts', headers: phone.tokenHeader(token, await phone.serverTime()), body: NO_BODY },
    await phone.prepareEncrypted('/statement', { plaintext: '{"month":"2026-11"}' }),
  ]
  for (const [what, answer] of Object.entries(way.faults))
    await way.with(answer, async () => {
      // The requests are sent at once, because each waits until its time limit.
      await Promise.all((await requests()).map((request) => expectStatus(scene, `${request.path}: pawl ${what}`, request, 503)))
    })
  // After a 503 a phone may send the same request again, because nobody has judged it.
  const waiting = await requests()
  await way.close()
  for (const request of waiting) await expectStatus(scene, `${request.path}: pawl is stopped`, request, 503)
  await way.reopen()
  for (const request of waiting) await expectStatus(scene, `${request.path}: pawl is back`, request, 200)
}

async function expectStatus({ url }: Scene, what: string, request: HttpRequest, status: number): Promise<HttpReply> {
  const late = sleep(ANSWER_MS, undefined, { ref: false }).then(() => {
    throw new Error(`${what}: no answer in ${ANSWER_MS / 1000} s`)
  })
  const reply = await Promise.race([send(url, request), late])
  if (reply.status !== status) throw new Error(`${what}: ${reply.status} in place of ${status}: ${reply.text.slice(0, 500)}`)
  process.stdout.write(`${what}: ${status}\n`)
  return reply
}

/** Far more than two attempts of two seconds take, because the machine may be busy. */
const ANSWER_MS = 60_000

const expectJson = (what: string, { json }: HttpReply, expected: object): void => expectSame(what, json, expected)

function expectSame(what: string, found: unknown, expected: object): void {
  const [is, should] = [found, expected].map((value) => JSON.stringify(Object.entries(value as object).toSorted()))
  if (is !== should) throw new Error(`${what}: ${is} in place of ${should}`)
}

const [language = ''] = process.argv.slice(2)
if (asksForHelp(process.argv.slice(2)) || !(language === 'go' || (language === 'python' && process.argv[3] !== undefined))) {
  process.stdout.write(USAGE)
  process.exit(asksForHelp(process.argv.slice(2)) ? 0 : 2)
}

await withServer('doors', { PAWL_FIRST_APPLICATION: 'my-app' }, async (server) => {
  const [command, args, cwd] = await prepare(language, server.folder)
  const way = await openWay(server.url)
  const env = { ...process.env, PAWL_URL: way.url, BANK: `web-tier:${await createVerifier(server, 'web-tier')}` }
  const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const printed: string[] = []
  try {
    await judge({ url: await addressOf(child, printed), way, ...(await bindPhone(server)) })
    process.stdout.write(`doors-${language}: a phone called it, and was served and refused as it should be\n`)
  } catch (error) {
    process.stdout.write(printed.join(''))
    throw error
  } finally {
    child.kill()
    await way.close()
  }
})
