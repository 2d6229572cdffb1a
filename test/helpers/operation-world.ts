// Opens a world for tests of operations: with templates, users whose phone has a token, and functions that read stored rows (cloud §4, §6).
import { sql } from 'kysely'
import { expect } from 'vitest'
import type { MasterKeys } from '../../src/domain/secrets/record-keys.ts'
import type { Context } from '../../src/context.ts'
import { runHousekeeping } from '../../src/domain/housekeeping.ts'
import { type Template, toTemplateContent } from '../../src/domain/template/template.ts'
import { type Db, inTransaction } from '../../src/storage/database/database.ts'
import { putTemplate } from '../../src/storage/template/templates.ts'
import { createPostgresDatabase, startTestServer, type TestServer } from './app.ts'
import { type Bank, readApplication, readQrCode } from './bank.ts'
import { readCounters } from './expectations.ts'
import { member } from '../../phone/http.ts'
import { type PhoneVersion, random } from '../../phone/v3/crypto.ts'
import type { AppConfiguration, PhoneOptions, PhoneToken } from '../../phone/v3/state.ts'
import { createPhone } from '../../phone/v3/virtual-phone.ts'
import { type Bound, expectOk, openWorld, type World } from './world.ts'

/** A user with an active phone that has a token. */
export interface Holder extends Bound {
  readonly token: PhoneToken
}

/** An operation as the bank made it, with the data that the phone signs. */
export interface TestOperation {
  readonly id: string
  readonly data: string
  readonly created: number
  readonly expires: number
}

export interface StoredOperation {
  readonly status: string
  readonly statusReason: string | null
  readonly failureCount: number
  readonly userId: string | null
  readonly data: string
  readonly additionalData: Readonly<Record<string, unknown>> | null
  readonly finalizedAt: Date | null
}

/** One application with its bank. */
export interface Side {
  readonly bank: Bank
  readonly app: AppConfiguration
}

export interface OperationWorld extends World {
  /** The contexts of the servers. */
  readonly contexts: readonly Context[]
  readonly db: Db
  /** The logs of the servers so far. */
  readonly log: () => string
  /** Stores a template under a new name, and returns the name. Every member has a default. */
  readonly template: (change?: Partial<Template>) => Promise<string>
  /** Makes a holder, by default of version 3.2, the quickest version that has all checks of a token. */
  readonly holder: (version?: PhoneVersion, options?: Partial<PhoneOptions>, side?: Side) => Promise<Holder>
  /** Makes a second application with a bank of its own. */
  readonly openSide: () => Promise<Side>
  /** Creates a payment of a user, by default from the default template of this world. */
  readonly operation: (userId: string, body?: Readonly<Record<string, unknown>>, bank?: Bank) => Promise<TestOperation>
  /** Removes the user from an operation, as if it had been created without one. */
  readonly unclaim: (operationId: string) => Promise<void>
  readonly stored: (operationId: string) => Promise<StoredOperation>
  /** Reads all counts: counter and failed attempts of the phone, status and failures of the operation. */
  readonly counts: (holder: Bound, operationId: string) => Promise<Record<string, unknown>>
  /** The types of the audit rows about the operation itself, oldest first, without its creation. */
  readonly audit: (operationId: string) => Promise<string[]>
  readonly setFlags: (holder: Bound, flags: string) => Promise<void>
  readonly housekeeping: () => Promise<void>
}

/** Parameters of the default template. */
export const PAYMENT = { amount: '10', currency: 'EUR', iban: 'DE89370400440532013000' } as const
/** The operation data of PAYMENT. */
export const PAYMENT_DATA = 'A1*A10EUR*IDE89370400440532013000'

const DEFAULT_TEMPLATE: Template = {
  templateName: '',
  operationType: 'authorize_payment',
  dataTemplate: 'A1*A${amount}${currency}*I${iban}',
  signatureTypes: ['possession_knowledge', 'possession_biometry'],
  maxFailureCount: 5,
  expirationSeconds: 300,
  riskFlags: '',
  isProximityCheckEnabled: false,
  activationFlag: null,
  texts: {
    en: { title: 'Payment', message: 'Please confirm the payment', attributes: [] },
    cs: { title: 'Platba', message: 'Potvrďte prosím platbu', attributes: [] },
  },
}

export interface OperationWorldOptions {
  /** The number of servers. Several share a PostgreSQL database. */
  readonly servers?: number
  readonly env?: Record<string, string>
  /** A PostgreSQL database of the caller, who drops it. */
  readonly databaseUrl?: string
  /** False: only the test runs housekeeping. */
  readonly worksInBackground?: boolean
  /** True: only `advance` moves the clock. */
  readonly hasStoppedClock?: boolean
}

