// POST /admin/templates: a new template (cloud §4).
import { Type } from '@sinclair/typebox'
import { writeTemplate } from '../../../../domain/template/installation.ts'
import { auditedEndpoint } from '../../audited-endpoint.ts'
import { Identifier } from '../../fields.ts'
import { TemplateAnswer, toTemplateAnswer } from './answer.ts'
import { templateMembers, optionalTemplateMembers, readTemplate, refuseTemplate, viewTemplate } from './template.ts'

export const templateCreate = auditedEndpoint({
  method: 'POST',
  path: '/admin/templates',
  operationId: 'createTemplate',
  summary: 'Creates a template',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  body: Type.Object({ templateName: Identifier, ...templateMembers, ...optionalTemplateMembers }),
  response: TemplateAnswer,
  async handle({ body, caller, tx, parts, afterCommit }) {
    const template = readTemplate(body)
    const { templateName } = template
    const outcome = await writeTemplate(tx, parts.platform, template, 'administration', 'absent')
    if (outcome === 'refused') throw refuseTemplate(`template ${templateName} exists`)
    afterCommit(() => {
      parts.templates.forget()
      parts.events.templateChanged({ templateName, change: 'created', by: caller.username })
    })
    return toTemplateAnswer(template, 'administration')
  },
  audited: {
    target: ({ body: { templateName } }) => `template ${templateName}`,
    view: ({ body: { templateName }, tx }) => viewTemplate(tx, templateName),
  },
})
