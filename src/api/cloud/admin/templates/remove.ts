// DELETE /admin/templates/{name}: operations that were made from it stay (cloud §4).
import { Ok } from '../../../../http/types.ts'
import { deleteTemplate } from '../../../../storage/templates.ts'
import { cloudEndpoint } from '../../endpoint.ts'
import { auditedTemplate, OfTemplate, refuseTemplate } from './template.ts'

export const templateRemove = cloudEndpoint({
  method: 'DELETE',
  path: '/admin/templates/:name',
  summary: 'Removes a template',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfTemplate,
  response: Ok,
  async handle({ params: { name }, caller, parts, afterCommit }) {
    if (!(await deleteTemplate(parts.db, name))) throw refuseTemplate(`no template ${name}`)
    afterCommit(() => {
      parts.templates.forget()
      parts.events.templateChanged({ templateName: name, change: 'deleted', by: caller.username })
    })
    return { status: 'OK' as const }
  },
  audited: auditedTemplate,
})
