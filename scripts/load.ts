// Phones that sign against a running server, and the proof that nothing they were granted is granted twice.
import { createBank } from '../test/helpers/bank.ts'
import { activatePhones, openApplication, openRecorder, readRecords, replay, runLoad } from '../test/helpers/recorded-load.ts'
import { phonesUrl } from '../cli/environment.ts'
import { runCommand, UsageError } from './command-line.ts'

const usage = `Phones that sign against a running server, and the proof that nothing they were granted is granted twice:
  node scripts/load.ts --admin USER:PASSWORD --record FILE [--url URL] [--phones 8] [--seconds 20] [--application load]
  node scripts/load.ts --replay FILE [--url URL]
The first appends every request that was answered 200 to FILE before its phone goes on; the server may be killed and started again
meanwhile; SIGTERM ends the recording before its time. The second sends each of them again and ends with 1 when one is accepted.
The URL is that of a server with one listener, by default on this machine at PAWL_PORT or 8080.`

const options = {
  url: { type: 'string', default: phonesUrl(process.env) },
  admin: { type: 'string' },
  application: { type: 'string', default: 'load' },
  phones: { type: 'string', default: '8' },
  seconds: { type: 'string', default: '20' },
  record: { type: 'string' },
  replay: { type: 'string' },
} as const

interface Recording {
  readonly url: string
  readonly application: string
  readonly phones: number
  readonly seconds: number
}

await runCommand({ usage, options }, async ({ values }) => {
  const { url, admin, application, record } = values
  if (values.replay !== undefined) return replayFile(url, values.replay)
  if (record === undefined || admin === undefined)
    throw new UsageError('give --admin USER:PASSWORD and --record FILE, or --replay FILE')
  const phones = readCount('phones', values.phones, 100)
  return recordFile({ url, application, phones, seconds: readCount('seconds', values.seconds, 3600) }, record, admin)
})

async function recordFile({ url, application, phones, seconds }: Recording, path: string, credential: string): Promise<void> {
  const { bank, close } = await openApplication(url, credential, application)
  const active = await activatePhones(createBank(url, credential), bank, application, phones)
  await close()
  const recorder = openRecorder(path)
  const end = Date.now() + seconds * 1000
  let isEnded = false
  process.once('SIGTERM', () => {
    isEnded = true
  })
  const isOver = (): boolean => isEnded || Date.now() >= end
  const { recorded, refused, lost } = await runLoad(active, { url, isOver, record: recorder.record })
  recorder.close()
  for (const answer of refused) process.stderr.write(`refused: ${answer}\n`)
  process.stdout.write(`${recorded} recorded, ${refused.length} refused, ${lost} lost\n`)
  if (refused.length > 0) process.exitCode = 1
}

async function replayFile(url: string, path: string): Promise<void> {
  const { replayed, refused, accepted, otherwise } = await replay(url, readRecords(path))
  for (const request of accepted) process.stderr.write(`accepted again: ${request.method} ${request.path}\n`)
  for (const answer of otherwise) process.stderr.write(`neither accepted nor refused: ${answer}\n`)
  process.stdout.write(`${replayed} replayed, ${refused} refused, ${accepted.length} accepted\n`)
  if (replayed === 0) throw new Error('the file holds no request')
  if (refused !== replayed) process.exitCode = 1
}

function readCount(name: string, text: string, max: number): number {
  const count = Number(text)
  if (Number.isInteger(count) && count >= 1 && count <= max) return count
  throw new UsageError(`--${name} is not an integer from 1 to ${max}`)
}
