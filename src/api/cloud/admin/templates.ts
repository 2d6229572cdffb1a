// /admin/templates: what operations are made from, beyond the contract (cloud §4). Schemas say the structure, parseTemplate the rest.
import { Type } from '@sinclair/typebox'
import { writeTemplate } from '../../../domain/template/installation.ts'
import { parseTemplate, renderTemplate } from '../../../domain/template/parser.ts'
import { type SignatureType, type Template, type TemplateTexts, toTemplate } from '../../../domain/template/template.ts'
import { Absent, Ok } from '../../../http/types.ts'
import { PawlError } from '../../../lib/errors.ts'
import type { Db } from '../../../storage/database.ts'
import { deleteTemplate, findTemplate, listTemplates, type TemplateRow, type TemplateSource } from '../../../storage/templates.ts'
import { type Audited, cloudEndpoint } from '../endpoint.ts'
import { Identifier } from '../fields.ts'

const text = (max: number, description: string) => Type.String({ pattern: `^[^]{1,${max}}$`, description })
const count = (description: string) => Type.Integer({ minimum: 1, maximum: 2_147_483_647, description })
const signatureType = Type.Unsafe<SignatureType>(
  Type.String({ enum: ['possession', 'possession_knowledge', 'possession_biometry'] }),
)

const Attribute = Type.Object({
  id: Identifier,
  type: Type.String({
    description: 'AMOUNT, AMOUNT_CONVERSION, KEY_VALUE, NOTE, HEADING, ALERT, IMAGE or PARTY_INFO',
  }),
  text: Type.String({ description: 'label on the phone' }),
  params: Absent(
    Type.Record(Type.String(), Identifier, { description: 'slot of the attribute to name of an operation parameter' }),
  ),
})

const LocalizedTexts = Type.Object({
  title: text(255, 'must be 1 to 255 characters, with ${parameter} placeholders'),
  message: text(4096, 'must be 1 to 4096 characters, with ${parameter} placeholders'),
  attributes: Absent(Type.Array(Attribute, { maxItems: 100, description: 'rows of the form on the phone' })),
  ui: Absent(
    Type.Object({}, { description: 'screens for the mobile SDK, see docs/TEMPLATES.md; texts in it may hold placeholders' }),
  ),
  resultTexts: Absent(
    Type.Object({ success: Absent(Type.String()), failure: Absent(Type.String()), reject: Absent(Type.String()) }),
  ),
  summary: Absent(Type.String({ description: 'for a push message' })),
})

const members = {
  operationType: Identifier,
  dataTemplate: text(4096, 'must be 1 to 4096 characters: operation data with ${parameter} placeholders'),
  signatureType: Type.Array(signatureType, { minItems: 1, maxItems: 3, description: 'factors that may approve' }),
  maxFailureCount: count('failed approvals that end an operation'),
  expiration: count('seconds until an operation expires'),
  texts: Type.Record(Type.String(), LocalizedTexts, { description: 'by language: two small letters' }),
}

const optionalMembers = {
  riskFlags: Absent(Type.String({ description: 'X flips the buttons, F warns of fraud, C refuses approval during a call' })),
  proximityCheckEnabled: Absent(Type.Boolean()),
  activationFlag: Absent(Identifier),
}

const TextsAnswer = Type.Unsafe<TemplateTexts>(
  Type.Record(
    Type.String(),
    Type.Object({
      title: Type.String(),
      message: Type.String(),
      attributes: Type.Array(
        Type.Object({
          id: Type.String(),
          type: Type.String(),
          text: Type.String(),
          params: Type.Record(Type.String(), Type.String()),
        }),
      ),
      ui: Type.Optional(Type.Unknown()),
      resultTexts: Type.Optional(
        Type.Object({
          success: Type.Optional(Type.String()),
          failure: Type.Optional(Type.String()),
          reject: Type.Optional(Type.String()),
        }),
      ),
      summary: Type.Optional(Type.String()),
    }),
  ),
)

const TemplateAnswer = Type.Object({
  templateName: Type.String(),
  operationType: Type.String(),
  dataTemplate: Type.String(),
  signatureType: Type.Array(signatureType),
  maxFailureCount: Type.Integer(),
  expiration: Type.Integer(),
  riskFlags: Type.String(),
  proximityCheckEnabled: Type.Boolean(),
  activationFlag: Type.Optional(Type.String()),
  texts: TextsAnswer,
  source: Type.Unsafe<TemplateSource>(
    Type.String({ enum: ['shipped', 'file', 'administration'], description: 'who wrote it last' }),
  ),
})

