// POST /admin/texts: a text of version rules in one language (utility §4).
import { Type } from '@sinclair/typebox'
import { findVersionText, storeVersionText } from '../../../../storage/version-rules.ts'
import { auditedEndpoint } from '../../audited-endpoint.ts'
import { Identifier } from '../../fields.ts'
import { OfText, Text } from './text.ts'

export const textStore = auditedEndpoint({
  method: 'POST',
  path: '/admin/texts',
  operationId: 'storeText',
  summary: 'Stores a text of version rules',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  body: Type.Object({
    messageKey: Identifier,
    language: OfText.properties.language,
    text: Type.String({ pattern: '^(?=[^]*\\S)[^\\u0000]{1,4096}$', description: 'must be 1 to 4096 characters, not blank' }),
  }),
  response: Text,
  async handle({ body, tx, parts, afterCommit }) {
    await storeVersionText(tx, body)
    afterCommit(() => parts.pinning.forget())
    return body
  },
  audited: {
    target: ({ body: { messageKey, language } }) => `text ${messageKey} in ${language}`,
    view: ({ body: { messageKey, language }, tx }) => findVersionText(tx, messageKey, language),
  },
})
