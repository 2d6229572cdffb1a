// GET /admin/templates/{name}: one template (cloud §4).
import { findTemplate } from '../../../../storage/templates.ts'
import { cloudEndpoint } from '../../endpoint.ts'
import { toRowAnswer, TemplateAnswer } from './answer.ts'
import { OfTemplate, refuseTemplate } from './template.ts'

export const templateRead = cloudEndpoint({
  method: 'GET',
  path: '/admin/templates/:name',
  operationId: 'readTemplate',
  summary: 'Reads a template',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin', 'read-only'],
  params: OfTemplate,
  response: TemplateAnswer,
  async handle({ params: { name }, parts }) {
    const row = await findTemplate(parts.db, name)
    if (row === undefined) throw refuseTemplate(`no template ${name}`)
    return toRowAnswer(row)
  },
})
