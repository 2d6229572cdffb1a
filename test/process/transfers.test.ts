// A phone moves to another app of the bank, and something else happens: a process is killed, a statement is lost, the bank or another app is
// as fast. Of parent and child one is live afterwards, never both and never none (mobile-token §9).
import { afterEach, describe, expect, test, onTestFailed } from 'vitest'
import type { HttpReply } from '../../phone/http.ts'
import type { Prepared } from '../../phone/v3/state.ts'
import { serverUrl, type TestServer } from '../helpers/app.ts'
import { startFaultyServer, startHeldServer } from '../helpers/fault-line.ts'
import { ADMIN_PASSWORD, createInstallation, DATABASE_KIND, endEverything, startPawl } from '../helpers/process.ts'
import {
  type AnyPhone,
  askForCode,
  configure,
  JUNIOR,
  openTransfers,
  prepareBind,
  type Side,
  type Transfers,
  WALLET,
} from '../helpers/transfers.ts'
import { expectOk, openWorld, openWorldOn, startSharedWorld, startWorld, type World } from '../helpers/world.ts'

const MOVES = 20
// Another one in each run; of the last ones the answers may be on their way already.
const KILLED_AT = 1 + Math.floor(Math.random() * 15)
const KILL_TIMEOUT_MS = 300_000
const ADMIN = { PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD }

afterEach(endEverything)

/** A phone that was given a code to move by, and the request that moves it. */
interface Move {
  readonly userId: string
  readonly phone: AnyPhone
  readonly child: string
  readonly app: AnyPhone
  readonly code: string
  readonly bind: Prepared<unknown>
}

async function openMove(transfers: Transfers, side: Side, target = WALLET): Promise<Move> {
  const { userId, phone } = await transfers.boundPhone(side)
  return { userId, phone, ...(await addMove(transfers, phone, side, target)) }
}

async function addMove(transfers: Transfers, phone: AnyPhone, side: Side, target: string) {
  const { activationId: child, activationCode: code } = await askForCode(phone, { applicationId: target })
  const app = await transfers.otherApp(side, target)
  return { child, app, code, bind: await prepareBind(app, code) }
}

/** The states of parent and child, of which one must be live; a child that waits is none yet. */
async function statesOf({ world, detailOf }: Transfers, { phone, child }: Pick<Move, 'phone' | 'child'>, target = WALLET) {
  const parent = String((await detailOf(world.applicationId, phone.state.activationId))['state'])
  return [parent, String((await detailOf(target, child))['state'])] as const
}

const MOVED = ['REMOVED', 'ACTIVE'] as const
const WAITING = ['ACTIVE', 'CREATED'] as const

test(
  `a process is killed -9 while ${MOVES} phones move: each has moved or has not, and the others go on`,
  async () => {
    const installation = await createInstallation(DATABASE_KIND)
    const first = await startPawl(installation.env, ADMIN)
    const worldAt = (url: string) =>
      openWorld({ urls: [url], admin: `admin:${ADMIN_PASSWORD}`, advance: () => undefined, close: async () => undefined })
    const transfers = await openTransfers(await worldAt(first.url))
    const moves = await Promise.all(Array.from({ length: MOVES }, (_, i) => openMove(transfers, i % 2 === 0 ? '3.3' : '4.0')))
    let answered = 0
    // They queue for the hash of their OTP, so that each is somewhere else when one of them is answered.
    onTestFailed(() => console.error(`the process was killed at answer ${KILLED_AT}`))
    const replies = await Promise.all(
      moves.map(async ({ app, bind }) => {
        const reply = await app.send(bind).catch(() => undefined)
        answered += 1
        if (answered === KILLED_AT) first.send('SIGKILL')
        return reply
      }),
    )
    expect(await first.ended).toMatchObject({ signal: 'SIGKILL' })
    const second = await startPawl(installation.env, ADMIN)
    const after: Transfers = { ...transfers, ...(await readingAt(second.url, worldAt)) }
    const goOn = async (move: Move, reply: HttpReply | undefined) => {
      const states = await statesOf(after, move)
      if (reply !== undefined) expect([reply.status, states]).toEqual([200, MOVED])
      expect([MOVED, WAITING]).toContainEqual(states)
      if (states[0] === 'REMOVED') return
      const app = move.app.speaking({ url: second.url })
      expectOk(await app.send(await prepareBind(app, move.code)))
      expect(await statesOf(after, move)).toEqual(MOVED)
    }
    await Promise.all(moves.map((move, i) => goOn(move, replies[i])))
    const lost = replies.filter((reply) => reply === undefined).length
    expect([lost > 0, lost < MOVES]).toEqual([true, true])
  },
  KILL_TIMEOUT_MS,
)

async function readingAt(url: string, worldAt: (url: string) => Promise<World>): Promise<Pick<Transfers, 'world' | 'detailOf'>> {
  const world = await worldAt(url)
  return {
    world,
    detailOf: async (application, id) =>
      expectOk(await world.bank.call('GET', `/admin/applications/${application}/registrations/${id}`)).json as Readonly<
        Record<string, unknown>
      >,
  }
}

