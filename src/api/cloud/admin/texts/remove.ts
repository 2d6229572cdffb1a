// DELETE /admin/texts/{key}/{language}: takes a text away (utility §4).
import { Ok } from '../../../../http/types.ts'
import { notFound } from '../../../../lib/errors.ts'
import { deleteVersionText, findVersionText } from '../../../../storage/version-rules.ts'
import { auditedEndpoint } from '../../audited-endpoint.ts'
import { OfText } from './text.ts'

export const textRemove = auditedEndpoint({
  method: 'DELETE',
  path: '/admin/texts/:key/:language',
  operationId: 'removeText',
  summary: 'Removes a text of version rules',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfText,
  response: Ok,
  async handle({ params: { key, language }, tx, parts, afterCommit }) {
    if (!(await deleteVersionText(tx, key, language))) throw notFound(`text ${key} in ${language}`)
    afterCommit(() => parts.pinning.forget())
    return { status: 'OK' as const }
  },
  audited: {
    target: ({ params: { key, language } }) => `text ${key} in ${language}`,
    view: ({ params: { key, language }, tx }) => findVersionText(tx, key, language),
  },
})
