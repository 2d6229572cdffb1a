// GET /admin/texts/{key}/{language}: one text (utility §4).
import { notFound } from '../../../../lib/errors.ts'
import { findVersionText } from '../../../../storage/version-rules.ts'
import { cloudEndpoint } from '../../endpoint.ts'
import { OfText, Text } from './text.ts'

export const textDetail = cloudEndpoint({
  method: 'GET',
  path: '/admin/texts/:key/:language',
  operationId: 'readText',
  summary: 'Reads a text of version rules',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin', 'read-only'],
  params: OfText,
  response: Text,
  async handle({ params: { key, language }, parts }) {
    const text = await findVersionText(parts.db, key, language)
    if (text === undefined) throw notFound(`text ${key} in ${language}`)
    return text
  },
})
