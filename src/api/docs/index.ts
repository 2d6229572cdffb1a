// Serves the OpenAPI document at /openapi.json, and a page that shows it at /swagger-ui.html (utility §5).
import { readFile } from 'node:fs/promises'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { ErrorResponse, type Operation } from '../../http/operation.ts'
import { PawlError } from '../../lib/errors.ts'

/**
 * Serves the document and its page. They need no credential, because they contain no secret. `describe` makes the document at the first request for
 * it.
 */
export const docsApi =
  (describe: () => Record<string, unknown>): FastifyPluginAsyncTypebox =>
  async (app) => {
    let json: string | undefined
    const files = await readFiles()
    app.addHook('onSend', async (_request, reply) => {
      void reply.headers(SECURITY_HEADERS)
    })
    app.get('/openapi.json', async (_request, reply) => {
      json ??= JSON.stringify(describe())
      return reply.type('application/json').send(json)
    })
    app.get('/swagger-ui.html', async (_request, reply) => reply.type('text/html; charset=utf-8').send(PAGE))
    app.get('/swagger-ui/:file', { schema: { params: OfFile } }, async ({ params }, reply) => {
      const file = files.get(params.file)
      if (file === undefined) throw new PawlError('PATH_UNKNOWN')
      return reply.type(file.type).header('cache-control', 'public, max-age=3600').send(file.bytes)
    })
  }

const tag = 'Description and health'
const OfFile = Type.Object({ file: Type.String({ examples: ['start.js'] }) })

export const docsOperations: readonly Operation[] = [
  {
    method: 'GET',
    path: '/openapi.json',
    operationId: 'readDescription',
    tag,
    summary: 'This document',
    security: [],
    answers: [
      { status: 200, description: 'OpenAPI 3.1', schema: Type.Object({ openapi: Type.String({ examples: ['3.1.0'] }) }) },
    ],
  },
  {
    method: 'GET',
    path: '/swagger-ui.html',
    operationId: 'readDescriptionPage',
    tag,
    summary: 'This document as an interactive page',
    security: [],
    answers: [{ status: 200, description: 'the page', mediaType: 'text/html' }],
  },
  {
    method: 'GET',
    path: '/swagger-ui/:file',
    operationId: 'readDescriptionFile',
    tag,
    summary: 'Scripts and styles of the page',
    security: [],
    params: OfFile,
    answers: [
      { status: 200, description: 'the file', mediaType: '*/*' },
      { status: 400, description: 'a name that is too long or does not decode', schema: ErrorResponse },
      { status: 404, description: 'no such file', schema: ErrorResponse },
    ],
  },
]

/** The files of the page by name. The package contains them built, and none of its code runs here. */
async function readFiles() {
  const folder = new URL('./static/', import.meta.resolve('@fastify/swagger-ui'))
  const files = new Map([['start.js', { type: JAVASCRIPT, bytes: Buffer.from(START) }]])
  for (const [name, type] of Object.entries(PACKAGED)) files.set(name, { type, bytes: await readFile(new URL(name, folder)) })
  return files
}

const JAVASCRIPT = 'text/javascript; charset=utf-8'
const PACKAGED = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'index.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': JAVASCRIPT,
  'favicon-32x32.png': 'image/png',
}

// Nothing is loaded from another server, and nothing is inline. Swagger UI sets styles through the DOM, which needs no 'unsafe-inline'. Its style
// sheet contains images as data URLs.
const SECURITY_HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; " +
    "form-action 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
}

const PAGE = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>pawl: description of the APIs</title>
    <link rel="icon" type="image/png" href="swagger-ui/favicon-32x32.png">
    <link rel="stylesheet" href="swagger-ui/swagger-ui.css">
    <link rel="stylesheet" href="swagger-ui/index.css">
  </head>
  <body>
    <div id="swagger-ui"></div>
    <script src="swagger-ui/swagger-ui-bundle.js"></script>
    <script src="swagger-ui/start.js"></script>
  </body>
</html>
`

// With `validatorUrl`, a badge would send the address of this server to another one.
// By itself the filter of Swagger UI finds tags only. `opsFilter` searches the document, so it also finds operations that are not drawn yet.
const START = `const findOperations = (groups, words) => groups
  .map((group) => group.update('operations', (operations) => operations.filter((one) => isFound(group, one, words.trim().toLowerCase()))))
  .filter((group) => group.get('operations').size > 0)
const isFound = (group, one, words) => [
  one.get('method') + ' ' + one.get('path'),
  one.getIn(['operation', 'operationId']),
  one.getIn(['operation', 'summary']),
  one.getIn(['operation', 'tags', 0]),
].join(' ').toLowerCase().includes(words)

SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#swagger-ui',
  plugins: [() => ({ fn: { opsFilter: findOperations } })],
  filter: true,
  presets: [SwaggerUIBundle.presets.apis],
  layout: 'BaseLayout',
  validatorUrl: null,
  queryConfigEnabled: false,
  persistAuthorization: false,
  deepLinking: true,
  docExpansion: 'list',
  displayRequestDuration: true,
})
`