test('each statement of a key exchange is lost, before and after it was done', async () => {
  const { server, faults, close } = await startFaultyServer()
  try {
    const transfers = await openTransfers(await openWorldOn(server))
    const seen = new Set<string>()
    for (const place of ['before', 'after'] as const) {
      let isLost = true
      for (let n = 1; isLost; n += 1) {
        const move = await openMove(transfers, '3.3')
        faults.arm(n, place)
        const reply = await move.app.send(move.bind)
        isLost = faults.disarm()
        const states = await statesOf(transfers, move)
        const what = `${reply.status} ${states.join(' ')} with statement ${n} lost ${place}`
        expect([MOVED, WAITING], what).toContainEqual(states)
        expect([200, 503], what).toContain(reply.status)
        if (reply.status === 200) expect(states, what).toEqual(MOVED)
        seen.add(`${reply.status} ${states.join(' ')}`)
        if (states[0] !== 'ACTIVE') continue
        expectOk(await move.app.send(await prepareBind(move.app, move.code)))
        expect(await statesOf(transfers, move), what).toEqual(MOVED)
      }
    }
    // An answer that is lost after the move is told as unknown, and the move stays.
    expect([...seen].toSorted()).toEqual(['200 REMOVED ACTIVE', '503 ACTIVE CREATED', '503 REMOVED ACTIVE'])
  } finally {
    await close()
  }
})

describe('between the statements of a key exchange', () => {
  let server: TestServer | undefined
  afterEach(() => server?.close())

  test('the bank blocks or removes the parent, its phone signs, or it moves elsewhere', async () => {
    const held = await startHeldServer()
    ;({ server } = held)
    const { line } = held
    const transfers = await openTransfers(await openWorldOn(held.server))
    const { bank, applicationId } = transfers.world
    expectOk(await configure(bank, applicationId, [{ targets: [WALLET, JUNIOR], type: 'MOVE' }]))
    const meet = async (meanwhile: (move: Move) => Promise<() => Promise<unknown>>) => {
      const outcomes = new Set<string>()
      for (let n = 1, isMet = true; isMet; n += 1) {
        const move = await openMove(transfers, '3.3')
        const other = await meanwhile(move)
        const met = await line.meet(n, () => move.app.send(move.bind), other)
        ;({ isMet } = met)
        const [parent, child] = await statesOf(transfers, move)
        expect(met.result.status === 200, `after statement ${n}`).toBe(child === 'ACTIVE')
        if (child === 'ACTIVE') expect(parent).toBe('REMOVED')
        if (isMet) outcomes.add(`${parent} ${child}`)
      }
      return [...outcomes].toSorted()
    }
    expect(
      await meet(
        async ({ userId }) =>
          () =>
            bank.change(userId, 'BLOCK'),
      ),
    ).toEqual(['BLOCKED CREATED', 'REMOVED ACTIVE'])
    expect(
      await meet(
        async ({ userId }) =>
          () =>
            bank.remove(userId),
      ),
    ).toEqual(['REMOVED ACTIVE', 'REMOVED CREATED'])
    expect(
      await meet(
        async ({ phone }) =>
          () =>
            phone.send(phone.prepareValidation()),
      ),
    ).toEqual(['REMOVED ACTIVE'])
    const siblings: (Move & { reply?: HttpReply })[] = []
    const elsewhere = await meet(async (move) => {
      const sibling: (typeof siblings)[number] = { ...move, ...(await addMove(transfers, move.phone, '3.3', JUNIOR)) }
      siblings.push(sibling)
      return async () => {
        sibling.reply = await sibling.app.send(sibling.bind)
      }
    })
    expect(elsewhere).toEqual(['REMOVED ACTIVE', 'REMOVED CREATED'])
    for (const sibling of siblings.filter(({ reply }) => reply !== undefined)) {
      const [, child] = await statesOf(transfers, sibling, JUNIOR)
      expect(sibling.reply?.status === 200).toBe(child === 'ACTIVE')
    }
  })
})

describe.each([
  ['one server', startWorld],
  // Only PostgreSQL has room for two.
  ...(serverUrl() === undefined ? [] : [['two servers on one database', startSharedWorld] as const]),
] as const)('at once on %s', (_, start) => {
  test('two moves of one phone, one code twice, and a removal by the bank: one is live, or none where the bank removed it', async () => {
    const world = await start()
    try {
      const transfers = await openTransfers(world)
      const { bank, applicationId, urls } = world
      expectOk(await configure(bank, applicationId, [{ targets: [WALLET, JUNIOR], type: 'MOVE' }]))
      const sendAt = (i: number, { app, bind }: Pick<Move, 'app' | 'bind'>): Promise<HttpReply> =>
        app.send(bind, urls[i % urls.length] ?? world.url)
      for (let round = 0; round < 5; round += 1) {
        const move = await openMove(transfers, '3.3')
        const second = { ...move, ...(await addMove(transfers, move.phone, '3.3', JUNIOR)) }
        const thief = await transfers.otherApp('3.3')
        const copy = { app: thief, bind: await prepareBind(thief, move.code) }
        const replies = await Promise.all([sendAt(0, move), sendAt(1, second), sendAt(round, copy)])
        expect(replies.filter(({ status }) => status === 200)).toHaveLength(1)
        const states = [...(await statesOf(transfers, move)), (await statesOf(transfers, second, JUNIOR))[1]]
        expect(states[0]).toBe('REMOVED')
        expect(states.filter((state) => state === 'ACTIVE')).toHaveLength(1)

        const other = await openMove(transfers, '3.3')
        const [bound, removed] = await Promise.all([sendAt(round, other), bank.remove(other.userId)])
        const [parent, child] = await statesOf(transfers, other)
        expect(parent).toBe('REMOVED')
        expect([bound.status === 200, removed.status === 200]).toEqual([child === 'ACTIVE', child !== 'ACTIVE'])
      }
    } finally {
      await world.close()
    }
  })
})
