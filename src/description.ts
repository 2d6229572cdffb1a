// Composes the description of all APIs from the lists of endpoints that are mounted.
import packageJson from '../package.json' with { type: 'json' }
import { describeCloudEndpoints } from './api/cloud/endpoint.ts'
import { cloudEndpoints } from './api/cloud/endpoints.ts'
import { webhookMessages } from './api/cloud/webhook-messages.ts'
import { describeDeviceApi } from './api/device/index.ts'
import { doors } from './api/door/index.ts'
import { docsOperations } from './api/docs/index.ts'
import { describeMetrics, type MetricsSettings } from './api/metrics/index.ts'
import { describeMobileTokenApi } from './api/mobile-token/index.ts'
import { describeUtilityApi } from './api/utility/init.ts'
import { describeReferenceApi, REFERENCE_TAG } from './api/reference/index.ts'
import { openOperations } from './http/health.ts'
import { renderOpenApi, type Tag } from './http/openapi.ts'
import type { Operation } from './http/operation.ts'

export interface DescriptionSettings extends MetricsSettings {
  readonly publicUrl?: string
  readonly port?: number
  readonly internalTlsCertificate?: string
  /** Counts as false when absent. */
  readonly referenceApi?: boolean
}

/**
 * The OpenAPI document. If there are two listeners and the settings have a public URL, the document names it as the server of the phones' endpoints.
 */
export function describeApis(settings: DescriptionSettings): Record<string, unknown> {
  const { publicUrl, internalPort } = settings
  const isElsewhere = internalPort !== undefined && publicUrl !== undefined
  const server = isElsewhere ? { server: { url: publicUrl, description: 'the public listener' } } : {}
  return renderOpenApi(
    { title: 'pawl', version: packageJson.version, description: describeAll(baseOf(settings)) },
    [
      ...describeCloudEndpoints([...cloudEndpoints, ...doors]),
      ...(settings.referenceApi === true ? describeReferenceApi() : []),
      ...publicOperations().map((operation) => ({ ...operation, ...server })),
      ...docsOperations,
      ...openOperations,
      ...describeMetrics(settings),
    ],
    {
      tags: settings.referenceApi === true ? TAGS : TAGS.filter(({ name }) => name !== REFERENCE_TAG),
      messages: webhookMessages,
    },
  )
}

/** The URL of the bank's API on this machine. A port of 0 is replaced by 8080, because the real one is known only once the server listens. */
function baseOf({ port, internalPort, internalTlsCertificate }: DescriptionSettings): string {
  const scheme = internalPort !== undefined && internalTlsCertificate !== undefined ? 'https' : 'http'
  return `${scheme}://127.0.0.1:${internalPort ?? (port || 8080)}`
}

/** The endpoints that phones call. */
const publicOperations = (): Operation[] => [...describeDeviceApi(), ...describeMobileTokenApi(), ...describeUtilityApi()]

// The bank comes first, because its developers read this document.
const TAGS: readonly Tag[] = [
  {
    name: 'Registration',
    description: 'A user and the phone that is bound to him: register, show the QR code, commit, block, remove.',
  },
  { name: 'Operations', description: 'What a user is asked to approve: create, ask for the state, cancel, approve offline.' },
  {
    name: 'Verification',
    description: "What a phone sent to the bank's own endpoints: whether it is genuine; docs/DOORS.md.",
  },
  {
    name: 'Encryption',
    description: "What a phone encrypted for the bank's own endpoints: opened, and the answer sealed; docs/DOORS.md.",
  },
  {
    name: 'Offline',
    description: 'Texts of QR codes over data of the bank, and what users type for them; docs/OFFLINE.md.',
  },
  { name: 'Audit', description: 'What the phones of a user did.' },
  { name: 'Push', description: 'Where a sender of the bank finds a phone; docs/PUSH.md says how pawl sends pushes itself.' },
  { name: 'Inbox', description: 'Messages that the phone shows.' },
  { name: 'Internal', description: 'For schedulers of the bank.' },
  {
    name: 'Administration: applications',
    description: 'Applications with their versions, registrations, claims about users and configuration items.',
  },
  { name: 'Administration: activations', description: 'Flags and configuration items of one phone.' },
  { name: 'Administration: templates', description: 'What operations look like and how they are approved; docs/TEMPLATES.md.' },
  { name: 'Administration: push', description: 'How Apple and Google are doing, which pawl sends pushes to; docs/PUSH.md.' },
  {
    name: 'Administration: webhooks',
    description: 'Who is told what happened; docs/WEBHOOKS.md, and the messages below `webhooks` of this document.',
  },
  { name: 'Administration: users', description: 'Credentials of this API.' },
  { name: 'Administration: audit', description: 'What administrators changed, and whether the logs are whole.' },
  { name: 'Administration: apps', description: 'Pinned certificates and versions of mobile apps.' },
  { name: 'Administration: certificates', description: 'Pinned certificates of all apps.' },
  { name: 'Administration: texts', description: 'Texts for users of old versions of an app.' },
  {
    name: REFERENCE_TAG,
    description: "Called by the bank's Spring services that have the reference's client; docs/REFERENCE-API.md.",
  },
  { name: 'Mobile token API', description: 'Called by phones: operations, push registration, inbox.' },
  { name: 'Device API, protocol 4', description: 'Called by SDKs of protocol 4.0.' },
  { name: 'Device API, protocol 3', description: 'Called by SDKs of protocol 3.0 to 3.3.' },
  { name: 'Mobile utility API', description: 'Called when a mobile app starts: signed answers.' },
  { name: 'Description and health', description: 'This document, health for balancers, metrics.' },
]

