// Neither signed nor encrypted, and no body is read (v3 §13, status).
import type { Static, TSchema } from '@sinclair/typebox'
import { inStage } from '../../lib/trace.ts'
import type { Declaration, Endpoint } from '../endpoint.ts'
import { receive } from '../stages/receive.ts'

interface BodylessDeclaration<R extends TSchema, Parts> extends Declaration<R> {
  readonly handle: (parts: Parts) => Promise<Static<R>>
}

/** Declares an endpoint that anybody may call with any body: it is not looked at. */
export function bodylessEndpoint<R extends TSchema, Parts>(declared: BodylessDeclaration<R, Parts>): Endpoint<Parts> {
  return {
    ...declared,
    flow: { refuses: ['REQUEST_INVALID'], headers: [], checks: [], body: { kind: 'none' } },
    prepare: (parts, protocols) => async (request, serialize) => {
      receive(protocols, request, TERMS)
      return serialize(await inStage('handle', () => declared.handle(parts)))
    },
  }
}

const TERMS = { isJson: false, contradiction: undefined }
