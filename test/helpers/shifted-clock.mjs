// Loaded before everything else (node --import): the clock of the process is off by what a file says, in milliseconds, from moment to moment.
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
