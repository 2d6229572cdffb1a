// What the endpoints of texts share: what users of an app that is too old are told (utility §4).
import { Type } from '@sinclair/typebox'
import { Identifier } from '../../fields.ts'
import { named } from '../../../../http/types.ts'

/** Of the path. */
export const OfText = Type.Object({
  key: Identifier,
  language: Type.String({ pattern: '^[a-z]{2}$', description: 'must be two letters', examples: ['en'] }),
})

/** The answer. */
export const Text = named('VersionText', Type.Object({ messageKey: Type.String(), language: Type.String(), text: Type.String() }))
