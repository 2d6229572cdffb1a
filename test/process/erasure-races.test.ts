// A user is erased while the bank, the user's phone and the work in the background go on: what is written meanwhile is found, or refused.
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { HttpReply } from '../../phone/http.ts'
import { random } from '../../phone/v3/crypto.ts'
import type { Context } from '../../src/context.ts'
import { verifyAudit } from '../../src/domain/audit/verification.ts'
import { eraseUser } from '../../src/domain/user-data/user-data.ts'
import { insertActivation } from '../../src/storage/activation/insert.ts'
import { changeState } from '../../src/storage/activation/change.ts'
import { type AuditEvent, heldActivation, insertAuditEvent } from '../../src/storage/audit/audit.ts'
import { AUDIT_LOGS, lockLog } from '../../src/storage/audit/chain.ts'
import { inTransaction, openDatabase, type Tx } from '../../src/storage/database/database.ts'
import { insertInboxMessage } from '../../src/storage/user/inbox-messages.ts'
import { insertOperation } from '../../src/storage/operation/operations.ts'
import { claimOperation, endOperation } from '../../src/storage/operation/transitions.ts'
import { insertTemporaryKey } from '../../src/storage/application/temporary-keys.ts'
import { insertToken } from '../../src/storage/token/tokens.ts'
import { insertChallenge, type NewChallenge } from '../../src/storage/request/offline-challenges.ts'
import { storeUserClaims } from '../../src/storage/user/claims.ts'
import { serverUrl } from '../helpers/app.ts'
import { sealAll } from '../helpers/audit.ts'
import type { Bank } from '../helpers/bank.ts'
import { runCli } from '../helpers/cli.ts'
import { type Holder, type OperationWorld, PAYMENT, startOperationWorld } from '../helpers/operation-world.ts'
import {
  ADMIN_PASSWORD,
  createInstallation,
  DATABASE_KIND,
  endEverything,
  type Environment,
  startNode,
  startPawl,
} from '../helpers/process.ts'
import { type Provider, startProvider } from '../helpers/provider.ts'
import { type Receiver, startReceiver } from '../helpers/receiver.ts'
import { findStoredText } from '../helpers/stored-text.ts'
import { expectOk, openWorld, registrationOf } from '../helpers/world.ts'
import { PATIENCE_MS } from '../helpers/patience.ts'

const HAS_POSTGRES = serverUrl() !== undefined

let provider: Provider
let receiver: Receiver
let world: OperationWorld
let context: Context
let template: string
beforeAll(async () => {
  provider = await startProvider()
  receiver = await startReceiver()
  // The messages of webhooks are tried again and again.
  receiver.answerWith(500)
  world = await startOperationWorld({
    servers: HAS_POSTGRES ? 2 : 1,
    env: {
      PAWL_ACTIVATION_PROVIDER_URL: `${provider.url}/find`,
      PAWL_WEBHOOK_ALLOW_PRIVATE_ADDRESSES: 'true',
      PAWL_WEBHOOK_ALLOW_HTTP: 'true',
      PAWL_CODE_FAILURES_PER_MINUTE: '1000',
    },
  })
  const [first] = world.contexts
  if (first === undefined) throw new TypeError('a world without a server')
  context = first
  template = await world.template()
  for (const kind of ['OPERATION', 'ACTIVATION']) {
    const webhook = { application: world.applicationId, kind, name: kind, url: receiver.url, attributes: ['userId'] }
    expectOk(await world.bank.call('POST', '/admin/webhooks', webhook))
  }
})
afterAll(async () => {
  await world.close()
  provider.close()
  await receiver.goDown()
})
afterEach(endEverything)

/** What one writer does, once; it gets the address of a server. */
type Act = (url: string) => Promise<HttpReply>

interface Writers {
  /** Resolves when each of these has stored something. */
  readonly areAtWork: (...names: readonly string[]) => Promise<void>
  /** Statuses of all answers, by writer. */
  readonly stop: () => Promise<ReadonlyMap<string, ReadonlySet<number>>>
}

