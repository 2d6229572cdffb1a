// Prints the last log lines of the servers when a test fails, apart from requests that were answered 200. Checks that a file leaves
// the timers unchanged, because the files of a worker share them.
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
