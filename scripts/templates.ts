// Templates of operations from the command line, on the database that the server would open with the same environment.
import { readTemplateFile } from '../src/domain/template/file.ts'
import { writeTemplate } from '../src/domain/template/installation.ts'
import { renderTemplate } from '../src/domain/template/parser.ts'
import { toTemplate } from '../src/domain/template/template.ts'
import { systemPlatform as platform } from '../src/lib/platform.ts'
import { type Db, inTransaction } from '../src/storage/database.ts'
import { listTemplates } from '../src/storage/templates.ts'
import { runCommand, UsageError } from './command-line.ts'
import { withDatabase } from './open-database.ts'

const usage = `Templates of operations on the configured database; an embedded one only while its server is stopped:
  node scripts/templates.ts list | export | import FILE`

await runCommand({ usage, wordsMax: 2 }, async ({ words: [command, path] }) => {
  if (command === 'list' && path === undefined) return withDatabase({ mustExist: true }, ({ db }) => list(db))
  if (command === 'export' && path === undefined) return withDatabase({ mustExist: true }, ({ db }) => exportAll(db))
  if (command !== 'import' || path === undefined) throw new UsageError('give list, export, or import FILE')
  return withDatabase({ mustExist: true }, ({ db }) => importFile(db, path))
})

async function list(db: Db): Promise<void> {
  for (const { templateName, operationType, dataTemplate, source } of await listTemplates(db)) {
    print([templateName, operationType, dataTemplate, source].join('\t'))
  }
}

/** What `import` and PAWL_TEMPLATES_FILE read. */
async function exportAll(db: Db): Promise<void> {
  const templates = (await listTemplates(db)).map((row) => renderTemplate(toTemplate(row)))
  print(JSON.stringify(templates, undefined, 2))
}

/** All of the file or nothing; templates that it does not have stay. */
async function importFile(db: Db, file: string): Promise<void> {
  const templates = readTemplateFile(file)
  const lines = await inTransaction(db, async (tx) => {
    const outcomes: string[] = []
    for (const template of templates) {
      outcomes.push(`${template.templateName}\t${await writeTemplate({ db: tx, platform }, template, 'administration')}`)
    }
    return outcomes
  })
  for (const line of lines) print(line)
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
