// What OpenSSL takes for the operations that a request of 4.0 with EC_P384 cannot do without.
import { diffieHellman, generateKeyPairSync, sign } from 'node:crypto'

const server = newPair()
const phone = newPair()
const OPERATIONS = {
  generate: () => newPair(),
  agree: () => diffieHellman({ privateKey: server.privateKey, publicKey: phone.publicKey }),
  sign: () => sign('sha384', MESSAGE, server.privateKey),
} as const
const MESSAGE = Buffer.alloc(600)

/** By the end of the name of a work. An activation begins with a temporary key; the server then encapsulates and makes its own pair (v4 §4, §8). */
const NEEDED: Readonly<Record<string, readonly (keyof typeof OPERATIONS)[]>> = {
  'temporary key': ['generate', 'agree', 'sign'],
  'activation create': ['generate', 'agree', 'generate'],
  activation: ['generate', 'agree', 'sign', 'generate', 'agree', 'generate'],
}

/** Microseconds of processor time for one unit of the work, over 100 of them. */
export function openSslMicroseconds(work: string): number {
  const [, operations = []] = Object.entries(NEEDED).find(([name]) => work.endsWith(name)) ?? []
  const before = process.cpuUsage()
  for (let i = 0; i < ROUNDS; i += 1) for (const name of operations) OPERATIONS[name]()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / ROUNDS
}

function newPair() {
  return generateKeyPairSync('ec', { namedCurve: 'secp384r1' })
}

const ROUNDS = 100
