// Neither signed nor encrypted, and no body is read (v3 §13, status).
import type { TSchema } from '@sinclair/typebox'
import type { Answered, Endpoint } from '../endpoint.ts'
import { composeEndpoint } from './compose.ts'

/** Declares an endpoint that anybody may call with any body: it is not looked at. */
export const bodylessEndpoint = <R extends TSchema, Parts>(declared: Answered<R, undefined, Parts>): Endpoint<Parts> =>
  composeEndpoint(declared, {
    refusals: {},
    headers: [],
    checks: [],
    body: { kind: 'none' },
    serve: async (_, { handle, serialize }) => serialize(await handle(undefined)),
  })
