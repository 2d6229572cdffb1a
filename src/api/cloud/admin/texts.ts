// /admin/texts: manages texts for users of an app that is too old (utility §4).
import { Type } from '@sinclair/typebox'
import { named } from '../../../http/types.ts'
import { notFound } from '../../../lib/errors.ts'
import { deleteVersionText, findVersionText, listVersionTexts, storeVersionText } from '../../../storage/pinning/version-rules.ts'
import { auditedEndpoint } from '../audited-endpoint.ts'
import { adminRead } from '../endpoint.ts'
import { Identifier, NewIdentifier } from '../fields.ts'

const OfText = Type.Object({
  key: Identifier,
  language: Type.String({ pattern: '^[a-z]{2}$', description: 'must be two small letters', examples: ['en'] }),
})

const Text = named('VersionText', Type.Object({ messageKey: Type.String(), language: Type.String(), text: Type.String() }))

const textsList = adminRead({
  route: 'GET /admin/texts',
  operationId: 'listTexts',
  summary: 'Lists texts of version rules',
  response: Type.Object({ texts: Type.Array(Text) }),
  handle: async ({ parts }) => ({ texts: await listVersionTexts(parts.db) }),
})

const textStore = auditedEndpoint({
  route: 'POST /admin/texts',
  operationId: 'storeText',
  summary: 'Stores a text of version rules',
  errors: [],
  body: Type.Object({
    messageKey: NewIdentifier,
    language: OfText.properties.language,
    text: Type.String({ pattern: '^(?=[^]*\\S)[^\\u0000]{1,4096}$', description: 'must be 1 to 4096 characters, not blank' }),
  }),
  response: Text,
  async handle({ body, parts, afterCommit }) {
    await storeVersionText(parts.db, body)
    afterCommit(() => parts.pinning.forget())
    return body
  },
  audited: {
    target: ({ body: { messageKey, language } }) => `text ${messageKey} in ${language}`,
    view: ({ body: { messageKey, language }, parts }) => findVersionText(parts.db, messageKey, language),
  },
})

const textDetail = adminRead({
  route: 'GET /admin/texts/:key/:language',
  operationId: 'readText',
  summary: 'Reads a text of version rules',
  errors: ['ADMINISTRATION_REFUSED'],
  params: OfText,
  response: Text,
  async handle({ params: { key, language }, parts }) {
    const text = await findVersionText(parts.db, key, language)
    if (text === undefined) throw notFound('text', `${key} in ${language}`)
    return text
  },
})

const textRemove = auditedEndpoint({
  route: 'DELETE /admin/texts/:key/:language',
  operationId: 'removeText',
  summary: 'Removes a text of version rules',
  params: OfText,
  async handle({ params: { key, language }, parts, afterCommit }) {
    if (!(await deleteVersionText(parts.db, key, language))) throw notFound('text', `${key} in ${language}`)
    afterCommit(() => parts.pinning.forget())
  },
  audited: {
    target: ({ params: { key, language } }) => `text ${key} in ${language}`,
    view: ({ params: { key, language }, parts }) => findVersionText(parts.db, key, language),
  },
})

export const textEndpoints = [textsList, textStore, textDetail, textRemove]
