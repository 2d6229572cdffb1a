// What the developer of a mobile app compiles into it, as text or as a QR code, read from the administration API of a running server:
//   node scripts/sdk-config.ts --admin admin:PASSWORD --app my-app [--url http://127.0.0.1:8080] [--version default]
//     [--algorithm EC_P384] [--qr terminal|svg]
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { renderSVG, renderUnicodeCompact } from 'uqr'

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

try {
  process.stdout.write(`${await run()}\n`)
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}

async function run(): Promise<string> {
  const { values } = parseArgs({
    options: {
      admin: { type: 'string' },
      /** A file with the same text, which then is in no list of processes. */
      'admin-file': { type: 'string' },
      url: { type: 'string', default: 'http://127.0.0.1:8080' },
      app: { type: 'string' },
      version: { type: 'string' },
      algorithm: { type: 'string' },
      qr: { type: 'string' },
    },
  })
  const { url, app, version, algorithm, qr } = values
  const admin = values['admin-file'] === undefined ? values.admin : readFileSync(values['admin-file'], 'utf8').trim()
  if (app === undefined) throw new Error('--app ID is needed')
  if (admin === undefined) throw new Error('--admin USER:PASSWORD or --admin-file FILE is needed')
  const kept = algorithm === undefined ? undefined : choose('--algorithm', algorithm, KEYS)
  const draw = qr === undefined ? undefined : choose('--qr', qr, DRAWINGS)
  const text = keepKeys(await readConfiguration(url, admin, app, version), kept)
  if (draw === undefined) return text
  if (text.length > QR_CHARACTERS_MAX) throw new Error(`${text.length} characters are too long for a QR code: ${HINT}`)
  return draw(text, { ecc: 'L' })
}

function choose<T>(option: string, given: string, choices: ReadonlyMap<string, T>): T {
  const choice = choices.get(given)
  if (choice === undefined) throw new Error(`${option} is one of ${[...choices.keys()].join(', ')}`)
  return choice
}

async function readConfiguration(url: string, admin: string, app: string, version: string | undefined): Promise<string> {
  const query = version === undefined ? '' : `?${new URLSearchParams({ version }).toString()}`
  const reply = await fetch(`${url}/admin/applications/${encodeURIComponent(app)}${query}`, {
    headers: { Authorization: `Basic ${Buffer.from(admin).toString('base64')}` },
  })
  const text = await reply.text()
  if (!reply.ok) throw new Error(`HTTP ${reply.status} ${text}`)
  const { responseObject } = JSON.parse(text) as { responseObject: { mobileSdkConfig?: string } }
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
