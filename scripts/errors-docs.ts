// Writes docs/ERRORS.md from the error renderers of the APIs.
import { writeFileSync } from 'node:fs'
import { rendering as cloud } from '../src/api/cloud/error-renderer.ts'
import { rendering as device, renderingV4 } from '../src/api/device/error-renderer.ts'
import { rendering as mobileToken } from '../src/api/mobile-token/error-renderer.ts'
import { rendering as reference } from '../src/api/reference/error-renderer.ts'
import { rendering as utility } from '../src/api/utility/error-renderer.ts'
import type { ErrorTable } from '../src/http/operation.ts'
import type { ErrorCode } from '../src/lib/errors.ts'
import { runCommand } from './command-line.ts'

/** The text of docs/ERRORS.md. */
export function renderErrorsDocument(): string {
  const tables: readonly ErrorTable[] = [device, mobileToken, utility, cloud, reference]
  const codes = [...new Set(tables.flatMap((table) => Object.keys(table)))] as ErrorCode[]
  const rows = codes.map((code) => {
    const [inDevice = '', ...others] = tables.map((table) => {
      const row = table[code]
      return row === undefined ? '' : `${row.status} \`${row.code}\``
    })
    const messages = new Set([device, renderingV4].flatMap((table: ErrorTable) => table[code]?.message ?? []))
    const message = [...messages].map((text) => `\`${text}\``).join(', in 4.0 ')
    return `| \`${code}\` | ${inDevice} | ${message} | ${others.join(' | ')} |`
  })
  return `# Errors

Made from the error renderers by \`node scripts/errors-docs.ts\`; \`test/docs.test.ts\` fails when it is out of date.

The body of an error is \`{"status":"ERROR","responseObject":{"code":"...","message":"..."}}\`.

- **Cloud API.** For a wrong request the answer has \`violations\` beside code and message: which member is wrong, and why. With 403 they name the role
  that is needed; in a wrong state, the state; before there is an application, the call that creates one. 401 comes with \`WWW-Authenticate\`.
  [When each code comes](spec/cloud.md#12-errors), and [what to do then](start/bank-developer.md#6-what-can-go-wrong).
- **Device API.** The message begins with \`SVC_\` for requests with \`X-Svc-*\` headers, and with \`POWER_AUTH_\` for all others. The message of
  \`ERR_VALIDATION\` names the wrong members, if they are known.
- **Mobile utility API.** The body is \`{"id":"...","code":"...","message":"..."}\`, and the log has the id.
- **All.** 429 and 503 come with \`Retry-After\`. Every answer has \`X-Request-Id\`, and every log line of its request has it as \`requestId\`. A caller's own id is
  kept when it is 1 to 128 letters, digits and \`_ . : ~ + / = @ -\`. Headers or a body that do not arrive in time are 408 \`ERROR_REQUEST\`, headers over
  16 KiB 431 \`ERROR_REQUEST\`.

| inside | device API | message | mobile token API | mobile utility | cloud API | API of the reference |
|---|---|---|---|---|---|---|
${rows.join('\n')}
`
}

const usage = `Writes docs/ERRORS.md from the error renderers of the APIs:
  node scripts/errors-docs.ts`

if (import.meta.main) {
  await runCommand({ usage }, () => writeFileSync(new URL('../docs/ERRORS.md', import.meta.url), renderErrorsDocument()))
}
