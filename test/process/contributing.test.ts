// CONTRIBUTING.md, "Add an endpoint in eight steps": in a copy of the sources the diff is applied, the lists are written, and the tests that
// come with it are run.
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { readDiff } from '../helpers/contributing.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
/** Neither packages nor what a checkout holds beside the sources. */
const LEFT_OUT = ['node_modules', '.git', 'data', 'dist', 'coverage']
const QUICK = ['test/api/device-v4/echo.test.ts', 'test/citations.test.ts']
const TABLES = ['test/process/bad-headers-v4.test.ts', 'test/process/races-v4.test.ts']

// What a database answers to the endpoint does not differ. Whoever tries the page has applied it.
const skip = Boolean(process.env['PAWL_TEST_DATABASE_URL']) || existsSync(join(root, 'src/api/device/echo.ts'))

// Each run of tests starts anew.
test('the endpoint of CONTRIBUTING.md passes its tests', { skip, timeout: 240_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'pawl-contributing-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const names = (await readdir(root)).filter((name) => !LEFT_OUT.includes(name))
  await Promise.all(names.map((name) => cp(join(root, name), join(folder, name), { recursive: true })))
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  const run = async (program: string, args: readonly string[], input = '') => {
    const running = promisify(execFile)(program, args, { cwd: folder, env: { ...process.env, VITEST: undefined, NO_COLOR: '1' } })
    running.child.stdin?.end(input)
    return running
  }
  await run('git', ['apply'], readDiff(await readFile(join(root, 'CONTRIBUTING.md'), 'utf8')))
  await run(process.execPath, ['scripts/endpoints-docs.ts'])
  expect(await readFile(join(folder, 'docs/ENDPOINTS.md'), 'utf8')).toContain('`POST /pa/v4/echo`')
  const vitest = async (...args: string[]) =>
    (await run(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', ...args])).stdout
  expect(await vitest('--project=quick', ...QUICK)).toMatch(/Test Files\s+2 passed/)
  expect(await vitest('--project=process', '-t', 'echo', ...TABLES)).toMatch(/Tests\s+2 passed/)
})
