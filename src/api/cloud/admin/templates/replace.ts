// PUT /admin/templates/{name}: a new revision of a template (cloud §4).
import { Type } from '@sinclair/typebox'
import { writeTemplate } from '../../../../domain/template/installation.ts'
import { OptionalOrNull } from '../../../../http/types.ts'
import { PawlError } from '../../../../lib/errors.ts'
import { auditedEndpoint } from '../../audited-endpoint.ts'
import { Identifier } from '../../fields.ts'
import { TemplateAnswer, toTemplateAnswer } from './answer.ts'
import {
  auditedTemplate,
  templateMembers,
  OfTemplate,
  optionalTemplateMembers,
  readTemplate,
  refuseTemplate,
} from './template.ts'

export const templateReplace = auditedEndpoint({
  method: 'PUT',
  path: '/admin/templates/:name',
  operationId: 'replaceTemplate',
  summary: 'Replaces a template',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfTemplate,
  body: Type.Object({ templateName: OptionalOrNull(Identifier), ...templateMembers, ...optionalTemplateMembers }),
  response: TemplateAnswer,
  async handle({ params: { name }, body, caller, tx, parts, afterCommit }) {
    if (body.templateName && body.templateName !== name) {
      const violations = [
        { fieldName: 'templateName', invalidValue: body.templateName.slice(0, 128), hint: 'must be the name in the path' },
      ]
      throw new PawlError('REQUEST_INVALID', { detail: 'a template keeps its name', violations })
    }
    const template = readTemplate({ ...body, templateName: name })
    const outcome = await writeTemplate(tx, parts.platform, template, 'administration', 'present')
    if (outcome === 'refused') throw refuseTemplate(`no template ${name}`)
    afterCommit(() => {
      parts.templates.forget()
      if (outcome === 'changed') parts.events.templateChanged({ templateName: name, change: outcome, by: caller.username })
    })
    return toTemplateAnswer(template, 'administration')
  },
  audited: auditedTemplate,
})
