// A test that fails prints the last that its servers logged, but for requests that were answered 200. And the files of a
// worker share its timers, so none may leave them changed.
import { afterEach, beforeAll, expect } from 'vitest'
import { takeLogged } from './logged.ts'

const LINES = 5

afterEach(({ task }) => {
  const lines = takeLogged()
  if (task.result?.state !== 'fail') return
  const told = lines.filter((line) => !line.includes('"status":200,')).slice(-LINES)
  if (told.length > 0) console.log(`The server logged:\n${told.join('')}`)
})

beforeAll(() => {
  const fake = [setTimeout, setInterval, setImmediate].filter((begin) => 'clock' in begin)
  expect(fake, 'a file that this worker ran before has left fake timers').toEqual([])
})
