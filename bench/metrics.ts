// What metrics cost: all that one signature/validate tells, and one look at a server with many series: npm run bench -- metrics.
import { createEvents } from '../src/log/events.ts'
import { createLog } from '../src/log/log.ts'
import { createInstruments } from '../src/metrics/instruments.ts'
import { countEvents } from '../src/metrics/count-events.ts'
import { createRequestTimer } from '../src/metrics/request-times.ts'
import { measure } from './measure.ts'

const instruments = createInstruments()
const events = countEvents(createEvents(createLog('info', { write: () => undefined })), instruments, Date.now)
const time = createRequestTimer(instruments)
const result = 'accepted'

/** Its code, its write, and the end of its answer. */
function tellOne(): void {
  events.authenticationChecked({ version: '3.3', type: 'possession_knowledge', result })
  events.tripTaken({ trip: 'store', items: 3 })
  time({ method: 'POST', route: '/pa/v3/signature/validate', status: 200, ms: 1.5 })
}

await measure('1000 times what one signature/validate tells', () => {
  for (let i = 0; i < 1_000; i += 1) tellOne()
})
for (let route = 0; route < 40; route += 1) time({ method: 'GET', route: `/route/${route}`, status: 200, ms: 1 })
await measure('a look at 600 series', () => instruments.registry.metrics())
