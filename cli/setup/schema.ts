// Defines the schema of the set-up file. Export writes members in this order; docs/SETUP-FILE.md describes them.
//
// A `description` is the text of the fault for a value that does not fit. A member that the file leaves out stays as it is on the server.
import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { forPaths, IDENTIFIER } from '../../src/lib/identifier.ts'

/** The format that this pawl reads and writes. */
export const API_VERSION = 'pawl/1'

const closed = (description: string) => ({ additionalProperties: false, description })

const NAME = {
  pattern: IDENTIFIER.pattern,
  description: 'must be a text of 1 to 255 characters, not blank, without control characters',
}
const Name = Type.String(NAME)

/** The name of a thing that calls name in their path. */
const NameInPath = Type.String(forPaths(NAME))

/** A name for paths of letters, digits, `_`, `.` and `-` only. */
const WordInPath = Type.String(
  forPaths({ pattern: '^[A-Za-z0-9_.-]{1,64}$', description: 'must be a text of 1 to 64 letters, digits, `_`, `.` or `-`' }),
)

/** A text that `domain/template` checks. */
const Text = Type.String({ description: 'must be a text' })

const Count = Type.Integer({ minimum: 1, maximum: 2_147_483_647, description: 'must be a whole number of at least 1' })

const Flag = Type.Boolean({ description: 'must be true or false' })

const oneOf = <const V extends string>(values: readonly V[]) =>
  Type.Unsafe<V>(
    Type.Union(
      values.map((value) => Type.Literal(value)),
      { description: `must be ${orOf(values)}` },
    ),
  )

const orOf = (values: readonly string[]): string =>
  values.length === 1 ? String(values[0]) : `${values.slice(0, -1).join(', ')} or ${values.at(-1)}`

const orNull = <S extends TSchema>(schema: S) =>
  Type.Unsafe<Static<S> | null>(Type.Union([schema, Type.Null()], { description: `${schema.description}, or null for none` }))

/** A list whose order has no meaning. */
const setOf = <S extends TSchema>(schema: S, of: string, minItems = 0) =>
  Type.Array(schema, {
    uniqueItems: true,
    minItems,
    description: `must be a list of ${of}, each once${minItems > 0 ? ', with at least one' : ''}`,
  })

const listOf = <S extends TSchema>(schema: S, of: string, minItems = 0) =>
  Type.Array(schema, { minItems, description: `must be a list of ${of}${minItems > 0 ? ', with at least one' : ''}` })

/** A JSON object with members of any name. */
const AnyObject = Type.Record(Type.String({ pattern: '^[\\s\\S]*$' }), Type.Unknown(), { description: 'must be an object' })

const Flags = setOf(
  Type.String({ pattern: '^[A-Z0-9_]{1,64}$', description: 'must be a text of 1 to 64 of A-Z, 0-9 and _' }),
  'flags',
)

const Version = Type.Object(
  { name: NameInPath, isSupported: Type.Optional(Flag) },
  closed('must be a version: name, and isSupported where it is off'),
)

const Item = Type.Object(
  {
    key: WordInPath,
    scope: Type.Optional(oneOf(['APPLICATION', 'ACTIVATION'])),
    value: Type.Unknown({ description: 'must be a value, or null' }),
  },
  closed('must be a configuration item: key and value'),
)

const AppVersion = Type.String({
  pattern: '^\\d{1,9}\\.\\d{1,9}\\.\\d{1,9}([-+][0-9A-Za-z.+-]{1,200})?$',
  description: 'must be a text like 1.4.0',
})

const Rule = Type.Object(
  {
    platform: oneOf(['ANDROID', 'IOS']),
    majorOsVersion: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 999_999_999, description: 'must be a whole number from 0 to 999999999' }),
    ),
    suggestedVersion: Type.Optional(AppVersion),
    requiredVersion: Type.Optional(AppVersion),
    messageKey: Type.Optional(Name),
  },
  closed('must be a rule: platform, and the versions that are suggested or required'),
)

const DAY_AND_TIME = '\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])T([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d'

