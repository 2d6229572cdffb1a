// Shifts the clock of a process by the milliseconds in a file, which may change at any time. Loaded before everything else (node --import).
import { readFileSync } from 'node:fs'

const file = process.env.SHIFTED_CLOCK_FILE
const read = () => Number(readFileSync(file, 'utf8'))
const Right = globalThis.Date
let shift = read()
setInterval(() => {
  shift = read()
}, 100).unref()

globalThis.Date = class Date extends Right {
  constructor(...given) {
    if (given.length === 0) super(Right.now() + shift)
    else super(...given)
  }
  static now() {
    return Right.now() + shift
  }
}
