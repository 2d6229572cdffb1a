// Writes docs/ENDPOINTS.md from the OpenAPI description of the APIs.
import { writeFileSync } from 'node:fs'
import { describeApis } from '../src/description.ts'
import { runCommand } from './command-line.ts'

interface Described {
  readonly tags: readonly string[]
  readonly summary: string
  readonly description?: string
  readonly security: readonly Readonly<Record<string, unknown>>[]
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly required: boolean }[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema?: Schema }>> }
}

interface Schema {
  readonly $ref?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
}

const description = describeApis({ referenceApi: true })

/** The text of docs/ENDPOINTS.md. */
export function renderEndpointsDocument(): string {
  const paths = description['paths'] as Record<string, Record<string, Described>>
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) => ({ path, method: method.toUpperCase(), described })),
  )
  const tags = [...new Set(operations.flatMap(({ described }) => described.tags))]
  return `# Endpoints

Made from the description of the APIs by \`node scripts/endpoints-docs.ts\`; \`test/docs.test.ts\` fails when it is out of date. The whole
description, with schemas, examples and every answer, is \`/swagger-ui.html\` and \`/openapi.json\` of a running server.

\`?\` marks what may be left out. Credentials of phones are headers: a code (\`X-PowerAuth-Authorization\`), a token (\`X-PowerAuth-Token\`), or
what the body is encrypted for (\`X-PowerAuth-Encryption\`); each may also be spelled \`X-Svc-*\`. Roles are those of a credential with HTTP
Basic. Errors are in [ERRORS.md](ERRORS.md).

${tags.map((tag) => renderGroup(tag, operations)).join('\n')}`
}

type Endpoint = { readonly path: string; readonly method: string; readonly described: Described }

function renderGroup(tag: string, operations: readonly Endpoint[]): string {
  const rows = operations.filter(({ described }) => described.tags.includes(tag)).map(renderRow)
  return `## ${tag}\n\n| endpoint | what it does |\n|---|---|\n${rows.join('\n')}\n`
}

function renderRow({ path, method, described }: Endpoint): string {
  const { summary, description = '', security } = described
  const shown = `\`${method} ${path}${renderQuery(described)}\`${renderBody(described)}`
  const credentials = [...new Set(security.flatMap((schemes) => Object.keys(schemes)))]
    .flatMap((scheme) => CREDENTIALS[scheme] ?? [])
    .join(', ')
  const told = [`${summary}.`, description, credentials === '' ? '' : `Headers: ${credentials}.`]
  return `| ${shown} | ${told
    .filter((text) => text !== '')
    .join(' ')
    .replaceAll(/\s*\n+\s*/g, ' ')
    .replaceAll('|', '\\|')} |`
}

function renderQuery({ parameters = [] }: Described): string {
  const names = parameters.filter((one) => one.in === 'query').map(({ name, required }) => `${name}=${required ? '' : '?'}`)
  return names.length === 0 ? '' : `?${names.join('&')}`
}

/** The members of a plain JSON body; empty for an envelope, which the header of the request shows. */
function renderBody({ requestBody, description = '' }: Described): string {
  const schema = requestBody?.content['application/json']?.schema
  if (schema === undefined || description.includes('Encrypted in ')) return ''
  const members = renderMembers(schema)
  return members === '{}' ? '' : ` \`${members}\``
}

function renderMembers(schema: Schema): string {
  const { properties = {}, required = [] } = resolve(schema)
  const members = Object.entries(properties).map(([name, member]) => {
    const inner = name === 'requestObject' ? renderMembers(member) : '{}'
    return `${name}${required.includes(name) ? '' : '?'}${inner === '{}' ? '' : `: ${inner}`}`
  })
  return `{${members.join(', ')}}`
}

function resolve(schema: Schema): Schema {
  const { schemas } = description['components'] as { readonly schemas: Readonly<Record<string, Schema>> }
  return schema.$ref === undefined ? schema : (schemas[schema.$ref.split('/').at(-1) ?? ''] ?? schema)
}

/** Short names of the credentials in the description. Those of the other dialect and HTTP Basic, which the roles show, are left out. */
const CREDENTIALS: Readonly<Record<string, string>> = {
  powerAuthAuthorization: 'code',
  powerAuthToken: 'token',
  powerAuthEncryption: 'encryption',
}

const usage = `Writes docs/ENDPOINTS.md from the description of the APIs:
  node scripts/endpoints-docs.ts`

if (import.meta.main) {
  await runCommand({ usage }, () => writeFileSync(new URL('../docs/ENDPOINTS.md', import.meta.url), renderEndpointsDocument()))
}
