// Runs two servers with one database, a clock and a network under one schedule. Between two decisions of the schedule, all code runs until it is
// done, or waits for a statement or a webhook message. So all events depend on the seed alone.
import { AsyncLocalStorage } from 'node:async_hooks'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import type { HttpReply, HttpRequest } from '../../phone/http.ts'
import { OutboundError, type OutboundRequest } from '../../src/lib/outbound.ts'
import { createAuditSealer } from '../../src/domain/audit/seal.ts'
import { createInMemory } from '../../src/storage/database/embedded.ts'
import type { Breakage } from './breakage.ts'
import { type Chance, createChance } from './chance.ts'
import { shareDatabase, type SharedDatabase } from './database.ts'
import { useNetwork } from './network.ts'
import type { Prepared } from './prepared.ts'
import { createIds, type Server, startServer } from './server.ts'
import { lendInstance } from '../helpers/lent-database.ts'

export type ServerName = 's1' | 's2'
export const SERVERS: readonly ServerName[] = ['s1', 's2']

export interface Running extends Server {
  readonly name: ServerName
  readonly seal: () => Promise<void>
  /** Resolves with `lost` when the server is killed. */
  readonly killed: Promise<Lost>
}

/** Stands for an answer that did not come. */
export type Lost = 'lost'

/** The shares, from 0 to 1, of statements and messages that fail, and of decisions that kill a server. */
export interface Faults {
  readonly statement: number
  readonly message: number
  readonly kill: number
}

export const CALM: Faults = { statement: 0, message: 0, kill: 0 }

/** A webhook message that the receiver has accepted. */
export interface Received {
  readonly deliveryId: string
  readonly body: string
}

export interface Site {
  readonly database: SharedDatabase
  readonly chance: Chance
  /** A line for each event. */
  readonly trace: string[]
  readonly received: readonly Received[]
  readonly server: (name: ServerName) => Running
  readonly send: (name: ServerName, request: HttpRequest) => Promise<HttpReply | Lost>
  /** Runs background work of a server. */
  readonly work: <T>(name: ServerName, work: (running: Running) => Promise<T>) => Promise<T | Lost>
  /** Moves all clocks. */
  readonly advance: (ms: number) => void
  /** Sets the error of a server's clock. */
  readonly skew: (name: ServerName, ms: number) => void
  readonly now: () => number
  /** Runs all open work to its end, with these faults; then starts new servers in place of killed ones. */
  readonly settle: <T>(work: readonly Promise<T>[], faults: Faults) => Promise<readonly T[]>
  readonly kill: (name: ServerName) => Promise<void>
  /** The number of statements so far that ran after their sender had given up. */
  readonly lateStatements: () => number
  readonly close: () => Promise<void>
}

/** A statement or a message that waits for the schedule. */
interface Waiting {
  readonly server: string
  readonly label: string
  readonly perform: (chance: Chance, faults: Faults) => Promise<string>
}