/** The text at the head of the page: a call that works as it is printed, then who calls which API. `base`: the URL of the bank's API. */
const describeAll = (base: string): string => `pawl binds phones to users and verifies what they sign.

### The first call

The bank's half takes HTTP Basic, and where they are set up an access token (\`PAWL_JWT_JWKS_URL\`) or a client certificate
(\`PAWL_INTERNAL_TLS_CLIENT_CA\`). The first start printed the password of \`admin\`, and curl asks for it:

\`\`\`sh
PAWL=${base}
curl -w '\\n' -u admin $PAWL/admin/applications
\`\`\`

This makes an application, and registers a user for a phone. \`npm run demo\` binds such a phone; from then on the user can be asked to log in:

\`\`\`sh
curl -w '\\n' -u admin -H 'Content-Type: application/json' -d '{"id":"my-app"}' $PAWL/admin/application
curl -w '\\n' -u admin -H 'Content-Type: application/json' -d '{"userId":"alice"}' $PAWL/registration
curl -w '\\n' -u admin -H 'Content-Type: application/json' -d '{"userId":"alice","template":"login"}' $PAWL/operations
\`\`\`

A back end gets a credential of its own by \`POST /admin/users\` with the role \`integration\`. To call from this page, press **Authorize**.

### Who calls what

| paths | caller | how it proves who it is |
|---|---|---|
| \`/registration\`, \`/operations\`, \`/inbox\`, \`/verification\` and others | back ends of the bank | HTTP Basic, an access token or a client certificate |
| \`/admin\` | operators | the same |
| \`/pa\` | mobile SDKs | keys and codes of the phone |
| \`/api\` | the app, which lists, approves and rejects operations | tokens and codes of the phone |
| \`/app\` | the app at its start, which reads pinned certificates | nothing: the answer is signed |

**The bank's half is never for phones or the internet.** With \`PAWL_INTERNAL_PORT\` it has a listener of its own, where this page is served, too.

### Bodies and answers

- Bodies are JSON in UTF-8. Unknown members are ignored.
- With a right credential a body has at most 256 KiB, and 384 KiB at \`/verification/code\`, \`/verification/token\`, \`/encryption\` and \`/offline\`. What is
  read before anything proves who sent it has 16 KiB, and what a code covers \`PAWL_SIGNED_BODY_BYTES_MAX\`. A longer body gets 400.
- A source whose requests are refused too often gets 429. What is no HTTP request gets 400, headers over 16 KiB get 431, and what
  does not arrive in time gets 408.
- Every answer has the header \`X-Request-Id\`: the caller's own where it sent a sane one.
- Phones write the headers of the protocol as \`X-PowerAuth-*\` or as \`X-Svc-*\`, one spelling a request. Error messages then begin with \`POWER_AUTH_\` or \`SVC_\`.
- The body of an encrypted endpoint is an envelope, described together with the content that it decrypts to.`
