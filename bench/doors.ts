// Measures doors: npm run bench -- doors. First their processor time and statements, in turns with a code of pawl's own endpoints; then the
// longest turn of the event loop for long bodies; then whether answers to unknown, foreign and wrong headers differ in time.
import { availableParallelism, loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { fileURLToPath } from 'node:url'
import { type HttpRequest, send } from '../phone/http.ts'
import { countLogged, startLoggingPostgres } from './http/statements.ts'
import { composeRequest, connectionOf } from './http/connection.ts'
import { type Asked, type DoorScene, openDoors } from './http/doors.ts'
import { askLongestTurn, TURN_WATCH } from './http/longest-turn.ts'
import { startTarget, type Target } from './http/target.ts'
import { print, readWorks } from './http/terminal.ts'
import { compare, header, measureInTurns, row } from './http/turns.ts'
import { median, runWindow } from './http/window.ts'
import type { Work } from './http/works.ts'

const { values } = parseArgs({
  options: {
    checkout: { type: 'string', default: fileURLToPath(new URL('..', import.meta.url)) },
    works: { type: 'string', default: '' },
    phones: { type: 'string', default: '64' },
    clients: { type: 'string', default: '16' },
    windows: { type: 'string', default: '7' },
    seconds: { type: 'string', default: '2' },
    'warm-up': { type: 'string', default: '4' },
    requests: { type: 'string', default: '300' },
  },
})
const [phones, clients, windows, seconds, warmUp, requests] = [
  Number(values.phones),
  Number(values.clients),
  Number(values.windows),
  Number(values.seconds),
  Number(values['warm-up']),
  Number(values.requests),
]

const isNameWanted = readWorks(values.works)
const isWanted = ({ name }: { readonly name: string }): boolean => isNameWanted(name)

async function main(): Promise<void> {
  const postgres = await startLoggingPostgres()
  const databaseUrl = postgres.createDatabase('bench_doors')
  const { checkout } = values
  const target = await startTarget({ name: 'pawl', checkout, databaseUrl, databasePid: postgres.pid, imports: [TURN_WATCH] })
  const scene = await openDoors(target, Math.max(phones, clients))
  print(`processes that ran on the machine's ${availableParallelism()} cores in the minute before: ${loadavg()[0]?.toFixed(1)}`)
  await printCosts(target, scene, (work) => countStatements(postgres.folder, databaseUrl, target, work))
  await printLongestTurns(target, scene.bodies)
  await printTimes(target.url, scene.refused)
  print(`load at the end: ${loadavg()[0]?.toFixed(1)}`)
}

async function printCosts(target: Target, { validate, doors }: DoorScene, count: (work: Work) => Promise<string>): Promise<void> {
  print(`\n${header()}`)
  for (const door of doors.filter(isWanted)) {
    const pairs = [door, validate].map((work) => ({ target, work }))
    const [own, other] = await measureInTurns(door.name, pairs, { clients, windows, seconds, warmUp })
    if (own === undefined || other === undefined) throw new TypeError('two works have two figures')
    print(row(door.name, own))
    print(row(`  ${validate.name}`, other))
    print(compare(own, other))
  }
  print(`\nstatements a request, one at a time and ${clients} at once:`)
  for (const work of [validate, ...doors].filter(isWanted)) print(`${work.name.padEnd(32)} ${await count(work)}`)
}

async function countStatements(folder: string, databaseUrl: string, target: Target, { prepare }: Work): Promise<string> {
  const counts: string[] = []
  for (const atOnce of [1, clients]) {
    const units = await prepare(requests, atOnce)
    const statements = await countLogged(folder, databaseUrl, () => runWindow(units, target))
    counts.push((statements / requests).toFixed(2).padStart(6))
  }
  return counts.join(' ')
}

async function printLongestTurns(target: Target, bodies: readonly Asked[]): Promise<void> {
  const [pid = 0] = target.processes()
  print(`\nms of the longest turn of the event loop during a request, ${requests} of each, one at a time:`)
  print(`${''.padEnd(32)} ${['median', 'longest'].map((title) => title.padStart(8)).join(' ')}`)
  const printOne = async (name: string, work: () => Promise<unknown>): Promise<void> => {
    const turns: number[] = []
    for (let i = 0; i < requests; i += 1) {
      await askLongestTurn(pid)
      await work()
      turns.push(await askLongestTurn(pid))
    }
    print(`${name.padEnd(32)} ${[median(turns), Math.max(...turns)].map((ms) => ms.toFixed(2).padStart(8)).join(' ')}`)
  }
  // The part of the time that the machine itself adds.
  await printOne('nothing', async () => undefined)
  for (const { name, make, check } of bodies.filter(isWanted)) {
    const made = async (): Promise<HttpRequest> => await make()
    check(await send(target.url, await made()))
    const ready: HttpRequest[] = []
    for (let i = 0; i < requests; i += 1) ready.push(await made())
    await printOne(name, async () => {
      const request = ready.shift()
      if (request !== undefined) check(await send(target.url, request))
    })
  }
}

/** Each kind has its turn in every round, so that other work of the machine slows all kinds alike. */
async function printTimes(url: string, groups: DoorScene['refused']): Promise<void> {
  print(`\nms of an answer, medians of ${requests} rounds, one at a time:`)
  for (const { name, kinds } of groups.filter(isWanted)) {
    for (const { make, check } of kinds) check(await send(url, await make()))
    const times = kinds.map((): number[] => [])
    for (let round = -WARM_UP; round < requests; round += 1) {
      for (let i = 0; i < kinds.length; i += 1) {
        const at = (i + Math.abs(round)) % kinds.length
        const request = composeRequest(url, await (kinds[at] as Asked).make())
        const sent = performance.now()
        await connectionOf(url, 0).exchange(request)
        if (round >= 0) times[at]?.push(performance.now() - sent)
      }
    }
    const medians = times.map(median)
    const shown = kinds.map((kind, i) => `${kind.name} ${(medians[i] ?? Number.NaN).toFixed(3)}`).join(', ')
    print(`${name.padEnd(16)} ${shown}; apart by ${(Math.max(...medians) - Math.min(...medians)).toFixed(3)} at most`)
  }
}

/** Requests until Node's compiler has nothing more to do. */
const WARM_UP = 75

await main()
