// /admin/templates: manages the templates of operations (cloud §4). Schemas check the structure of a template, and parseTemplate checks the rest.
import { Type } from '@sinclair/typebox'
import { writeTemplate } from '../../../domain/template/installation.ts'
import { warnOfDataTemplate } from '../../../domain/template/operation-data.ts'
import { parseTemplate, renderTemplate } from '../../../domain/template/parser.ts'
import { SIGNATURE_TYPES, type Template, type TemplateTexts, toTemplate } from '../../../domain/template/template.ts'
import { named, OneOf, OptionalOrNull, withExample } from '../../../http/types.ts'
import { existsAlready, notFound, PawlError, requestRefused } from '../../../lib/errors.ts'
import type { Db } from '../../../storage/database/database.ts'
import {
  deleteTemplate,
  findTemplate,
  listTemplates,
  type TemplateRow,
  type TemplateSource,
} from '../../../storage/template/templates.ts'
import { type Audited, auditedEndpoint } from '../audited-endpoint.ts'
import { adminRead } from '../endpoint.ts'
import { Identifier, NewIdentifier, OfName } from '../fields.ts'

const signatureType = OneOf(SIGNATURE_TYPES)

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

const TemplateAnswer = named(
  'Template',
  Type.Object({
    templateName: Type.String(),
    operationType: Type.String(),
    dataTemplate: Type.String(),
    signatureType: Type.Array(signatureType),
    maxFailureCount: Type.Integer({ description: 'failed approvals that end an operation' }),
    expiration: Type.Integer({ description: 'seconds until an operation expires' }),
    riskFlags: Type.String(),
    proximityCheckEnabled: Type.Boolean(),
    activationFlag: Type.Optional(Type.String()),
    texts: TextsAnswer,
    source: OneOf<TemplateSource>(['shipped', 'file', 'administration'], { description: 'who wrote it last' }),
    warning: Type.Optional(Type.String({ description: 'what some phones cannot do with it' })),
  }),
)

function toTemplateAnswer(template: Template, source: TemplateSource) {
  const warning = warnOfDataTemplate(template.dataTemplate)
  return { ...renderTemplate(template), source, ...(warning !== undefined && { warning }) }
}

const toRowAnswer = (row: TemplateRow) => toTemplateAnswer(toTemplate(row), row.source)

const text = (max: number, description: string) => Type.String({ pattern: `^[^]{1,${max}}$`, description })

const count = (description: string) => Type.Integer({ minimum: 1, maximum: 2_147_483_647, description })

const Attribute = Type.Object({
  id: Identifier,
  type: Type.String({
    description: 'AMOUNT, AMOUNT_CONVERSION, KEY_VALUE, NOTE, HEADING, ALERT, IMAGE or PARTY_INFO',
  }),
  text: Type.String({ description: 'label on the phone' }),
  params: OptionalOrNull(
    Type.Record(Type.String(), Identifier, { description: 'slot of the attribute to name of an operation parameter' }),
  ),
})

const LocalizedTexts = Type.Object({
  title: text(255, 'must be 1 to 255 characters, with ${parameter} placeholders'),
  message: text(4096, 'must be 1 to 4096 characters, with ${parameter} placeholders'),
  attributes: OptionalOrNull(Type.Array(Attribute, { maxItems: 100, description: 'rows of the form on the phone' })),
  ui: OptionalOrNull(
    Type.Object({}, { description: 'screens for the mobile SDK, see docs/TEMPLATES.md; texts in it may hold placeholders' }),
  ),
  resultTexts: OptionalOrNull(
    Type.Object({
      success: OptionalOrNull(Type.String({ description: 'what the app says at the end: it was approved' })),
      failure: OptionalOrNull(Type.String({ description: 'it failed' })),
      reject: OptionalOrNull(Type.String({ description: 'it was rejected' })),
    }),
  ),
  summary: OptionalOrNull(Type.String({ description: 'for a push message' })),
})

/** The members that every template has, in addition to its name. */
const templateMembers = {
  operationType: withExample(Identifier, 'authorize_payment'),
  dataTemplate: text(4096, 'must be 1 to 4096 characters: operation data with ${parameter} placeholders'),
  signatureType: Type.Array(signatureType, { minItems: 1, maxItems: 3, description: 'factors that may approve' }),
  maxFailureCount: count('failed approvals that end an operation'),
  expiration: count('seconds until an operation expires'),
  texts: Type.Record(Type.String(), LocalizedTexts, { description: 'by language: two small letters' }),
}