/** Lets each of these act again and again, at one server after the other. */
function startWriters(acts: Readonly<Record<string, Act>>, urls: readonly string[] = world.urls): Writers {
  const over = new AbortController()
  const seen = new Map(Object.keys(acts).map((name) => [name, new Set<number>()]))
  const loops = Object.entries(acts).map(async ([name, act]) => {
    for (let i = 0; !over.signal.aborted; i += 1) {
      const { status } = await act(urls[i % urls.length] ?? '')
      seen.get(name)?.add(status)
    }
  })
  return {
    areAtWork: (...names) =>
      expect.poll(() => names.filter((name) => seen.get(name)?.has(200) !== true), { timeout: PATIENCE_MS }).toEqual([]),
    stop: async () => {
      over.abort()
      await Promise.all(loops)
      return seen
    },
  }
}

/** What the bank writes about a user. */
function actsOfBank({ userId, phone }: Holder, other: Holder): Record<string, Act> {
  const { bank, applicationId } = world
  const at = (url: string) => bank.as(bank.credential, url)
  let made = 0
  let acted = 0
  const texts = () => ({ userId, type: 'text', subject: userId, summary: userId, body: `${userId} ${(made += 1)}` })
  return {
    operation: (url) => at(url).createOperation({ userId, template, parameters: PAYMENT, externalId: `of ${userId}` }),
    // Of nobody yet, and for the user's phone alone.
    'for a phone': (url) => {
      const body = { template, parameters: PAYMENT, registrationId: phone.state.activationId, externalId: `of ${userId}` }
      return at(url).createDeviceOperation(body)
    },
    repeatable: (url) =>
      at(url).createOperation({ userId, template, parameters: PAYMENT }, { 'idempotency-key': `${userId} ${(made += 1)}` }),
    message: (url) => at(url).call('POST', '/inbox/messages', texts()),
    claims: (url) =>
      at(url).call('PUT', `/admin/applications/${applicationId}/claims/${userId}`, { given_name: `${userId} ${(made += 1)}` }),
    challenge: (url) => {
      const challenge = { activationId: phone.state.activationId, data: userId, resourceId: '/of/bank', body: '' }
      return at(url).call('POST', '/offline/challenges', challenge)
    },
    'no claims': (url) => at(url).call('DELETE', `/admin/applications/${applicationId}/claims/${userId}`),
    registration: (url) => at(url).register(userId),
    // The user acts for another one.
    acting: (url) => at(url).change(other.userId, (acted += 1) % 2 ? 'BLOCK' : 'UNBLOCK', { externalUserId: userId }),
    flags: (url) => at(url).call('PUT', `/admin/activations/${phone.state.activationId}/flags`, { flags: [`F-${(made += 1)}`] }),
  }
}

/** What the user's phone does, one thing after the other: approvals, rejections, claims, codes, tokens, push tokens. */
function actOfPhone({ userId, phone, token }: Holder): Act {
  const { bank, unclaim } = world
  const create = async () => {
    const reply = await bank.createOperation({ userId, template, parameters: PAYMENT })
    const json = reply.json as { operationId?: string; data?: string }
    return { id: json.operationId ?? '', data: 'A1*A10EUR*IDE89370400440532013000' }
  }
  const acts: readonly Act[] = [
    async (url) => phone.send(phone.prepareAuthorize(await create()), url),
    async (url) => {
      const { id } = await create()
      await unclaim(id)
      return phone.send(await phone.prepareTokenCall('claim', token, { id }), url)
    },
    async (url) => phone.send(phone.prepareValidation({ body: userId, factors: 'possession' }), url),
    async (url) => phone.send(phone.prepareValidation({ factors: 'possession', wrongKeys: { possession: random(16) } }), url),
    async (url) => phone.send(await phone.prepareTokenCreate({ factors: 'possession' }), url),
    async (url) =>
      phone.send(await phone.prepareTokenCall('push', token, { platform: 'apns', token: `${userId} ${Date.now()}` }), url),
  ]
  let turn = 0
  return (url) => (acts[(turn += 1) % acts.length] as Act)(url)
}