/** Starts both servers on a copy of the prepared database. */
export async function openSite({
  prepared,
  template,
  seed,
  breakage,
}: {
  prepared: Prepared
  template: Blob
  seed: number
  breakage: Breakage
}): Promise<Site> {
  const chance = createChance(seed)
  const { pglite } = await createInMemory(lendInstance(template))
  const database = shareDatabase(pglite, breakage)
  // Random numbers of servers come from another source than decisions, because the time at which a server draws one is no decision.
  let drawn = 0
  const trace: string[] = []
  const received: Received[] = []
  const running = new Map<ServerName, Running & { readonly die: () => void }>()
  const skews = new Map<ServerName, number>()
  let messages: (Waiting & { readonly take: () => void })[] = []
  let time = prepared.at
  let activity = 0
  /** The server whose work sends a message. */
  const working = new AsyncLocalStorage<Running>()

  const start = async (name: ServerName): Promise<void> => {
    drawn += 1
    const platform = { now: () => time + (skews.get(name) ?? 0), monotonic: () => time, ...createIds(createChance(seed + drawn)) }
    const starting = await startServer(database.connect(name), { masterKey: prepared.masterKey, platform })
    await starting.app.ready()
    const { promise: killed, resolve } = Promise.withResolvers<Lost>()
    const seal = createAuditSealer(starting.context)
    running.set(name, { ...starting, name, seal, killed, die: () => resolve('lost') })
  }
  const server = (name: ServerName): Running & { readonly die: () => void } => {
    const found = running.get(name)
    if (found === undefined) throw new Error(`${name} is not running`)
    return found
  }
  const send = async (name: ServerName, { method, path, headers, body }: HttpRequest): Promise<HttpReply | Lost> => {
    const { app, killed } = server(name)
    const answered = app
      .inject({
        method: method as 'POST',
        url: path,
        headers: { ...headers },
        ...(body.length > 0 && { payload: Buffer.from(body) }),
      })
      .then(({ statusCode: status, headers, payload: text }): HttpReply => {
        activity += 1
        return { status, headers: headers as HttpReply['headers'], text, json: parseJson(text) }
      })
    return Promise.race([answered, killed])
  }
  const kill = async (name: ServerName): Promise<void> => {
    const { die, context } = server(name)
    running.delete(name)
    await database.cut(name, () => chance.happens(0.5))
    for (const message of messages) if (message.server === name && chance.happens(0.5)) message.take()
    messages = messages.filter((message) => message.server !== name)
    context.metrics.close()
    die()
    trace.push(`    ${name} is killed`)
  }

  /** Runs all code that can run without a decision. */
  const quiet = async (): Promise<void> => {
    for (let turns = 0, seen = -1; turns < QUIET_TURNS; turns += 1) {
      const now = activity + database.activity()
      if (now !== seen) turns = 0
      seen = now
      await nextTurn()
    }
  }
  const waiting = (): readonly Waiting[] => [
    ...database.ready().map((statement) => ({
      server: statement.server,
      label: shorten(statement.text),
      perform: async (chance: Chance, faults: Faults) => {
        const fault = chance.happens(faults.statement) ? chance.pick(['before', 'after', 'late'] as const) : 'none'
        await statement.perform(fault)
        return FAULT_TEXTS[fault]
      },
    })),
    ...messages,
  ]
  const decide = async (ready: readonly Waiting[], faults: Faults): Promise<void> => {
    const one = chance.pick(ready)
    const isKilled = chance.happens(faults.kill)
    if (isKilled && chance.happens(0.5)) return kill(one.server as ServerName)
    const outcome = await one.perform(chance, isKilled ? CALM : faults)
    trace.push(`    ${one.server} ${one.label}${outcome}`)
    // The kill comes directly after the statement: no code of the server has run since.
    if (isKilled) await kill(one.server as ServerName)
  }
  const settle: Site['settle'] = async (work, faults) => {
    let open = work.length
    const results = Promise.all(
      work.map((one) =>
        one.finally(() => {
          open -= 1
          activity += 1
        }),
      ),
    )
    results.catch(() => undefined)
    for (let idleSince = performance.now(); ; ) {
      await quiet()
      if (open === 0) break
      const ready = waiting()
      if (ready.length > 0) {
        await decide(ready, faults)
        idleSince = performance.now()
      } else if (performance.now() - idleSince > IDLE_MS && (await database.endIdleTransaction())) {
        trace.push('    the database ends a transaction in which nothing happens')
      } else if (performance.now() - idleSince > STALLED_MS) throw new Error('nothing happens, and something is not done')
      // It waits for a computation in the thread pool, which only an action alone in its step has.
      else await sleep(1)
    }
    for (const name of SERVERS) if (!running.has(name)) await settle([start(name)], CALM)
    return results
  }

  useNetwork({
    send: async (url, request) => {
      const reply = await send(new URL(url).hostname as ServerName, request)
      if (reply === 'lost') throw new Error('the server is gone')
      return reply
    },
    sendOutbound: ({ headers, body, ...outbound }: OutboundRequest) => {
      const deliveryId = String(headers['webhook-id'])
      const sender = working.getStore()
      return new Promise((resolve, reject) => {
        const take = (): void => void received.push({ deliveryId, body: String(body) })
        const message = {
          server: String(sender?.name),
          label: `sends a message to ${outbound.url}`,
          take,
          perform: async (chance: Chance, faults: Faults) => {
            messages = messages.filter((other) => other !== message)
            const fault = chance.happens(faults.message) ? chance.pick(['before', 'after', 'refused'] as const) : 'none'
            if (fault === 'none' || fault === 'after') take()
            if (fault === 'none') resolve({ status: 200, headers: {}, body: Buffer.alloc(0) })
            else if (fault === 'refused') resolve({ status: 503, headers: {}, body: Buffer.alloc(0) })
            else reject(new OutboundError('no answer from the bank'))
            activity += 1
            return MESSAGE_TEXTS[fault]
          },
        }
        // A killed process would not have sent this message.
        if (sender !== undefined && running.get(sender.name) !== sender) return
        messages.push(message)
        activity += 1
      })
    },
  })
  for (const name of SERVERS) await settle([start(name)], CALM)
  trace.length = 0
  return {
    database,
    chance,
    trace,
    received,
    server,
    send,
    work: (name, work) => {
      const one = server(name)
      return Promise.race([working.run(one, () => work(one)), one.killed])
    },
    settle,
    kill,
    now: () => time,
    advance: (ms) => {
      time += ms
    },
    skew: (name, ms) => void skews.set(name, ms),
    lateStatements: database.lateStatements,
    close: async () => {
      for (const { context } of running.values()) context.metrics.close()
      await pglite.close()
    },
  }
}

const shorten = (text: string): string => `"${text.replaceAll(/\s+/g, ' ').trim().slice(0, 70)}"`

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const FAULT_TEXTS = {
  none: '',
  before: ': lost with its connection',
  after: ': done, but the connection broke before the answer',
  late: ': its sender gives up, and it comes later',
} as const
const MESSAGE_TEXTS = {
  none: '',
  before: ': lost',
  after: ': received, but the answer is lost',
  refused: ': answered 503',
} as const

// Promises and callbacks that follow each other without a decision take two or three turns.
const QUIET_TURNS = 8
// Longer than a computation takes within a transaction.
const IDLE_MS = 500
const STALLED_MS = 20_000