const Certificate = Type.Object(
  {
    fingerprint: Type.String({
      // Base64 of 32 bytes, or hex as OpenSSL prints it.
      pattern: '^([A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=|([0-9A-Fa-f]{2}:?){31}[0-9A-Fa-f]{2})$',
      description: 'must be the SHA-256 of a certificate as a text, in Base64 or hex',
    }),
    expires: Type.String({ pattern: `^${DAY_AND_TIME}Z$`, description: 'must be a time like 2027-01-31T12:00:00Z' }),
  },
  closed('must be a pinned certificate: fingerprint and expires'),
)

const Domain = Type.Object(
  { name: Name, certificates: listOf(Certificate, 'pinned certificates', 1) },
  closed('must be a domain: name and certificates'),
)

const Webhook = Type.Object(
  {
    kind: oneOf(['OPERATION', 'ACTIVATION']),
    name: Name,
    url: Type.String({
      pattern: '^https?://[^\\s/?#@]+([/?]\\S*)?$',
      maxLength: 1024,
      description: 'must be an https URL of at most 1024 characters, without user name and password',
    }),
    attributes: Type.Optional(
      setOf(Type.String({ maxLength: 64, description: 'must be the name of an attribute' }), 'attributes'),
    ),
    isEnabled: Type.Optional(Flag),
  },
  closed('must be a webhook: kind, name and url'),
)

const Transfer = Type.Object(
  {
    targets: setOf(Name, 'applications', 1),
    type: oneOf(['SPAWN', 'MOVE']),
    initialFlags: Type.Optional(Flags),
  },
  closed('must be a transfer: targets and type'),
)

const Address = Type.String({
  pattern: '^[a-z][a-z0-9.+-]*:[^\\s#@]+$',
  maxLength: 1024,
  description: 'must be a URL of at most 1024 characters, without user name and fragment',
})

const Word = Type.String({
  pattern: '^[\\x21-\\x7E]{1,255}$',
  description: 'must be a text of 1 to 255 printable characters without spaces',
})

export const OidcProvider = Type.Object(
  {
    providerId: WordInPath,
    issuer: Address,
    clientId: Word,
    clientAuthentication: Type.Optional(oneOf(['client_secret_basic', 'client_secret_post', 'private_key_jwt', 'none'])),
    keyId: Type.Optional(Word),
    redirectUri: Address,
    scopes: Type.Optional(setOf(Word, 'scopes', 1)),
    authorizationEndpoint: Type.Optional(Address),
    tokenEndpoint: Type.Optional(Address),
    jwksUri: Type.Optional(Address),
    algorithms: Type.Optional(setOf(Word, 'algorithms', 1)),
    userIdClaim: Type.Optional(Word),
    isCommitted: Type.Optional(Flag),
    flags: Type.Optional(Flags),
  },
  closed('must be an OpenID provider: providerId, issuer, clientId and redirectUri'),
)

const Application = Type.Object(
  {
    id: NameInPath,
    name: Type.Optional(Name),
    isDefault: Type.Optional(
      Type.Literal(true, { description: 'must be true: another application becomes the default one where it is true there' }),
    ),
    algorithms: Type.Optional(setOf(oneOf(['EC_P384', 'EC_P384_ML_L3', 'EC_P384_ML_L5']), 'algorithms', 1)),
    isProtocol3Admitted: Type.Optional(Flag),
    isMultiDevice: Type.Optional(Flag),
    minimumProtocolVersion: Type.Optional(orNull(oneOf(['3.0', '3.1', '3.2', '3.3', '4.0']))),
    vaultFactors: Type.Optional(setOf(oneOf(['POSSESSION', 'POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY']), 'factors')),
    roles: Type.Optional(
      setOf(
        Type.String({
          pattern: '^[A-Za-z0-9_.-]{1,64}$',
          description: 'must be a text of 1 to 64 letters, digits, `_`, `.` or `-`',
        }),
        'roles',
      ),
    ),
    customObject: Type.Optional(orNull(AnyObject)),
    transfers: Type.Optional(listOf(Transfer, 'transfers')),
    versions: Type.Optional(listOf(Version, 'versions')),
    config: Type.Optional(listOf(Item, 'configuration items')),
    rules: Type.Optional(listOf(Rule, 'rules')),
    domains: Type.Optional(listOf(Domain, 'domains')),
    webhooks: Type.Optional(listOf(Webhook, 'webhooks')),
    oidcProviders: Type.Optional(listOf(OidcProvider, 'OpenID providers')),
  },
  closed('must be an application: id, and what is set in it'),
)

