// pawl template: what operations are made from.
import { BANK_OPTIONS, type BankValues, openBank } from '../bank.ts'
import { type Answer, command, flag, type Noun, type Terminal } from '../command.ts'
import { readJsonArgument } from '../json-argument.ts'
import { answerList } from '../output.ts'
import { toPath } from '../query.ts'

const LOCAL = { local: flag('on the database of the settings; an embedded one only while its server is stopped') } as const

type Row = Readonly<Record<string, unknown>>

const online = async (values: BankValues, terminal: Terminal): Promise<unknown> =>
  openBank(values, terminal).call('GET', '/admin/templates')

const list = command({
  name: 'list',
  summary: 'Lists templates',
  options: { ...BANK_OPTIONS, ...LOCAL },
  examples: ['template list', 'template list --local'],
  run: async ({ values, terminal }) => {
    if (values.local) return (await import('../local/templates.ts')).listLocal(terminal)
    return answerList(await online(values, terminal), 'templates', ['templateName', 'operationType', 'dataTemplate', 'source'])
  },
})

const show = command({
  name: 'show',
  summary: 'Reads a template',
  words: { '<name>': 'its name' },
  options: BANK_OPTIONS,
  examples: ['template show payment'],
  run: async ({ words: [name], values, terminal }) => {
    const json = await openBank(values, terminal).call('GET', toPath`/admin/templates/${name}`)
    return { json, text: `${JSON.stringify(json, null, 2)}\n` }
  },
})

const put = command({
  name: 'put',
  summary: 'Creates a template, or replaces the one of the same name',
  words: { '<template>': '@FILE, or JSON as docs/TEMPLATES.md describes it' },
  options: BANK_OPTIONS,
  examples: ['template put @payment.json'],
  run: async ({ words: [given = ''], values, terminal }) => {
    const template = readJsonArgument('the template', given)
    const name = String(template['templateName'] ?? '')
    const bank = openBank(values, terminal)
    const { templates } = (await bank.call('GET', '/admin/templates')) as { templates: readonly Row[] }
    const isThere = templates.some(({ templateName }) => templateName === name)
    const path = toPath`/admin/templates/${name}`
    return { json: isThere ? await bank.call('PUT', path, template) : await bank.call('POST', '/admin/templates', template) }
  },
})

const remove = command({
  name: 'remove',
  summary: 'Removes a template',
  words: { '<name>': 'its name' },
  options: BANK_OPTIONS,
  examples: ['template remove payment'],
  run: async ({ words: [name], values, terminal }) => ({
    json: await openBank(values, terminal).call('DELETE', toPath`/admin/templates/${name}`),
  }),
})

const exportAll = command({
  name: 'export',
  summary: 'Prints what import and PAWL_TEMPLATES_FILE read',
  options: { ...BANK_OPTIONS, ...LOCAL },
  examples: ['template export >templates.json'],
  run: async ({ values, terminal }) => {
    if (values.local) return (await import('../local/templates.ts')).exportLocal(terminal)
    const { templates } = (await online(values, terminal)) as { templates: readonly Row[] }
    return asFile(templates.map(({ source: _source, warning: _warning, ...template }) => template))
  },
})

const asFile = (templates: readonly unknown[]): Answer => ({
  json: templates,
  text: `${JSON.stringify(templates, undefined, 2)}\n`,
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