/** Nothing of the user is stored, and the audit log verifies. */
async function expectErased({ userId, phone }: Holder): Promise<void> {
  await sealAll(context)
  expect(await findStoredText(world.db, userId)).toEqual([])
  for (const place of await findStoredText(world.db, phone.state.activationId)) expect(place).toMatch(/^audit_.*\.activation_id$/)
  expect(await verifyAudit(context)).toMatchObject({ isIntact: true })
}

describe('while others write', () => {
  test('everything that began before the end is found or refused', async () => {
    for (let round = 0; round < 3; round += 1) {
      const holder = await world.holder()
      const other = await world.holder()
      const writers = startWriters({ ...actsOfBank(holder, other), phone: actOfPhone(holder) })
      await writers.areAtWork('operation', 'for a phone', 'challenge', 'repeatable', 'message', 'claims', 'acting', 'phone')
      await eraseUser(context, holder.userId, 30_000)
      const seen = await writers.stop()
      for (const statuses of seen.values()) expect(statuses).not.toContain(500)
      await expectErased(holder)
      expectOk(await world.bank.view(other.userId))
    }
  }, 120_000)

  test('a phone that is bound without a code is refused', async () => {
    const holder = await world.holder()
    const { userId } = holder
    provider.answerWith(() => ({ body: { userId, commit: true } }))
    const asked = provider.questions.length
    const writers = startWriters({
      direct: async (url) => {
        const phone = world.newPhone('3.3')
        return phone.send(
          await phone.prepareActivation('', { layer1: { type: 'DIRECT', identityAttributes: { login: userId } } }),
          url,
        )
      },
    })
    // The second question is one of a writer that has had an answer.
    await expect.poll(() => provider.questions.length - asked).toBeGreaterThanOrEqual(2)
    await eraseUser(context, userId, 30_000)
    const seen = await writers.stop()
    expect(seen.get('direct')).not.toContain(500)
    await expectErased(holder)
  })

  test('erased twice at once, all of it goes once', async () => {
    const holder = await world.holder()
    const other = await world.holder()
    const writers = startWriters(actsOfBank(holder, other))
    await writers.areAtWork('operation', 'message', 'claims')
    const { userId } = holder
    const erasures = await Promise.all([1, 2, 3].map(() => eraseUser(context, userId, 30_000)))
    await writers.stop()
    expect(erasures.map(({ registrations }) => registrations).toSorted()).toEqual([0, 0, 1])
    await expectErased(holder)
  })
})

test('who has the name afterwards is somebody else, from the first moment on', async () => {
  const holder = await world.holder()
  await eraseUser(context, holder.userId)
  expectOk(await world.bank.register(holder.userId))
  expect(await registrationOf(world, holder.userId)).toBe('CREATED')
  await eraseUser(context, holder.userId, 2_000)
  const refused = await world.bank.register(holder.userId)
  expect(refused).toMatchObject({ status: 503, headers: { 'retry-after': '1' } })
  expect(refused.text).not.toContain(holder.userId)
  await expect.poll(async () => (await world.bank.register(holder.userId)).status, { timeout: PATIENCE_MS }).toBe(200)
  await eraseUser(context, holder.userId)
  await expectErased(holder)
})

