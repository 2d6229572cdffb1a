// What the developer of a mobile app compiles into it, as text or as a QR code, read from the administration API of a running server.
import { renderSVG, renderUnicodeCompact } from 'uqr'
import { BANK_OPTIONS, BANK_USAGE, type BankApi, callBank, readBank } from './bank-api.ts'
import { runCommand, UsageError } from './command-line.ts'

const usage = `What the developer of a mobile app compiles into it, as text or as a QR code:
  node scripts/sdk-config.ts --admin USER:PASSWORD --app ID [--url URL] [--version default] [--algorithm EC_P384] [--qr terminal|svg]
${BANK_USAGE}
  --algorithm NAME       leaves out the keys that other algorithms need, which makes it short enough for a QR code`
const options = {
  ...BANK_OPTIONS,
  app: { type: 'string' },
  version: { type: 'string' },
  algorithm: { type: 'string' },
  qr: { type: 'string' },
} as const

/** Ids of the master keys that an algorithm needs, and that of P-256 for phones that are upgraded (v4 §3.3). */
const KEYS = new Map([
  ['EC_P384', [1, 2]],
  ['EC_P384_ML_L3', [1, 2, 3]],
  ['EC_P384_ML_L5', [1, 2, 4]],
])
const DRAWINGS = new Map([
  ['terminal', renderUnicodeCompact],
  ['svg', renderSVG],
])
/** Characters that fit into the largest QR code with the least correction. */
const QR_CHARACTERS_MAX = 2953
const HINT = 'choose --algorithm EC_P384 or EC_P384_ML_L3, or hand over the text'

await runCommand({ usage, options }, async ({ values }) => {
  const { app, version, algorithm, qr } = values
  if (app === undefined) throw new UsageError('--app ID is needed')
  const bank = readBank(values, process.env)
  const kept = algorithm === undefined ? undefined : choose('--algorithm', algorithm, KEYS)
  const draw = qr === undefined ? undefined : choose('--qr', qr, DRAWINGS)
  const text = keepKeys(await readConfiguration(bank, app, version), kept)
  if (draw !== undefined && text.length > QR_CHARACTERS_MAX)
    throw new Error(`${text.length} characters are too long for a QR code: ${HINT}`)
  process.stdout.write(`${draw === undefined ? text : draw(text, { ecc: 'L' })}\n`)
})

function choose<T>(option: string, given: string, choices: ReadonlyMap<string, T>): T {
  const choice = choices.get(given)
  if (choice === undefined) throw new UsageError(`${option} is one of ${[...choices.keys()].join(', ')}`)
  return choice
}

async function readConfiguration(bank: BankApi, app: string, version: string | undefined): Promise<string> {
  const query = version === undefined ? '' : `?${new URLSearchParams({ version }).toString()}`
  const answer = await callBank(bank, { method: 'GET', path: `/admin/applications/${encodeURIComponent(app)}${query}` })
  const { responseObject } = answer as { responseObject: { mobileSdkConfig?: string } }
  if (responseObject.mobileSdkConfig === undefined) throw new Error('this credential may not see the application secret')
  return responseObject.mobileSdkConfig
}

/** The same configuration without other keys. */
function keepKeys(text: string, kept: readonly number[] | undefined): string {
  if (kept === undefined) return text
  const bytes = Buffer.from(text, 'base64')
  let end = 1
  const takeData = (): void => {
    const first = bytes.readUInt8(end)
    // One byte below 0x80, else two: no value here has 16 KiB.
    end += first < 0x80 ? 1 + first : 2 + (bytes.readUInt16BE(end) & 0x3fff)
  }
  takeData()
  takeData()
  const head = bytes.subarray(0, end)
  const count = bytes.readUInt8(end)
  end += 1
  const keys = Array.from({ length: count }, () => {
    const start = end
    end += 1
    takeData()
    return bytes.subarray(start, end)
  }).filter(([id]) => id !== undefined && kept.includes(id))
  return Buffer.concat([head, Buffer.of(keys.length), ...keys]).toString('base64')
}
