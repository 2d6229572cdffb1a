// A test that fails prints the last that its servers logged, but for requests that were answered 200.
import { afterEach } from 'vitest'
import { takeLogged } from './logged.ts'

const LINES = 5

afterEach(({ task }) => {
  const lines = takeLogged()
  if (task.result?.state !== 'fail') return
  const told = lines.filter((line) => !line.includes('"status":200,')).slice(-LINES)
  if (told.length > 0) console.log(`The server logged:\n${told.join('')}`)
})
