// Lists, exports and imports templates of operations in the configured database.
import { parseTemplateFile, writeTemplate } from '../../src/domain/template/installation.ts'
import { renderTemplate } from '../../src/domain/template/parser.ts'
import { toTemplate } from '../../src/domain/template/template.ts'
import { StartError } from '../../src/lib/errors.ts'
import { inTransaction } from '../../src/storage/database/database.ts'
import { listTemplates } from '../../src/storage/template/templates.ts'
import type { Answer, Terminal } from '../command.ts'
import { Fault } from '../fault.ts'
import { readBytes } from '../json-argument.ts'
import { printable } from '../output.ts'
import { composeFile } from '../setup/template.ts'
import { LOCAL, withDatabase } from './database.ts'

/** The name, type, data and source of each template. */
export const listLocal = (terminal: Terminal) =>
  withDatabase(terminal, LOCAL, async ({ db }) => ({
    templates: (await listTemplates(db)).map(({ templateName, operationType, dataTemplate, source }) => ({
      templateName,
      operationType,
      dataTemplate,
      source,
    })),
  }))

/** Prints the templates in the form that `import` and PAWL_TEMPLATES_FILE read. */
export const exportLocal = (terminal: Terminal): Promise<Answer> =>
  withDatabase(terminal, LOCAL, async ({ db }) => {
    return composeFile(
      (await listTemplates(db)).map((row) => renderTemplate(toTemplate(row))),
      terminal,
    )
  })

const THROUGH_SERVER = { mustExist: true, online: 'pawl template put goes through a running server' } as const

/** Imports all templates of the file, or none. */
export function importLocal(terminal: Terminal, file: string): Promise<Answer> {
  const templates = read(file)
  return withDatabase(terminal, THROUGH_SERVER, async ({ db }, _, platform) => {
    const outcomes = await inTransaction(db, async (tx) => {
      const done: { templateName: string; outcome: string }[] = []
      for (const template of templates)
        done.push({
          templateName: template.templateName,
          outcome: await writeTemplate(tx, platform, template, 'administration'),
        })
      return done
    })
    return {
      json: outcomes,
      text: outcomes.map(({ templateName, outcome }) => `${printable(templateName)}\t${outcome}\n`).join(''),
    }
  })
}

function read(file: string): ReturnType<typeof parseTemplateFile> {
  const bytes = readBytes('the file', file)
  try {
    return parseTemplateFile(bytes, `the file ${file}`)
  } catch (error) {
    throw error instanceof StartError ? new Fault('usage', error.message) : error
  }
}
