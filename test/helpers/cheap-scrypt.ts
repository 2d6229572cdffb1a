// Gives Node's scrypt little cost while a file of quick tests runs. A hash of full cost takes 80 ms of a processor, and files about passwords spent
// two thirds of their time on it. The cost is asserted where it stays full: src/crypto compares with another implementation, and test/process
// compares costs and sends floods.
import crypto, { type BinaryLike, type ScryptOptions } from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import { beforeAll, expect } from 'vitest'

const FULL_COST = /\/(src\/crypto|test\/process)\//
const CHEAPEST = { N: 2 }
const { scrypt } = crypto

type Done = (error: Error | null, hash: Buffer) => void
const cheapScrypt = (password: BinaryLike, salt: BinaryLike, length: number, options: ScryptOptions, done: Done): void =>
  scrypt(password, salt, length, { ...options, ...CHEAPEST }, done)

/** Puts a function in the place of scrypt, also for modules that have imported it by its name. */
function replaceScrypt(hash: typeof cheapScrypt): void {
  crypto.scrypt = hash as typeof scrypt
  syncBuiltinESMExports()
}

beforeAll(() => {
  if (FULL_COST.test(expect.getState().testPath ?? '')) return undefined
  replaceScrypt(cheapScrypt)
  return () => replaceScrypt(scrypt)
})
