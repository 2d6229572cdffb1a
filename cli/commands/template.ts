// Declares pawl template: lists, reads, writes and removes the templates of operations.
import { bankCommand } from '../bank-command.ts'
import { command, flag, type Noun } from '../command.ts'
import { readJsonList } from '../json-argument.ts'
import { answerList } from '../output.ts'
import { toPath } from '../query.ts'

const LOCAL = { local: flag('on the database of the settings; an embedded one only while its server is stopped') } as const

type Row = Readonly<Record<string, unknown>>

const list = bankCommand({
  name: 'list',
  summary: 'Lists templates',
  options: LOCAL,
  examples: ['template list', 'template list --local'],
  run: async ({ values, terminal, openBank }) => {
    const json = values.local
      ? await (await import('../local/templates.ts')).listLocal(terminal)
      : await openBank().call('GET', '/admin/templates')
    return answerList(json, 'templates', ['templateName', 'operationType', 'dataTemplate', 'source'])
  },
})

const show = bankCommand({
  name: 'show',
  summary: 'Reads a template',
  words: { '<name>': 'its name' },
  examples: ['template show payment'],
  run: async ({ words: [name], openBank }) => {
    const json = await openBank().call('GET', toPath`/admin/templates/${name}`)
    return { json, text: `${JSON.stringify(json, null, 2)}\n` }
  },
})

const put = bankCommand({
  name: 'put',
  summary: 'Creates a template, or replaces the one of the same name',
  more: 'Of a list, as export prints it, one after the other: what stands before a refused one is written.',
  words: { '<template>': '@FILE, or JSON as docs/TEMPLATES.md describes it; one template, or a list' },
  examples: ['template put @payment.json', 'template put @templates.json'],
  run: async ({ words: [given = ''], openBank }) => {
    const read = readJsonList('the template', given)
    const bank = openBank()
    const { templates } = await bank.call<{ templates: readonly Row[] }>('GET', '/admin/templates')
    const known = new Set(templates.map(({ templateName }) => templateName))
    const written: unknown[] = []
    for (const one of Array.isArray(read) ? read : [read]) {
      const name = String(one['templateName'] ?? '')
      const isThere = known.has(name)
      written.push(
        isThere
          ? await bank.call('PUT', toPath`/admin/templates/${name}`, one)
          : await bank.call('POST', '/admin/templates', one),
      )
      known.add(name)
    }
    return { json: Array.isArray(read) ? written : written[0] }
  },
})

const remove = bankCommand({
  name: 'remove',
  summary: 'Removes a template',
  words: { '<name>': 'its name' },
  examples: ['template remove payment'],
  run: ({ words: [name], openBank }) => openBank().answer('DELETE', toPath`/admin/templates/${name}`),
})

const exportAll = bankCommand({
  name: 'export',
  summary: 'Prints what import and PAWL_TEMPLATES_FILE read',
  more: 'A template that import would refuse, because it was altered in the database, is left out and named on stderr; the exit code is 1.',
  options: LOCAL,
  examples: ['template export >templates.json'],
  run: async ({ values, terminal, openBank }) => {
    if (values.local) return (await import('../local/templates.ts')).exportLocal(terminal)
    const { templates } = await openBank().call<{ templates: readonly Row[] }>('GET', '/admin/templates')
    const { composeFile } = await import('../setup/template.ts')
    return composeFile(
      templates.map(({ source: _source, warning: _warning, ...template }) => template),
      terminal,
    )
  },
})

const importAll = command({
  name: 'import',
  summary: 'Writes all templates of a file, or none, into the configured database; templates that it does not have stay',
  more: 'An embedded database only while its server is stopped; pawl template put writes one through a running server.',
  words: { '<file>': 'a JSON list, as export prints it' },
  examples: ['template import templates.json'],
  run: async ({ words: [file = ''], terminal }) => (await import('../local/templates.ts')).importLocal(terminal, file),
})

export const template: Noun = {
  name: 'template',
  summary: 'Templates: what operations are made from',
  commands: [list, show, put, remove, exportAll, importAll],
}