const OfTemplate = Type.Object({ name: Identifier })

const audited: Audited<unknown, unknown, { readonly name: string }, unknown> = {
  target: ({ params: { name } }) => `template ${name}`,
  view: ({ params: { name }, parts }) => viewTemplate(parts.db, name),
}

export const templatesList = cloudEndpoint({
  method: 'GET',
  path: '/admin/templates',
  summary: 'Lists templates',
  errors: [],
  roles: ['admin', 'read-only'],
  response: Type.Object({ templates: Type.Array(TemplateAnswer) }),
  async handle({ parts }) {
    const rows = await listTemplates(parts.db)
    return { templates: rows.map(renderRow) }
  },
})

export const templateRead = cloudEndpoint({
  method: 'GET',
  path: '/admin/templates/:name',
  summary: 'Reads a template',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin', 'read-only'],
  params: OfTemplate,
  response: TemplateAnswer,
  async handle({ params: { name }, parts }) {
    const row = await findTemplate(parts.db, name)
    if (row === undefined) throw refuse(`no template ${name}`)
    return renderRow(row)
  },
})

export const templateCreate = cloudEndpoint({
  method: 'POST',
  path: '/admin/templates',
  summary: 'Creates a template',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  body: Type.Object({ templateName: Identifier, ...members, ...optionalMembers }),
  response: TemplateAnswer,
  async handle({ body, caller, parts, afterCommit }) {
    const template = readTemplate(body)
    const { templateName } = template
    const outcome = await writeTemplate(parts, template, 'administration', 'absent')
    if (outcome === 'refused') throw refuse(`template ${templateName} exists`)
    afterCommit(() => {
      parts.templates.forget()
      parts.events.templateChanged({ templateName, change: 'created', by: caller.username })
    })
    return { ...renderTemplate(template), source: 'administration' as const }
  },
  audited: {
    target: ({ body: { templateName } }) => `template ${templateName}`,
    view: ({ body: { templateName }, parts }) => viewTemplate(parts.db, templateName),
  },
})

export const templateReplace = cloudEndpoint({
  method: 'PUT',
  path: '/admin/templates/:name',
  summary: 'Replaces a template',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfTemplate,
  body: Type.Object({ templateName: Absent(Identifier), ...members, ...optionalMembers }),
  response: TemplateAnswer,
  async handle({ params: { name }, body, caller, parts, afterCommit }) {
    if (body.templateName && body.templateName !== name) {
      const violations = [
        { fieldName: 'templateName', invalidValue: body.templateName.slice(0, 128), hint: 'must be the name in the path' },
      ]
      throw new PawlError('REQUEST_INVALID', { detail: 'a template keeps its name', violations })
    }
    const template = readTemplate({ ...body, templateName: name })
    const outcome = await writeTemplate(parts, template, 'administration', 'present')
    if (outcome === 'refused') throw refuse(`no template ${name}`)
    afterCommit(() => {
      parts.templates.forget()
      if (outcome === 'changed') parts.events.templateChanged({ templateName: name, change: outcome, by: caller.username })
    })
    return { ...renderTemplate(template), source: 'administration' as const }
  },
  audited,
})

export const templateRemove = cloudEndpoint({
  method: 'DELETE',
  path: '/admin/templates/:name',
  summary: 'Removes a template',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfTemplate,
  response: Ok,
  async handle({ params: { name }, caller, parts, afterCommit }) {
    if (!(await deleteTemplate(parts.db, name))) throw refuse(`no template ${name}`)
    afterCommit(() => {
      parts.templates.forget()
      parts.events.templateChanged({ templateName: name, change: 'deleted', by: caller.username })
    })
    return { status: 'OK' as const }
  },
  audited,
})

function readTemplate(body: unknown): Template {
  const parsed = parseTemplate(body)
  if ('template' in parsed) return parsed.template
  throw new PawlError('REQUEST_INVALID', { detail: 'the template is not sound', violations: parsed.violations })
}

async function viewTemplate(db: Db, templateName: string) {
  const row = await findTemplate(db, templateName)
  return row && renderRow(row)
}

const renderRow = (row: TemplateRow) => ({ ...renderTemplate(toTemplate(row)), source: row.source })

const refuse = (detail: string) => new PawlError('ADMINISTRATION_REFUSED', { detail })
