// Declares pawl registration: creates, confirms, blocks, removes and searches registrations, which bind users to phones.
import { APPLICATION_OPTION, bankCommand } from '../bank-command.ts'
import { command, flag, many, type Noun, text } from '../command.ts'
import { usageFault } from '../fault.ts'
import { readJsonArgument } from '../json-argument.ts'
import { layOut } from '../output.ts'
import { answerPages, PAGE_OPTIONS } from '../pages.ts'
import { drawQrCode } from '../qr-code.ts'
import { compact, toPath, toQuery } from '../query.ts'
import { OTP_FILE, readOtp } from '../secret-argument.ts'
import { parseMilliseconds } from '../time.ts'

const QR = { withoutQr: flag('draws no QR code') } as const

/** The user's name alone identifies a registration only while the user has one registration. */
const WHICH = { id: text('ID', 'the registration, where the user has several: the id that list shows') } as const
const NAMED = { '[user]': 'the user; not with --id' } as const

/** The path of a registration. When the user names it, `owner` is the member that names the user in the call; else `owner` is empty. */
function locate(userId: string | undefined, id: string | undefined) {
  if (id !== undefined && userId !== undefined)
    throw usageFault('a user and --id exclude each other: --id names the registration')
  if (id !== undefined) return { path: toPath`/v2/registrations/${id}`, owner: {} }
  if (userId === undefined) throw usageFault('give a user, or --id')
  return { path: '/registration', owner: { userId } }
}

const create = bankCommand({
  name: 'create',
  summary: 'Creates a registration and draws the QR code that the phone scans',
  words: { '<user>': 'the user' },
  options: {
    app: text('ID', 'the application; by default that of the credential'),
    otp: text('OTP', 'a one-time password that the user has to know'),
    ...OTP_FILE,
    otpPhase: text('PHASE', 'when it is asked for, ON_COMMIT or ON_KEY_EXCHANGE; without --commit-phase'),
    commitPhase: text('PHASE', 'when the registration becomes active: ON_COMMIT, which is the default, or ON_KEY_EXCHANGE'),
    further: flag('also beside live ones of the user, where the application lets a user have several phones'),
    ...QR,
  },
  examples: ['registration create alice', 'registration create alice --otp 123456 --otp-phase ON_COMMIT'],
  run: async ({
    words: [userId],
    values: { app, otp: given, otpFile, otpPhase, commitPhase, further, withoutQr },
    terminal,
    openBank,
    application,
  }) => {
    const bank = openBank()
    const otp = readOtp(given, otpFile, terminal)
    const more = compact({ otp, otpPhase, commitPhase })
    // Members that the shorter paths do not take need the path of an application, which only an administrator may call.
    const isPlain = app === undefined && (further || Object.keys(more).length === 0)
    const plain = further ? '/v2/registrations' : '/registration'
    const path = isPlain ? plain : toPath`/admin/applications/${await application()}/registrations`
    const json = await bank.call<{ activationQrCodeData: string }>('POST', path, { userId, ...more })
    const qr = withoutQr ? '' : drawQrCode(json.activationQrCodeData)
    return { json, text: `${layOut({ ...json, code: json.activationQrCodeData.split('#')[0] })}${qr}` }
  },
})

const show = bankCommand({
  name: 'show',
  summary: 'Shows state and phone of the registration of a user, and the QR code as long as it waits for a phone',
  words: NAMED,
  options: { ...WHICH, ...QR },
  examples: ['registration show alice', 'registration show alice --json', 'registration show --id 0190b5a4-…'],
  run: async ({ words: [userId], values: { id, withoutQr }, openBank }) => {
    const { path, owner } = locate(userId, id)
    const json = await openBank().call<{ activationQrCodeData?: string }>('GET', `${path}${toQuery(owner)}`)
    const { activationQrCodeData } = json
    const qr = withoutQr || activationQrCodeData === undefined ? '' : drawQrCode(activationQrCodeData)
    return { json, text: layOut(json) + qr }
  },
})

const commit = bankCommand({
  name: 'commit',
  summary: 'Confirms the phone of a user, whose fingerprint was compared',
  words: NAMED,
  options: { ...WHICH, otp: text('OTP', 'the one-time password, where one was set'), ...OTP_FILE },
  examples: ['registration commit alice', 'registration commit alice --otp-file otp.txt', 'registration commit --id 0190b5a4-…'],
  run: async ({ words: [userId], values: { id, otp: given, otpFile }, terminal, openBank }) => {
    const { path, owner } = locate(userId, id)
    const body = compact({ ...owner, otp: readOtp(given, otpFile, terminal) })
    return openBank().answer('POST', `${path}/commit`, body)
  },
})

const block = bankCommand({
  name: 'block',
  summary: 'Blocks the phone of a user',
  words: NAMED,
  options: { ...WHICH, reason: text('TEXT', 'why, for the phone and the audit log') },
  examples: ['registration block alice --reason LOST'],
  run: async ({ words: [userId], values: { id, reason }, openBank }) => {
    const { path, owner } = locate(userId, id)
    const body = compact({ ...owner, change: 'BLOCK', blockReason: reason })
    return openBank().answer('PUT', path, body)
  },
})

