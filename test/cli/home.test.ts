// Where the command line keeps files with secrets, when the environment does not say what the home of the account is.
import { spawnSync } from 'node:child_process'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { homeOf } from '../../cli/environment.ts'
import { phonesPath } from '../../cli/phone/store.ts'

afterEach(() => vi.unstubAllEnvs())

test.each([{}, { HOME: '' }])('with %j it is the home that the system knows, and never the current folder', (env) => {
  vi.stubEnv('HOME', env.HOME)
  expect(homeOf(env)).toBe(userInfo().homedir)
  expect(phonesPath(env)).toBe(join(userInfo().homedir, '.local/share/pawl/phones.json'))
})

test.skipIf(process.getuid?.() !== 0)('an account that the system does not know is told to set HOME', () => {
  const module = new URL('../../cli/environment.ts', import.meta.url).href
  const script = `import { homeOf } from '${module}'; process.seteuid(54321); try { homeOf({}) } catch (error) { console.log(error.message) }`
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { env: {}, encoding: 'utf8' })
  expect(stdout).toBe('HOME is not set, and the system knows no home of this account: set HOME\n')
})
