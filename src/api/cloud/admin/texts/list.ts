// GET /admin/texts: the texts of version rules (utility §4).
import { Type } from '@sinclair/typebox'
import { listVersionTexts } from '../../../../storage/version-rules.ts'
import { cloudEndpoint } from '../../endpoint.ts'
import { Text } from './text.ts'

export const textsList = cloudEndpoint({
  method: 'GET',
  path: '/admin/texts',
  operationId: 'listTexts',
  summary: 'Lists texts of version rules',
  errors: [],
  roles: ['admin', 'read-only'],
  response: Type.Object({ texts: Type.Array(Text) }),
  async handle({ parts }) {
    return { texts: await listVersionTexts(parts.db) }
  },
})
