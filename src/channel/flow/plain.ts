// Serves requests that are neither signed nor encrypted (v3 §5.4, order "-").
import type { Static, TSchema } from '@sinclair/typebox'
import type { Answered, Endpoint, Parsed } from '../endpoint.ts'
import { parseBody } from '../stages/parse.ts'
import type { Client } from '../stages/receive.ts'
import { composeEndpoint, jsonOr } from './compose.ts'

interface PlainCall<Request> {
  readonly request: Request
  readonly client: Client
}

/** Declares an endpoint that anybody may call. Its handler checks the content of the JSON body. Without a schema the body is not read. */
export const plainEndpoint = <Q extends TSchema, R extends TSchema, Parts>(
  declared: Answered<R, PlainCall<Static<Q>>, Parts> & Partial<Parsed<Q>>,
): Endpoint<Parts> =>
  composeEndpoint(declared, {
    refusals: {},
    headers: [],
    checks: [],
    body: jsonOr('none', declared.request),
    async serve({ request: { body }, client }, { parse, handle, serialize }) {
      const request = declared.request && parseBody(parse, body)
      return serialize(await handle({ request, client }))
    },
  })
