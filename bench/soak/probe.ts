// A process that asks a server whether it is alive, one question after the other, and writes down when and how long it waited.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Look } from './looks.ts'

const [url = ''] = process.argv.slice(2)
const PAUSE_MS = 20

for (;;) {
  const at = Date.now()
  const sent = performance.now()
  const reply = await fetch(`${url}/health/live`)
  await reply.arrayBuffer()
  if (reply.status !== 200) throw new Error(`/health/live answered ${reply.status}`)
  process.stdout.write(`${JSON.stringify({ at, milliseconds: performance.now() - sent } satisfies Look)}\n`)
  await sleep(PAUSE_MS)
}
