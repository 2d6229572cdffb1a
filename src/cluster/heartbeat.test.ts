// Tests when a silent worker counts as one that hangs.
import type { Worker } from 'node:cluster'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { BEAT_MS, createHeartbeat } from './heartbeat.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const worker = {} as Worker
const look = (count: number) => vi.advanceTimersByTime(count * BEAT_MS)

function watch() {
  const silent: number[] = []
  const heartbeat = createHeartbeat((_, looks) => silent.push(looks))
  heartbeat.add(worker)
  return { heartbeat, silent }
}

test('a worker that serves hangs at the seventh look without news, and is told of once', () => {
  const { heartbeat, silent } = watch()
  heartbeat.serve(worker)
  // The first look finds that it began to serve.
  look(1)
  look(6)
  expect(silent).toEqual([])
  look(1)
  expect(silent).toEqual([7])
  look(60)
  expect(silent).toEqual([7])
})

test('each word of it counts anew', () => {
  const { heartbeat, silent } = watch()
  heartbeat.serve(worker)
  for (let i = 0; i < 10; i += 1) {
    look(7)
    heartbeat.hear(worker)
  }
  expect(silent).toEqual([])
})

test('until it serves it reads its code, and may be silent for a minute, before it is first heard of and after', () => {
  const { heartbeat, silent } = watch()
  look(60)
  heartbeat.hear(worker)
  look(60)
  expect(silent).toEqual([])
  look(1)
  expect(silent).toEqual([60])
})

test('one that has ended is not watched', () => {
  const { heartbeat, silent } = watch()
  heartbeat.remove(worker)
  heartbeat.serve(worker)
  look(100)
  expect(silent).toEqual([])
})
