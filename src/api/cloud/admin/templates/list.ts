// GET /admin/templates: all templates (cloud §4).
import { Type } from '@sinclair/typebox'
import { listTemplates } from '../../../../storage/templates.ts'
import { cloudEndpoint } from '../../endpoint.ts'
import { toRowAnswer, TemplateAnswer } from './answer.ts'

export const templatesList = cloudEndpoint({
  method: 'GET',
  path: '/admin/templates',
  operationId: 'listTemplates',
  summary: 'Lists templates',
  errors: [],
  roles: ['admin', 'read-only'],
  response: Type.Object({ templates: Type.Array(TemplateAnswer) }),
  async handle({ parts }) {
    const rows = await listTemplates(parts.db)
    return { templates: rows.map(toRowAnswer) }
  },
})
