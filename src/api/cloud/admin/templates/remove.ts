// DELETE /admin/templates/{name}: operations that were made from it stay (cloud §4).
import { Ok } from '../../../../http/types.ts'
import { deleteTemplate } from '../../../../storage/templates.ts'
import { auditedEndpoint } from '../../audited-endpoint.ts'
import { auditedTemplate, OfTemplate, refuseTemplate } from './template.ts'

export const templateRemove = auditedEndpoint({
  method: 'DELETE',
  path: '/admin/templates/:name',
  operationId: 'removeTemplate',
  summary: 'Removes a template',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfTemplate,
  response: Ok,
  async handle({ params: { name }, caller, tx, parts, afterCommit }) {
    if (!(await deleteTemplate(tx, name))) throw refuseTemplate(`no template ${name}`)
    afterCommit(() => {
      parts.templates.forget()
      parts.events.templateChanged({ templateName: name, change: 'deleted', by: caller.username })
    })
    return { status: 'OK' as const }
  },
  audited: auditedTemplate,
})