const Message = Type.Object(
  {
    messageKey: NameInPath,
    language: Type.String({ pattern: '^[a-z]{2}$', description: 'must be a text of two small letters' }),
    text: Type.String({
      pattern: '^(?=[^]*\\S)[^\\u0000]{1,4096}$',
      description: 'must be a text of 1 to 4096 characters, not blank',
    }),
  },
  closed('must be a text of rules: messageKey, language and text'),
)

const Attribute = Type.Object(
  { id: Text, type: Text, text: Text, params: Type.Optional(AnyObject) },
  closed('must be an attribute: id, type and text'),
)

const TemplateTexts = Type.Object(
  {
    title: Text,
    message: Text,
    attributes: Type.Optional(listOf(Attribute, 'attributes')),
    ui: Type.Optional(AnyObject),
    resultTexts: Type.Optional(
      Type.Object(
        { success: Type.Optional(Text), failure: Type.Optional(Text), reject: Type.Optional(Text) },
        closed('must be an object of success, failure and reject'),
      ),
    ),
    summary: Type.Optional(Text),
  },
  closed('must be an object of title, message and attributes'),
)

/** A template, as docs/TEMPLATES.md describes it. */
const Template = Type.Object(
  {
    templateName: NameInPath,
    operationType: Text,
    dataTemplate: Text,
    signatureType: setOf(oneOf(['possession', 'possession_knowledge', 'possession_biometry']), 'factors', 1),
    maxFailureCount: Count,
    expiration: Count,
    riskFlags: Type.Optional(Text),
    proximityCheckEnabled: Type.Optional(Flag),
    activationFlag: Type.Optional(Text),
    texts: Type.Record(Type.String({ pattern: '^[\\s\\S]*$' }), TemplateTexts, {
      minProperties: 1,
      description: 'must be an object with the texts of at least one language',
    }),
  },
  closed('must be a template: templateName and what docs/TEMPLATES.md describes'),
)

const User = Type.Object(
  {
    username: Type.String(
      forPaths({
        pattern: '^[^\\u0000-\\u001F\\u007F:]{1,255}$',
        description: 'must be a text of 1 to 255 characters without colon and control characters',
      }),
    ),
    role: oneOf(['admin', 'integration', 'internal', 'read-only', 'verification']),
    application: Type.Optional(Name),
    expiresAt: Type.Optional(
      Type.String({ pattern: `^${DAY_AND_TIME}(\\.\\d{3})?Z$`, description: 'must be a time like 2027-01-31T12:00:00Z' }),
    ),
    rights: Type.Optional(setOf(oneOf(['envelopes:application', 'keys:derive']), 'rights')),
    allowedAddresses: Type.Optional(
      setOf(
        Type.String({ minLength: 2, maxLength: 50, description: 'must be a text: an IP address or a CIDR range' }),
        'addresses',
      ),
    ),
    certificates: Type.Optional(
      setOf(
        Type.String({ pattern: '^[0-9a-f]{64}$', description: 'must be a text of 64 hexadecimal digits in lower case' }),
        'fingerprints',
      ),
    ),
  },
  closed('must be a user: username and role'),
)

export const SetupSchema = Type.Object(
  {
    apiVersion: Type.Literal(API_VERSION, { description: `must be ${API_VERSION}, the format that this pawl reads` }),
    applications: Type.Optional(listOf(Application, 'applications')),
    texts: Type.Optional(listOf(Message, 'texts')),
    templates: Type.Optional(listOf(Template, 'templates')),
    users: Type.Optional(listOf(User, 'users')),
  },
  closed(`must be an object that begins with apiVersion: ${API_VERSION}`),
)

export type Setup = Static<typeof SetupSchema>
export type SetupApplication = Static<typeof Application>
export type SetupRule = Static<typeof Rule>
export type SetupOidcProvider = Static<typeof OidcProvider>
export type SetupWebhook = Static<typeof Webhook>
export type SetupTemplate = Static<typeof Template>
export type SetupText = Static<typeof Message>
export type SetupUser = Static<typeof User>

/** Names of the list members whose order has no meaning. */
export const SETS: ReadonlySet<string> = new Set([
  'algorithms',
  'scopes',
  'flags',
  'vaultFactors',
  'roles',
  'attributes',
  'rights',
  'allowedAddresses',
  'certificates',
])
