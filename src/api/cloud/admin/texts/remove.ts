// DELETE /admin/texts/{key}/{language}: takes a text away (utility §4).
import { Ok } from '../../../../http/types.ts'
import { notFound } from '../../../../lib/errors.ts'
import { deleteVersionText, findVersionText } from '../../../../storage/version-rules.ts'
import { cloudEndpoint } from '../../endpoint.ts'
import { OfText } from './text.ts'

export const textRemove = cloudEndpoint({
  method: 'DELETE',
  path: '/admin/texts/:key/:language',
  summary: 'Removes a text of version rules',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfText,
  response: Ok,
  async handle({ params: { key, language }, parts, afterCommit }) {
    if (!(await deleteVersionText(parts.db, key, language))) throw notFound(`text ${key} in ${language}`)
    afterCommit(() => parts.pinning.forget())
    return { status: 'OK' as const }
  },
  audited: {
    target: ({ params: { key, language } }) => `text ${key} in ${language}`,
    view: ({ params: { key, language }, parts }) => findVersionText(parts.db, key, language),
  },
})
