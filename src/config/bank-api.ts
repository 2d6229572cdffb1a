// Lists the settings of the bank's API: access tokens, the doors, and the API of the reference.
import { algorithmList, boolean, httpsUrl, integer, matching, type Settings, tokenTypeList } from './kinds.ts'

const claim = matching('name of a claim', /^[\x21-\x7E]{1,200}$/, 'the name of a claim')

/** Settings of access tokens (domain/credential/access-token.ts). */
export const TOKEN_SETTINGS = {
  jwtJwksUrl: {
    name: 'PAWL_JWT_JWKS_URL',
    kind: httpsUrl,
    description:
      "Keys (JWKS) of the bank's authorization server: its JWTs are then taken on the cloud API instead of a password, as Bearer. Needs " +
      'PAWL_JWT_ISSUER and PAWL_JWT_AUDIENCE. docs/spec/cloud.md, "Access tokens", says what a token must have.',
  },
  jwtIssuer: {
    name: 'PAWL_JWT_ISSUER',
    kind: matching('text', /^[\x21-\x7E]{1,500}$/, 'printable ASCII without spaces'),
    description: 'What the claim `iss` of a token must be, to the letter.',
  },
  jwtAudience: {
    name: 'PAWL_JWT_AUDIENCE',
    kind: matching('text', /^[\x21-\x7E]{1,500}$/, 'printable ASCII without spaces'),
    description: 'What the claim `aud` of a token must be or contain. One that no other service has.',
  },
  jwtAlgorithms: {
    name: 'PAWL_JWT_ALGORITHMS',
    kind: algorithmList,
    default: 'RS256,PS256,ES256,ES384,EdDSA',
    description: 'Algorithms of signatures that are taken. Those with a shared secret are never.',
  },
  jwtTypes: {
    name: 'PAWL_JWT_TYPES',
    kind: tokenTypeList,
    default: 'at+jwt,JWT',
    description:
      'What `typ` in the header of a token may be. A token without counts as `JWT`. `at+jwt` alone where the authorization server writes it ' +
      '(RFC 9068): other tokens of the same server are then never taken for access tokens.',
  },
  jwtClockToleranceSeconds: {
    name: 'PAWL_JWT_CLOCK_TOLERANCE_SECONDS',
    kind: integer(0, 300),
    default: '30',
    unit: 'seconds',
    description: 'How far the clock of the authorization server may be from that of pawl, for `exp`, `nbf` and `iat`.',
  },
  jwtRoleClaim: {
    name: 'PAWL_JWT_ROLE_CLAIM',
    kind: claim,
    default: 'scope',
    description:
      'Claim that gives the role, as one word of `pawl:admin`, `pawl:integration`, `pawl:internal`, `pawl:read-only`, `pawl:verification` among ' +
      'others: a text with spaces, or a list. Dots lead into objects: `realm_access.roles`.',
  },
  jwtApplicationClaim: {
    name: 'PAWL_JWT_APPLICATION_CLAIM',
    kind: claim,
    default: 'pawl_application',
    description: 'Claim that gives the application. Without one the caller has none, as a credential without application.',
  },
} satisfies Settings

export const DOOR_SETTINGS = {
  doorIdempotencySeconds: {
    name: 'PAWL_DOOR_IDEMPOTENCY_SECONDS',
    kind: integer(5, 3_600),
    default: '60',
    unit: 'seconds',
    description:
      'How long the same request with the same `Idempotency-Key` gets the same answer of `/verification/code`, `/verification/token`, ' +
      '`/encryption/open` and `/offline/verification` again. Set it longer than the back end goes on trying.',
  },
  sealTicketSeconds: {
    name: 'PAWL_SEAL_TICKET_SECONDS',
    kind: integer(5, 300),
    default: '300',
    unit: 'seconds',
    description: 'How long after `/encryption/open` the answer may be sealed. Set it longer than an endpoint of the bank takes.',
  },
  referenceApi: {
    name: 'PAWL_REFERENCE_API',
    kind: boolean,
    default: 'false',
    description:
      "Serves the back-end API of Wultra's PowerAuth server below `/rest/v3` and `/rest/v4`, beside the bank's API, for Spring services that have " +
      'its client. docs/REFERENCE-API.md says what is served.',
  },
} satisfies Settings
