// Declares pawl operation: creates, reads, cancels and searches operations, which users approve or reject.
import { APPLICATION_OPTION, bankCommand } from '../bank-command.ts'
import type { Bank } from '../bank.ts'
import { flag, many, type Noun, text } from '../command.ts'
import { Fault, usageFault } from '../fault.ts'
import { readPairs } from '../json-argument.ts'
import { layOut } from '../output.ts'
import { answerPages, PAGE_OPTIONS } from '../pages.ts'
import { drawQrCode } from '../qr-code.ts'
import { compact, toPath, toQuery } from '../query.ts'
import { OTP_FILE, readOtp } from '../secret-argument.ts'
import { parseCount, parseMilliseconds } from '../time.ts'

const WAIT = { wait: text('SECONDS', 'waits so long for an end; exit code 1 when it is no approval') } as const

const create = bankCommand({
  name: 'create',
  summary: 'Asks a user to approve something',
  words: { '<user>': 'the user', '<template>': 'what is asked; pawl template list shows which there are' },
  options: {
    parameter: many('NAME=VALUE', 'a parameter of the template; may be given several times'),
    language: text('CODE', 'the language of the texts: two small letters'),
    externalId: text('TEXT', 'what the bank calls it'),
    registration: text('ID', 'the only device that is shown it and decides it'),
    flag: text('FLAG', 'what a device must carry to approve it'),
    expires: text('TIME', 'its end, in place of the one that the template gives'),
    idempotencyKey: text('TEXT', 'the same key with the same request answers with the first operation'),
    ...WAIT,
  },
  examples: [
    'operation create alice login',
    'operation create alice payment --parameter amount=10.00 --parameter currency=EUR --parameter iban=DE89370400440532013000',
    'operation create alice login --wait 120',
    'operation create alice login --registration 0190b5a4-… --expires 2026-12-01T12:00:00Z',
  ],
  run: async ({ words: [userId, template], values, terminal, openBank }) => {
    const { parameter, language, externalId, idempotencyKey: key, wait, registration, flag: mark, expires } = values
    const parameters = parameter.length === 0 ? undefined : readPairs('--parameter', parameter)
    const seconds = wait === undefined ? undefined : parseCount('--wait', wait)
    // These are the characters that fetch accepts. Its own error would be reported as a server that does not answer.
    if (key !== undefined && !/^[\x20-\x7E\xA0-\xFF]*$/.test(key))
      throw usageFault('--idempotency-key has a character that no HTTP header takes')
    const bank = openBank()
    const limits = compact({
      registrationId: registration,
      applicationFlag: mark,
      expiresAt: expires === undefined ? undefined : parseMilliseconds(expires),
    })
    const body = compact({ userId, template, language, externalId, parameters, ...limits })
    const path = Object.keys(limits).length === 0 ? '/operations' : '/v2/operations'
    const created = await bank.call<{ operationId: string }>(
      'POST',
      path,
      body,
      key === undefined ? {} : { 'Idempotency-Key': key },
    )
    if (seconds === undefined) return { json: created }
    const { operationId } = created
    terminal.note(`waiting up to ${seconds} s for ${operationId}`)
    return waitForEnd(bank, operationId, seconds)
  },
})

const show = bankCommand({
  name: 'show',
  summary: 'Shows the state of an operation',
  words: { '<id>': 'the operation' },
  options: WAIT,
  examples: ['operation show 0190b5a4-…', 'operation show 0190b5a4-… --wait 120'],
  run: async ({ words: [id = ''], values: { wait }, openBank }) => {
    const bank = openBank()
    if (wait !== undefined) return waitForEnd(bank, id, parseCount('--wait', wait))
    return { json: await read(bank, id) }
  },
})

const read = (bank: Bank, operationId: string) => bank.call<{ status: string }>('GET', toPath`/v2/operations/${operationId}`)

const POLL_MS = 1_000

/** Reads the operation once a second until it has ended, or `seconds` have passed. */
async function waitForEnd(bank: Bank, id: string, seconds: number) {
  const end = performance.now() + seconds * 1000
  for (;;) {
    const json = await read(bank, id)
    const { status } = json
    if (status !== 'PENDING') return { json, exitCode: status === 'APPROVED' ? 0 : 1 }
    const left = end - performance.now()
    if (left <= 0) throw new Fault('refused', `${id} still waits after ${seconds} s`)
    await new Promise((resolve) => setTimeout(resolve, Math.min(POLL_MS, left)))
  }
}

const cancel = bankCommand({
  name: 'cancel',
  summary: 'Cancels an operation that waits',
  words: { '<id>': 'the operation' },
  options: { reason: text('TEXT', 'why') },
  examples: ['operation cancel 0190b5a4-… --reason WITHDRAWN'],
  run: ({ words: [operationId], values: { reason }, openBank }) =>
    openBank().answer('DELETE', `/operations${toQuery({ operationId, statusReason: reason })}`),
})

const offline = bankCommand({
  name: 'offline',
  summary:
    'Draws the QR code for an approval without a connection; with an OTP, approves by the digits that the user read from the phone',
  words: { '<id>': 'the operation', '[otp]': 'the one-time password' },
  options: {
    ...OTP_FILE,
    nonce: text('TEXT', 'the nonce that came with the QR code'),
    registration: text('ID', 'the phone that scans it, where the user has several: the id that registration list shows'),
    withoutQr: flag('draws no QR code'),
  },
  examples: ['operation offline 0190b5a4-…', 'operation offline 0190b5a4-… --otp-file otp.txt --nonce jEgj…'],
  run: async ({
    words: [operationId, given],
    values: { otpFile, nonce, registration: registrationId, withoutQr },
    terminal,
    openBank,
  }) => {
    const otp = readOtp(given, otpFile, terminal)
    if (nonce !== undefined && otp === undefined) throw usageFault('--nonce belongs to a one-time password')
    const bank = openBank()
    if (otp !== undefined)
      return bank.answer('POST', '/operations/offline/otp', compact({ operationId, otp, nonce, registrationId }))
    const path = `/operations/offline/qr${toQuery({ operationId, registrationId })}`
    const json = await bank.call<{ operationQrCodeData: string }>('GET', path)
    return { json, text: layOut(json) + (withoutQr ? '' : drawQrCode(json.operationQrCodeData)) }
  },
})

const list = bankCommand({
  name: 'list',
  summary: 'Searches operations of an application, newest first',
  options: {
    ...APPLICATION_OPTION,
    user: text('USER', 'of this user'),
    search: text('TEXT', 'of users whose name holds this, whatever the capitals of A to Z'),
    status: text('STATUS', 'PENDING, APPROVED, REJECTED, FAILED, EXPIRED or CANCELED'),
    ...PAGE_OPTIONS,
  },
  examples: [
    'operation list --status PENDING',
    'operation list --user alice --limit 10',
    'operation list --search novak --all',
    'operation list --all >operations.jsonl',
  ],
  run: async (given) => {
    const { user: userId, search: userIdPart, status } = given.values
    const path = toPath`/admin/applications/${await given.application()}/operations`
    const query = { userId, userIdPart, status }
    const listing = { path, query, rows: 'operations', cursor: ['cursor', 'nextCursor'], pageMax: 1_000 } as const
    return answerPages(listing, given)
  },
})

export const operation: Noun = {
  name: 'operation',
  summary: 'Operations: what users are asked to approve',
  commands: [create, show, cancel, offline, list],
}
