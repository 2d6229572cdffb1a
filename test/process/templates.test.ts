// Templates from outside the process: the file at start, and the command line.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { runCli } from '../helpers/cli.ts'
import { createInstallation, endEverything, refusePawl, runNode, startPawl } from '../helpers/process.ts'

// Creating a database costs seconds of processor time, and other test files run at the same time.

afterEach(endEverything)

test('a file with a fault is refused in one line, before anything is opened', async () => {
  const { directory, env } = await createInstallation('embedded', { isEmpty: true })
  const file = join(directory, 'templates.json')
  writeFileSync(file, '[{"templateName":"half"}]')
  const { code, stdout, stderr } = await refusePawl(env, { PAWL_TEMPLATES_FILE: file })
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).toMatch(
    /^pawl cannot start: PAWL_TEMPLATES_FILE: the templates file .* is wrong in template 1 "half": operationType .*\n$/,
  )
  expect((await runCli(['template', 'list', '--local'], env)).stderr).toContain('there is no database')
})

test('the file is applied at start; the command line lists, exports and imports', async () => {
  const { directory, env } = await createInstallation('embedded')
  const file = join(directory, 'templates.json')
  const [one, two] = ['one', 'two'].map((templateName) => ({
    templateName,
    operationType: 'test',
    dataTemplate: 'A2',
    signatureType: ['possession'],
    maxFailureCount: 1,
    expiration: 60,
    riskFlags: '',
    proximityCheckEnabled: false,
    texts: { en: { title: 'T', message: 'M', attributes: [] } },
  }))
  writeFileSync(file, JSON.stringify([one]))
  await (await startPawl(env, { PAWL_TEMPLATES_FILE: file })).end('SIGTERM')

  const listed = await runCli(['template', 'list', '--local'], env)
  expect(listed.stdout).toMatch(/^TEMPLATENAME +OPERATIONTYPE +DATATEMPLATE +SOURCE\n/)
  expect(listed.stdout).toMatch(/^one +test +A2 +file$/m)
  expect(listed.stdout).toMatch(/^payment +authorize_payment +A1\*A\$\{amount\}\$\{currency\}\*I\$\{iban\} +shipped$/m)
  const exported = await runCli(['template', 'export', '--local'], env)
  expect(JSON.parse(exported.stdout)).toContainEqual(one)

  writeFileSync(file, JSON.stringify([{ ...one, expiration: 61 }, two]))
  const imported = await runNode(['bin/pawl.mjs', 'template', 'import', file], env)
  expect(imported).toMatchObject({ code: 0, stdout: 'one\tchanged\ntwo\tcreated\n' })
  expect((await runCli(['template', 'import'], env)).code).toBe(2)
  for (const [path, says] of [
    [directory, 'is a folder'],
    [join(directory, 'none.json'), 'does not exist'],
  ] as const) {
    const refused = { code: 2, stdout: '', stderr: `the file: ${path} ${says}\n` }
    expect(await runCli(['template', 'import', path], env)).toMatchObject(refused)
  }
})