// The embedded database has one connection, so nobody else is in a transaction there.
describe.skipIf(!HAS_POSTGRES)('across open transactions', () => {
  /** An operation that tells of a user, made within the transaction. */
  const createOperation = async (tx: Tx, text: string, of: { readonly userId?: string; readonly activationId?: string }) => {
    const { template_revision_id: templateRevisionId } = await tx
      .selectFrom('template')
      .select('template_revision_id')
      .where('template_name', '=', template)
      .executeTakeFirstOrThrow()
    const operation = {
      operationId: `o-${text}`,
      applicationId: null,
      userId: null,
      externalId: text,
      templateRevisionId,
      templateName: template,
      operationType: 'login',
      language: 'en',
      parameters: { of: text },
      data: 'A1',
      signatureTypes: ['possession'],
      maxFailureCount: 5,
      riskFlags: '',
      activationFlag: null,
      activationId: null,
      proximitySeed: null,
      createdAt: new Date(),
      expiresAt: new Date(Date.now() + 300_000),
      ...of,
    }
    expect(await insertOperation(tx, operation, { eventType: 'operation_created', eventData: '{}' })).toBe(world.applicationId)
  }

  /** What a process has begun before the erasure and commits after its end. */
  const WRITES: Record<string, (tx: Tx, holder: Holder, other: Holder) => Promise<unknown>> = {
    message: (tx, { userId }) =>
      insertInboxMessage(tx, {
        message_id: `m-${userId}`,
        application_id: world.applicationId,
        user_id: userId,
        type: 'text',
        subject: userId,
        summary: userId,
        body: userId,
        is_read: false,
        created_at: new Date(),
      }),
    claims: (tx, { userId }) =>
      storeUserClaims(tx, { applicationId: world.applicationId, userId, claims: Buffer.from(userId), at: new Date() }),
    operation: (tx, { userId }) => createOperation(tx, userId, { userId }),
    claim: async (tx, holder, other) => {
      const { id } = await world.operation(other.userId)
      await world.unclaim(id)
      expect(await claimOperation(tx, id, auditOf(holder))).toBe(true)
    },
    registration: async (tx, { userId }) => {
      const app = { applicationId: 'elsewhere', userId, activationId: `a-${userId}` }
      const bytes = Buffer.from(userId)
      const row = { ...app, activationCodeHash: bytes, activationQrCode: bytes, serverPublicKey: bytes, serverPrivateKey: bytes }
      const times = { createdAt: new Date(), expiresAt: new Date(Date.now() + 300_000) }
      await insertActivation(tx, {
        row: {
          ...row,
          ...times,
          maxFailedAttempts: 5,
          commitPhase: 'ON_COMMIT',
          otpHash: null,
          flags: '',
          parentActivationId: null,
          replacesParent: false,
        },
        audit: { ...app, eventType: 'registration_created', eventData: '{}', occurredAt: new Date() },
      })
    },
    acting: async (tx, { userId: externalUserId }, other) => {
      const app = { applicationId: world.applicationId, userId: other.userId, activationId: other.phone.state.activationId }
      const { row_version: rowVersion } = await tx
        .selectFrom('activation')
        .select('row_version')
        .where('activation_id', '=', app.activationId)
        .executeTakeFirstOrThrow()
      const change = { from: 'ACTIVE', to: 'BLOCKED', reason: null, externalUserId, at: new Date(), rowVersion } as const
      const eventData = JSON.stringify({ externalUserId })
      const audit = { ...app, eventType: 'registration_blocked', eventData, occurredAt: new Date() }
      expect(await changeState(tx, { activationId: app.activationId, ...change }, audit)).toBe(true)
    },
  }

  test.each(Object.keys(WRITES))('%s: what is committed after the end is refused', async (name) => {
    const holder = await world.holder()
    const other = await world.holder()
    const written = Promise.withResolvers<void>()
    const ended = Promise.withResolvers<void>()
    const writing = inTransaction(context.db, async (tx) => {
      await WRITES[name]?.(tx, holder, other)
      written.resolve()
      await ended.promise
    })
    await Promise.race([written.promise, writing])
    await eraseUser(context, holder.userId)
    ended.resolve()
    await expect(writing).rejects.toMatchObject({ code: '40001' })
    await expectErased(holder)
    expect(await registrationOf(world, other.userId)).toBe('ACTIVE')
  })

  /** What holds a row of the user, or is at its commit, until it is over. */
  const HOLDS: Record<string, (tx: Tx, holder: Holder, audit: AuditEvent) => Promise<unknown>> = {
    token: (tx, { userId, phone }, audit) => {
      const { activationId } = phone.state
      return insertToken(
        tx,
        { tokenId: `t-${userId}`, activationId, factors: 'possession', tokenSecret: random(16) },
        audit,
        undefined,
      )
    },
    'an operation for the phone that nobody has claimed': (tx, { userId, phone }) =>
      createOperation(tx, userId, { activationId: phone.state.activationId }),
    'a challenge for the phone': async (tx, { phone }) => {
      expect(await insertChallenge(tx, challengeOf(phone.state.activationId))).toBe(true)
    },
    'a temporary key of the phone': async (tx, { phone }) => {
      const { activationId } = phone.state
      const key = { temporaryKeyId: `k-${activationId}`, applicationKey: world.app.applicationKey, activationId }
      expect(await insertTemporaryKey(tx, { ...key, privateKey: random(32), expiresAt: new Date(Date.now() + 300_000) })).toBe(
        true,
      )
    },
    'an approval with its audit row': async (tx, { userId }, audit) => {
      const { id } = await world.operation(userId)
      const end = { operationId: id, to: 'APPROVED', statusReason: userId, additionalData: null, at: new Date() } as const
      expect(await endOperation(tx, end, audit)).toBe(true)
    },
    'a refused code': (tx, { phone }, audit) => insertAuditEvent(tx, audit, heldActivation(phone.state.activationId)),
    'a commit that has not seen the erasure': async (tx, holder, audit) => {
      await WRITES['message']?.(tx, holder, holder)
      await insertAuditEvent(tx, audit)
      await sql`set constraints all immediate`.execute(tx)
    },
  }

  /** Somebody waits for the transaction, has given up, and waits once more. */
  const awaitedTwice = async (tx: Tx): Promise<void> => {
    const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(tx)
    const waits = new Set<string>()
    await expect
      .poll(async () => {
        const waiting = sql<{ wait: string }>`
          select format('%s %s', pid, query_start) as wait from pg_stat_activity where ${rows[0]?.pid}::int = any(pg_blocking_pids(pid))`
        for (const { wait } of (await waiting.execute(world.db)).rows) waits.add(wait)
        return waits.size
      })
      .toBeGreaterThan(1)
  }

  test.each(Object.keys(HOLDS))('%s is waited for', async (name) => {
    const holder = await world.holder()
    let isOver = false
    const { erasing } = await inTransaction(context.db, async (tx) => {
      await HOLDS[name]?.(tx, holder, auditOf(holder))
      const begun = eraseUser(context, holder.userId).then(() => isOver)
      await Promise.race([awaitedTwice(tx), begun])
      isOver = true
      return { erasing: begun }
    })
    expect(await erasing).toBe(true)
    await expectErased(holder)
  })
})

