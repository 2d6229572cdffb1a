// Phones that sign against a running server, and the proof that nothing they were granted is granted twice:
//   node scripts/load.ts --url http://127.0.0.1:8080 --admin USER:PASSWORD --record FILE [--phones 8] [--seconds 20] [--application load]
//   node scripts/load.ts --url http://127.0.0.1:8080 --replay FILE
// The first appends every request that was answered 200 to FILE before its phone goes on; the server may be killed and started again
// meanwhile; SIGTERM ends the recording before its time. The second sends each of them again and ends with 1 when one is accepted.
import { parseArgs } from 'node:util'
import { createBank } from '../test/helpers/bank.ts'
import { activatePhones, openApplication, openRecorder, readRecords, replay, runLoad } from '../test/helpers/recorded-load.ts'

const { values } = parseArgs({
  options: {
    url: { type: 'string', default: 'http://127.0.0.1:8080' },
    admin: { type: 'string' },
    application: { type: 'string', default: 'load' },
    phones: { type: 'string', default: '8' },
    seconds: { type: 'string', default: '20' },
    record: { type: 'string' },
    replay: { type: 'string' },
  },
})
const { url, admin } = values

try {
  if (values.replay !== undefined) await replayFile(values.replay)
  else if (values.record !== undefined && admin !== undefined) await recordFile(values.record, admin)
  else fail('give --admin USER:PASSWORD and --record FILE, or --replay FILE')
} catch (error) {
  fail(error instanceof Error ? error.message || String(error) : String(error))
}

async function recordFile(path: string, credential: string): Promise<void> {
  const phones = readCount('phones', values.phones, 100)
  const seconds = readCount('seconds', values.seconds, 3600)
  const { bank, close } = await openApplication(url, credential, values.application)
  const active = await activatePhones(createBank(url, credential), bank, values.application, phones)
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

async function replayFile(path: string): Promise<void> {
  const { replayed, refused, accepted, otherwise } = await replay(url, readRecords(path))
  for (const request of accepted) process.stderr.write(`accepted again: ${request.method} ${request.path}\n`)
  for (const answer of otherwise) process.stderr.write(`neither accepted nor refused: ${answer}\n`)
  process.stdout.write(`${replayed} replayed, ${refused} refused, ${accepted.length} accepted\n`)
  if (replayed === 0) fail('the file holds no request')
  if (refused !== replayed) process.exitCode = 1
}

function readCount(name: string, text: string, max: number): number {
  const count = Number(text)
  return Number.isInteger(count) && count >= 1 && count <= max ? count : fail(`--${name} is not an integer from 1 to ${max}`)
}

function fail(problem: string): never {
  process.stderr.write(`${problem}\n`)
  process.exit(1)
}
