// Answers at `/`, for somebody who looks whether anything is there.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { Operation } from './operation.ts'

/** `to`: a page of this listener that is for people, as an address below `/`. Without one, `/` is one line of `text`. */
export const front =
  ({ to, text }: { readonly to?: string | undefined; readonly text: string }): FastifyPluginAsyncTypebox =>
  async (app) => {
    // Relative: a proxy may have taken a prefix off the path.
    app.get('/', async (_request, reply) =>
      to === undefined ? reply.type('text/plain; charset=utf-8').send(`${text}\n`) : reply.redirect(`./${to}`, 303),
    )
  }

/** What the description of the APIs says of it. */
export const frontOperations: readonly Operation[] = [
  {
    method: 'GET',
    path: '/',
    operationId: 'readFront',
    tag: 'Description and health',
    summary: 'What this listener is',
    description: 'Where the console is, it leads there.',
    security: [],
    answers: [
      { status: 200, description: 'one line of text', mediaType: '*/*' },
      { status: 303, description: 'to the console', headers: { Location: 'where it is, relative' } },
    ],
  },
]
