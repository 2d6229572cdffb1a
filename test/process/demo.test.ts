// scripts/demo.ts as a newcomer runs it: the request it prints is pasted twice, the first is verified and the second refused.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { PHONE_ALGORITHMS } from '../../phone/v4-crypto.ts'
import { runNode } from '../helpers/process.ts'
import { startWorld, type World } from '../helpers/world.ts'

const runFile = promisify(execFile)

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())

const demo = (...args: readonly string[]) =>
  runNode(['scripts/demo.ts', '--url', world.url, '--admin', world.bank.credential ?? '', ...args])

test.each(['3.3', ...PHONE_ALGORITHMS])('a request of a phone with %s is good once', async (name) => {
  const isOf3 = name === '3.3'
  const { code, stdout } = await demo(...(isOf3 ? [] : ['--algorithm', name]))
  expect(code).toBe(0)
  const command = stdout.split('\n').find((line) => line.startsWith('curl ')) ?? ''
  expect(command).toContain(isOf3 ? '/pa/v3/signature/validate' : '/pa/v4/auth/validate')
  const paste = async (): Promise<string> => (await runFile('bash', ['-c', `${command} --silent`])).stdout
  expect(await paste()).toBe('{"status":"OK"}')
  expect(await paste()).toContain('ERR_AUTHENTICATION')
})

test('an algorithm that is none is refused', async () => {
  const { code, stderr } = await demo('--algorithm', 'EC_P256')
  expect(code).toBe(1)
  expect(stderr).toContain('--algorithm must be one of EC_P384, EC_P384_ML_L3, EC_P384_ML_L5')
})