const unblock = bankCommand({
  name: 'unblock',
  summary: 'Lifts a block',
  words: NAMED,
  options: WHICH,
  examples: ['registration unblock alice'],
  run: async ({ words: [userId], values: { id }, openBank }) => {
    const { path, owner } = locate(userId, id)
    return openBank().answer('PUT', path, { ...owner, change: 'UNBLOCK' })
  },
})

const remove = bankCommand({
  name: 'remove',
  summary: 'Removes the registration of a user',
  words: NAMED,
  options: WHICH,
  examples: ['registration remove alice', 'registration remove --id 0190b5a4-…'],
  run: async ({ words: [userId], values: { id }, openBank }) => {
    const { path, owner } = locate(userId, id)
    return openBank().answer('DELETE', `${path}${toQuery(owner)}`)
  },
})

const list = bankCommand({
  name: 'list',
  summary: 'Searches registrations of an application, newest first',
  options: {
    ...APPLICATION_OPTION,
    user: text('USER', 'of this user'),
    search: text('TEXT', 'of users whose name holds this, whatever the capitals of A to Z'),
    state: text('STATE', 'CREATED, PENDING_COMMIT, ACTIVE, BLOCKED or REMOVED'),
    protocolVersion: text('N', '3 or 4'),
    ...PAGE_OPTIONS,
  },
  examples: [
    'registration list --state BLOCKED',
    'registration list --user alice --json',
    'registration list --search novak --all',
    'registration list --all >registrations.jsonl',
  ],
  run: async (given) => {
    const { user: userId, search: userIdPart, state, protocolVersion } = given.values
    const path = toPath`/admin/applications/${await given.application()}/registrations`
    const query = { userId, userIdPart, state, protocolVersion }
    const listing = { path, query, rows: 'registrations', cursor: ['cursor', 'nextCursor'], pageMax: 100 } as const
    return answerPages(listing, given)
  },
})

const history = bankCommand({
  name: 'history',
  summary: 'A registration with what happened to it, newest first',
  words: { '<activation>': 'the activation id that list shows' },
  options: { ...APPLICATION_OPTION, ...PAGE_OPTIONS },
  examples: ['registration history 0190b5a4-…', 'registration history 0190b5a4-… --all >history.jsonl'],
  run: async (given) => {
    const ofApp = toPath`/admin/applications/${await given.application()}`
    const path = ofApp + toPath`/registrations/${given.words[0]}`
    const listing = { path, query: {}, rows: 'history', cursor: ['before', 'next'], pageMax: 1_000, isPart: true } as const
    return answerPages(listing, given)
  },
})

const flags = bankCommand({
  name: 'flags',
  summary: 'Replaces the flags of an activation, which operations may demand',
  words: { '<activation>': 'the activation id that list shows' },
  options: { flag: many('NAME', 'a flag; may be given several times, and without any all are taken away') },
  examples: ['registration flags 0190b5a4-… --flag VERIFIED', 'registration flags 0190b5a4-…'],
  run: ({ words: [id], values: { flag: given }, openBank }) =>
    openBank().answer('PUT', toPath`/admin/activations/${id}/flags`, { flags: given }),
})

const claims = bankCommand({
  name: 'claims',
  summary: 'What phones are told about a user: reads it, or replaces it',
  words: { '<user>': 'the user', '[claims]': 'a JSON object, or @FILE that holds one; without it they are read' },
  options: { ...APPLICATION_OPTION, remove: flag('removes them') },
  examples: [
    'registration claims alice',
    `registration claims alice '{"given_name":"Alice"}'`,
    'registration claims alice --remove',
  ],
  run: async ({ words: [userId, given], values: { remove: isRemoved }, openBank, application }) => {
    if (isRemoved && given !== undefined) throw usageFault('give claims, or --remove')
    const body = given === undefined ? undefined : readJsonArgument('claims', given)
    const bank = openBank()
    const path = toPath`/admin/applications/${await application()}/claims/${userId}`
    return bank.answer(isRemoved ? 'DELETE' : body === undefined ? 'GET' : 'PUT', path, body)
  },
})

const fence = command({
  name: 'fence',
  summary:
    'After a restore: blocks every registration whose codes the configured database may have forgotten, and moves its counter on',
  more:
    'Before phones reach the restored database. It may be ended at any moment and be run again with the same time: what is done stays done. ' +
    'docs/OPERATIONS.md, "After a restore", tells how users come back. The embedded database only while its server is stopped.',
  options: {
    since: text(
      'TIME',
      'the moment to which the database went back, in doubt a later one: milliseconds since 1970, or a date like 2027-01-31T12:00:00Z',
    ),
    keepActive: flag(
      'blocks nobody: right where no phone can have made more codes in the forgotten time than counters are moved by',
    ),
  },
  examples: [
    'registration fence --since 2027-01-31T12:00:00Z',
    'registration fence --since 2027-01-31T12:00:00Z --keep-active --json',
  ],
  run: async ({ values: { since, keepActive }, terminal }) => {
    if (since === undefined) throw usageFault('--since is needed: the moment to which the database went back')
    return (await import('../local/fence.ts')).fenceLocal(terminal, parseMilliseconds(since), keepActive)
  },
})

export const registration: Noun = {
  name: 'registration',
  summary: 'Registrations: which phone is bound to which user',
  commands: [create, show, commit, block, unblock, remove, list, history, flags, claims, fence],
}