/** The members that a template may have. */
const optionalTemplateMembers = {
  riskFlags: OptionalOrNull(
    Type.String({ description: 'X flips the buttons, F warns of fraud, C refuses approval during a call' }),
  ),
  proximityCheckEnabled: OptionalOrNull(
    Type.Boolean({ description: 'whether the phone must scan a code from the screen; false without it' }),
  ),
  activationFlag: OptionalOrNull(Identifier),
}

const auditedTemplate: Audited<{ readonly name: string }> = {
  target: ({ params: { name } }) => `template ${name}`,
  view: ({ params: { name }, parts }) => viewTemplate(parts.db, name),
}

/** The template of a body. Throws REQUEST_INVALID with all its faults. */
function readTemplate(body: unknown): Template {
  const parsed = parseTemplate(body)
  if ('template' in parsed) return parsed.template
  throw new PawlError('REQUEST_INVALID', { detail: 'the template is not sound', violations: parsed.violations })
}

async function viewTemplate(db: Db, templateName: string) {
  const row = await findTemplate(db, templateName)
  return row && { ...renderTemplate(toTemplate(row)), source: row.source }
}

const templatesList = adminRead({
  route: 'GET /admin/templates',
  operationId: 'listTemplates',
  summary: 'Lists templates',
  response: Type.Object({ templates: Type.Array(TemplateAnswer) }),
  async handle({ parts }) {
    const rows = await listTemplates(parts.db)
    return { templates: rows.map(toRowAnswer) }
  },
})

const templateRead = adminRead({
  route: 'GET /admin/templates/:name',
  operationId: 'readTemplate',
  summary: 'Reads a template',
  errors: ['ADMINISTRATION_REFUSED'],
  params: OfName,
  response: TemplateAnswer,
  async handle({ params: { name }, parts }) {
    const row = await findTemplate(parts.db, name)
    if (row === undefined) throw notFound('template', name)
    return toRowAnswer(row)
  },
})

const templateCreate = auditedEndpoint({
  route: 'POST /admin/templates',
  operationId: 'createTemplate',
  summary: 'Creates a template',
  body: Type.Object({ templateName: NewIdentifier, ...templateMembers, ...optionalTemplateMembers }),
  response: TemplateAnswer,
  async handle({ body, caller, parts, afterCommit }) {
    const template = readTemplate(body)
    const { templateName } = template
    const outcome = await writeTemplate(parts.db, parts.platform, template, 'administration', 'absent')
    if (outcome === 'refused') throw existsAlready('template', templateName)
    afterCommit(() => {
      parts.templates.forget()
      parts.events.templateChanged({ templateName, change: 'created', by: caller.username })
    })
    return toTemplateAnswer(template, 'administration')
  },
  audited: {
    target: ({ body: { templateName } }) => `template ${templateName}`,
    view: ({ body: { templateName }, parts }) => viewTemplate(parts.db, templateName),
  },
})

const templateReplace = auditedEndpoint({
  route: 'PUT /admin/templates/:name',
  operationId: 'replaceTemplate',
  summary: 'Replaces a template',
  params: OfName,
  body: Type.Object({ templateName: OptionalOrNull(Identifier), ...templateMembers, ...optionalTemplateMembers }),
  response: TemplateAnswer,
  async handle({ params: { name }, body, caller, parts, afterCommit }) {
    if (body.templateName && body.templateName !== name)
      throw requestRefused('templateName', 'must be the name in the path', body.templateName)
    const template = readTemplate({ ...body, templateName: name })
    const outcome = await writeTemplate(parts.db, parts.platform, template, 'administration', 'present')
    if (outcome === 'refused') throw notFound('template', name)
    afterCommit(() => {
      parts.templates.forget()
      if (outcome === 'changed') parts.events.templateChanged({ templateName: name, change: outcome, by: caller.username })
    })
    return toTemplateAnswer(template, 'administration')
  },
  audited: auditedTemplate,
})

const templateRemove = auditedEndpoint({
  route: 'DELETE /admin/templates/:name',
  operationId: 'removeTemplate',
  summary: 'Removes a template',
  params: OfName,
  async handle({ params: { name }, caller, parts, afterCommit }) {
    if (!(await deleteTemplate(parts.db, name))) throw notFound('template', name)
    afterCommit(() => {
      parts.templates.forget()
      parts.events.templateChanged({ templateName: name, change: 'deleted', by: caller.username })
    })
  },
  audited: auditedTemplate,
})

export const templateEndpoints = [templatesList, templateRead, templateCreate, templateReplace, templateRemove]