/** Starts servers and opens a world on them. */
export async function startOperationWorld(options: OperationWorldOptions = {}): Promise<OperationWorld> {
  const { servers = 1, env = {}, worksInBackground = true, hasStoppedClock = false } = options
  const own = servers > 1 ? await createPostgresDatabase() : undefined
  const databaseUrl = options.databaseUrl ?? own?.databaseUrl
  const masterKeys: MasterKeys = [random(32)]
  const running: TestServer[] = []
  for (let i = 0; i < servers; i++) {
    running.push(await startTestServer({ env, worksInBackground, ...(databaseUrl && { databaseUrl, masterKeys }) }))
  }
  const [first] = running
  if (!first) throw new Error('a world needs a server')
  if (hasStoppedClock) for (const { clock } of running) clock.stop()
  const contexts = running.map(({ context }) => context)
  const world = await openWorld({
    urls: running.map(({ url }) => url),
    admin: `${first.admin.user}:${first.admin.password}`,
    advance: (milliseconds) => running.forEach(({ clock }) => clock.advance(milliseconds)),
    close: async () => {
      for (const server of running) await server.close()
      await own?.drop()
    },
  })
  const log = () => running.map((server) => server.log()).join('')
  return { ...world, contexts, log, ...(await createTools(world, contexts, first.context)) }
}

async function createTools(world: World, contexts: readonly Context[], { db }: Context) {
  let made = 0
  const template: OperationWorld['template'] = async (change) => {
    made += 1
    const content = toTemplateContent({ ...DEFAULT_TEMPLATE, templateName: `template-${made}`, ...change })
    const write = { source: 'administration', templateRevisionId: `revision-${made}`, at: new Date(0) } as const
    await inTransaction(db, (tx) => putTemplate(tx, content, write))
    for (const context of contexts) context.templates.forget()
    return content.templateName
  }
  const defaultTemplate = await template()

  const holder: OperationWorld['holder'] = async (version = '3.2', options = {}, { bank, app } = world) => {
    const userId = world.newUser()
    const { code } = readQrCode(await bank.register(userId))
    const phone = createPhone({ url: world.url, app, version, ...options })
    await phone.activate(code)
    expectOk(await bank.commit(userId))
    return { userId, phone, token: await phone.createToken('possession') }
  }

  const openSide = async (): Promise<Side> => {
    made += 1
    const app = readApplication(await world.bank.createApplication(`side-${made}`))
    const user = { username: `side-${made}`, role: 'integration', application: `side-${made}` }
    const password = member(expectOk(await world.bank.call('POST', '/admin/users', user)).json, 'password')
    return { app, bank: world.bank.as(`side-${made}:${String(password)}`) }
  }

  const stored: OperationWorld['stored'] = async (operationId) => {
    const row = await db
      .selectFrom('operation')
      .select(['status', 'status_reason', 'failure_count', 'user_id', 'data', 'additional_data', 'finalized_at'])
      .where('operation_id', '=', operationId)
      .executeTakeFirstOrThrow()
    return {
      status: row.status,
      statusReason: row.status_reason,
      failureCount: row.failure_count,
      userId: row.user_id,
      data: row.data,
      additionalData: row.additional_data === null ? null : JSON.parse(row.additional_data),
      finalizedAt: row.finalized_at,
    }
  }

  const operation: OperationWorld['operation'] = async (userId, body = {}, bank = world.bank) => {
    const reply = await bank.createOperation({ userId, template: defaultTemplate, parameters: PAYMENT, ...body })
    const { operationId, timestampCreated, timestampExpires } = expectOk(reply).json as Record<string, unknown>
    const id = String(operationId)
    return { id, data: (await stored(id)).data, created: Number(timestampCreated), expires: Number(timestampExpires) }
  }

  return {
    db,
    template,
    holder,
    openSide,
    stored,
    operation,
    unclaim: async (operationId: string) => {
      await db.updateTable('operation').set({ user_id: null }).where('operation_id', '=', operationId).execute()
    },
    counts: async ({ phone }: Bound, operationId: string) => {
      const { status, failureCount } = await stored(operationId)
      return { ...(await readCounters(phone)), status, failureCount }
    },
    audit: async (operationId: string) => {
      const { rows } = await sql<{ type: string }>`
        select event_type as type from audit_trail
        where (event_type like 'operation%' or event_type like 'offline%') and event_type <> 'operation_created' and event_data like ${`%${operationId}%`} order by sequence`.execute(
        db,
      )
      return rows.map(({ type }) => type)
    },
    setFlags: async ({ phone }: Bound, flags: string) => {
      await db.updateTable('activation').set({ flags }).where('activation_id', '=', phone.state.activationId).execute()
    },
    housekeeping: async () => {
      for (const context of contexts) await runHousekeeping(context)
    },
  }
}

/** Moves the clock to the beginning of a step of one-time passwords, so that the step does not end between two checks. */
export async function beginStep({ contexts, advance }: Pick<OperationWorld, 'contexts' | 'advance'>): Promise<void> {
  const now = contexts[0]?.platform.now() ?? 0
  await advance(STEP_MS - (now % STEP_MS))
}

/** Expects that all counts are the same after `act`. */
export async function expectNothingCounted(
  world: OperationWorld,
  holder: Bound,
  operationId: string,
  act: () => Promise<void>,
): Promise<void> {
  const before = await world.counts(holder, operationId)
  await act()
  expect(await world.counts(holder, operationId)).toEqual(before)
}

const STEP_MS = 30_000