test('who has read the phone before the erasure writes nothing after it', async () => {
  const holder = await world.holder()
  const { userId, phone } = holder
  const other = await world.holder()
  const { id } = await world.operation(other.userId)
  await world.unclaim(id)
  await eraseUser(context, userId)
  await insertAuditEvent(context.db, auditOf(holder), heldActivation(phone.state.activationId))
  expect(await claimOperation(context.db, id, auditOf(holder))).toBe(false)
  expect(await insertChallenge(context.db, challengeOf(phone.state.activationId))).toBe(false)
  await expectErased(holder)
})

const challengeOf = (activationId: string): NewChallenge => ({
  challengeId: `c-${activationId}`,
  applicationId: world.applicationId,
  activationId,
  terms: random(32),
  expiresAt: new Date(Date.now() + 300_000),
})

const auditOf = ({ userId, phone }: Holder) => ({
  applicationId: world.applicationId,
  userId,
  activationId: phone.state.activationId,
  eventType: 'test_row',
  eventData: JSON.stringify({ userId }),
  occurredAt: new Date(),
})

describe('the command', () => {
  test('ends while two processes serve, and what it ends is gone', async () => {
    const installation = await createInstallation(DATABASE_KIND)
    const environment = { ...installation.env, PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD }
    const servers = [await startPawl(environment), ...(HAS_POSTGRES ? [await startPawl(environment)] : [])]
    const urls = servers.map(({ url }) => url)
    const away = await openWorld({
      urls,
      admin: `admin:${ADMIN_PASSWORD}`,
      advance: () => undefined,
      close: async () => undefined,
    })
    const { userId, phone } = await away.activePhone('3.3')
    const { bank, applicationId } = away
    const writers = startWriters(
      {
        operation: (url) =>
          bank.as(bank.credential, url).createOperation({ userId, template: 'login', parameters: {}, externalId: userId }),
        message: (url) =>
          bank
            .as(bank.credential, url)
            .call('POST', '/inbox/messages', { userId, type: 'text', subject: userId, summary: 's', body: 'b' }),
        claims: (url) =>
          bank
            .as(bank.credential, url)
            .call('PUT', `/admin/applications/${applicationId}/claims/${userId}`, { given_name: userId }),
        code: (url) => phone.send(phone.prepareValidation({ body: userId, factors: 'possession' }), url),
      },
      urls,
    )
    await writers.areAtWork('operation', 'message', 'claims', 'code')
    if (!HAS_POSTGRES) {
      // The embedded database must be free.
      await writers.stop()
      for (const server of servers) await server.end('SIGTERM')
    }
    expect(await runCli(['user', 'erase', userId, '--yes'], installation.env)).toMatchObject({ code: 0 })
    await writers.stop()
    const { env } = installation
    for (const server of servers) await server.end('SIGTERM')
    const database = await openInstalled(env)
    expect(await findStoredText(database.db, userId)).toEqual([])
    await database.close()
    expect(await runCli(['audit', 'verify'], env)).toMatchObject({ code: 0 })
  }, 120_000)

  test('killed at any moment, it erases all or nothing, and is run again', async () => {
    const installation = await createInstallation(DATABASE_KIND)
    const { env } = installation
    const environment = { ...env, PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD }
    let server = await startPawl(environment)
    const { bank, activePhone } = await openAt([server.url])
    const { userId } = await activePhone('3.3')
    const write = (at: Bank) =>
      at.call('POST', '/inbox/messages', { userId, type: 'text', subject: userId, summary: 's', body: 'b' })
    expectOk(await write(bank))
    const begin = () => startNode(['bin/pawl.mjs', 'user', 'erase', userId, '--yes'], env)
    if (HAS_POSTGRES) {
      const database = await openInstalled(env)
      const command = await inTransaction(database.db, async (tx) => {
        // The command may take longer to start than a transaction may be idle.
        await sql`set local idle_in_transaction_session_timeout = 0`.execute(tx)
        // Whoever seals the log keeps an erasure waiting.
        for (const log of AUDIT_LOGS) while ((await lockLog(tx, log)) === undefined) await sleep(10)
        const begun = begin()
        await expect.poll(async () => (await write(bank)).status, { timeout: PATIENCE_MS, interval: 50 }).toBe(503)
        return begun
      })
      await command.end('SIGKILL')
      await database.close()
      // What was begun is to be ended.
      expect(await write(bank)).toMatchObject({ status: 503 })
    }
    await server.end('SIGTERM')
    for (const wait of [500, 800, 1_100]) {
      const command = begin()
      await sleep(wait)
      await command.end('SIGKILL')
    }
    expect(await runCli(['user', 'erase', userId, '--yes'], env)).toMatchObject({ code: 0 })
    const database = await openInstalled(env)
    // The name is open soon, whatever those that were killed have left.
    const { rows } =
      await sql`select max(closed_until) <= clock_timestamp() + interval '2 s' as "isSoon" from user_erasure`.execute(database.db)
    expect(rows).toEqual([{ isSoon: true }])
    expect(await findStoredText(database.db, userId)).toEqual([])
    await database.close()
    expect(await runCli(['audit', 'verify'], env)).toMatchObject({ code: 0 })
    server = await startPawl(environment)
    const again = bank.as(bank.credential, server.url)
    await expect.poll(async () => (await again.register(userId)).status).toBe(200)
  }, 120_000)
})

const openInstalled = (env: Environment) =>
  openDatabase({ databaseUrl: env['DATABASE_URL'], dataDir: env['PAWL_DATA_DIR'] ?? '', poolSize: 2 })

const openAt = (urls: readonly string[]) =>
  openWorld({ urls, admin: `admin:${ADMIN_PASSWORD}`, advance: () => undefined, close: async () => undefined })
