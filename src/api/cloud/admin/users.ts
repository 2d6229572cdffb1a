// /admin/users: manages the credentials of the cloud API (cloud §2, §10).
import { type Static, Type } from '@sinclair/typebox'
import { requireApplication } from '../../../domain/application/application.ts'
import { named, OneOf } from '../../../http/types.ts'
import { isAddressOrRange } from '../../../lib/address.ts'
import { administrationRefused, notFound, requestRefused } from '../../../lib/errors.ts'
import { forPaths, USERNAME } from '../../../lib/identifier.ts'
import { deleteCredential, findCredential, listCredentials } from '../../../storage/credential/credentials.ts'
import type { Db } from '../../../storage/database/database.ts'
import type { Right, Role } from '../../../storage/database/schema.ts'
import { type Audited, auditedEndpoint } from '../audited-endpoint.ts'
import { adminRead } from '../endpoint.ts'
import { ChosenPassword, Identifier, KeepPreviousSeconds, OptionalTime, readEnd, Username } from '../fields.ts'

const RoleName = OneOf<Role>(['admin', 'integration', 'internal', 'read-only', 'verification'])

/** The schema has a name, because the Java of a generator does not compile for a set of an enum without one. */
const CredentialRight = named('CredentialRight', OneOf<Right>(['envelopes:application', 'keys:derive']))

const Rights = Type.Array(CredentialRight, { maxItems: 2, uniqueItems: true })

/** Addresses and CIDR ranges from which a credential may be used. */
const AllowedAddresses = Type.Array(
  Type.String({ minLength: 2, maxLength: 50, description: 'must be an IP address or a CIDR range', examples: ['10.20.0.0/16'] }),
  { maxItems: 50, uniqueItems: true },
)

/** Throws REQUEST_INVALID when one of the texts is neither an address nor a range. */
function requireRanges(allowedAddresses: readonly string[]): void {
  const wrong = allowedAddresses.find((text) => !isAddressOrRange(text))
  if (wrong !== undefined) throw requestRefused('allowedAddresses', 'must be an IP address or a CIDR range', wrong)
}

const OfUser = Type.Object({ name: Username })

const auditedUser: Audited<{ readonly name: string }> = {
  target: ({ params: { name } }) => `user ${name}`,
  view: ({ params: { name }, parts }) => viewUser(parts.db, name),
}

/** A user for the audit log. Only kind and end of passwords are shown. */
async function viewUser(db: Db, username: string) {
  const user = await findCredential(db, username)
  if (user === undefined) return undefined
  const { role, applicationId, isDisabled, expiresAt, allowedAddresses, certificates, rights } = user
  const passwords = user.passwords.map((password) => ({ scheme: password.scheme, expiresAt: password.expiresAt }))
  return {
    username,
    role,
    application: applicationId,
    isDisabled,
    expiresAt,
    ...(allowedAddresses.length > 0 && { allowedAddresses }),
    ...(certificates.length > 0 && { certificates }),
    ...(rights.length > 0 && { rights }),
    passwords,
  }
}

const Credential = Type.Object({
  username: Type.String(),
  role: RoleName,
  application: Type.Optional(Type.String()),
  isDisabled: Type.Boolean(),
  expiresAt: OptionalTime,
  allowedAddresses: Type.Optional(Type.Array(Type.String())),
  certificates: Type.Optional(Type.Array(Type.String())),
  rights: Type.Optional(Rights),
})
export type Credential = Static<typeof Credential>

const usersList = adminRead({
  route: 'GET /admin/users',
  operationId: 'listUsers',
  summary: 'Lists credentials',
  response: Type.Object({ users: Type.Array(Credential) }),
  async handle({ parts }) {
    const users = await listCredentials(parts.db)
    return {
      users: users.map(({ username, role, applicationId, isDisabled, expiresAt, allowedAddresses, certificates, rights }) => ({
        username,
        role,
        ...(applicationId !== null && { application: applicationId }),
        isDisabled,
        ...(expiresAt !== null && { expiresAt: expiresAt.getTime() }),
        ...(allowedAddresses.length > 0 && { allowedAddresses: [...allowedAddresses] }),
        ...(certificates.length > 0 && { certificates: [...certificates] }),
        ...(rights.length > 0 && { rights: [...rights] }),
      })),
    }
  },
})

const userCreate = auditedEndpoint({
  route: 'POST /admin/users',
  operationId: 'createUser',
  summary: 'Creates a credential',
  description:
    'The password is shown this once; without `password` one is generated. A credential of the role integration or verification that has no ' +
    '`application` has no access. Without `expiresAt`, which is in the future, it does not end.',
  body: Type.Object(
    {
      username: Type.String({ ...forPaths(USERNAME), examples: ['bank'] }),
      role: RoleName,
      application: Type.Optional(Identifier),
      password: Type.Optional(ChosenPassword),
      expiresAt: OptionalTime,
      allowedAddresses: Type.Optional(AllowedAddresses),
    },
    { examples: [{ username: 'bank', role: 'integration', application: 'my-app' }] },
  ),
  response: Type.Object({
    username: Type.String(),
    role: RoleName,
    application: Type.Optional(Type.String()),
    password: Type.String(),
  }),
  prepare: ({ body: { password }, parts }) => parts.credentials.prepare(password),
  async handle({ body: { username, role, application, expiresAt, allowedAddresses = [] }, parts }, prepared) {
    requireRanges(allowedAddresses)
    const ends = readEnd(parts, expiresAt) ?? null
    if (application !== undefined) await requireApplication(parts.db, application)
    const user = { username, role, applicationId: application ?? null, expiresAt: ends, allowedAddresses }
    await parts.credentials.create(parts.db, user, prepared)
    return { username, role, ...(application !== undefined && { application }), password: prepared.password }
  },
  audited: {
    target: ({ body: { username } }) => `user ${username}`,
    view: ({ body: { username }, parts }) => viewUser(parts.db, username),
  },
})

const userRemove = auditedEndpoint({
  route: 'DELETE /admin/users/:name',
  operationId: 'removeUser',
  summary: 'Removes a credential',
  params: OfUser,
  async handle({ params: { name }, caller, parts, afterCommit }) {
    if (name === caller.username)
      throw administrationRefused('name', 'must not be that of the caller: nobody removes their own credential')
    if (!(await deleteCredential(parts.db, name))) throw notFound('user', name)
    afterCommit(parts.credentials.forget)
  },
  audited: auditedUser,
})

const userChange = auditedEndpoint({
  route: 'PATCH /admin/users/:name',
  operationId: 'changeUser',
  summary: 'Changes the rights of a credential',
  description:
    'In place of those there were. `envelopes:application` opens envelopes of phones that have no registration yet. `keys:derive` is given the ' +
    'keys of one envelope (docs/REFERENCE-API.md). No credential has either by itself.',
  params: OfUser,
  body: Type.Object({ rights: Rights }),
  async handle({ params: { name }, body: { rights }, parts, afterCommit }) {
    await parts.credentials.entitle(parts.db, name, rights)
    afterCommit(parts.credentials.forget)
  },
  audited: auditedUser,
})

const userPassword = auditedEndpoint({
  route: 'POST /admin/users/:name/password',
  operationId: 'resetPassword',
  summary: 'Gives a credential a new password',
  description: 'Without `password` one is generated. It is shown this once.',
  params: OfUser,
  body: Type.Object({ password: Type.Optional(ChosenPassword), keepPreviousSeconds: KeepPreviousSeconds }),
  response: Type.Object({ username: Type.String(), password: Type.String() }),
  prepare: ({ params: { name }, body: { password }, parts }) => parts.credentials.prepare(password, name),
  async handle({ params: { name }, body: { keepPreviousSeconds = 0 }, parts, afterCommit }, prepared) {
    await parts.credentials.reset(parts.db, name, prepared, keepPreviousSeconds)
    afterCommit(parts.credentials.forget)
    return { username: name, password: prepared.password }
  },
  audited: auditedUser,
})

const userAllowedAddresses = auditedEndpoint({
  route: 'PUT /admin/users/:name/allowed-addresses',
  operationId: 'replaceAllowedAddresses',
  summary: 'Says which addresses a credential may be used from',
  description:
    'Addresses and CIDR ranges in place of those there were; none: from anywhere. From elsewhere the right password is a wrong one.',
  params: OfUser,
  body: Type.Object({ allowedAddresses: AllowedAddresses }),
  async handle({ params: { name }, body: { allowedAddresses }, parts, afterCommit }) {
    requireRanges(allowedAddresses)
    await parts.credentials.restrict(parts.db, name, allowedAddresses)
    afterCommit(parts.credentials.forget)
  },
  audited: auditedUser,
})

// The SHA-256 of an empty text.
const EXAMPLE = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

const userCertificates = auditedEndpoint({
  route: 'PUT /admin/users/:name/certificates',
  operationId: 'replaceClientCertificates',
  summary: 'Says which client certificates stand for a credential',
  description:
    'SHA-256 fingerprints in place of those there were. On a listener with TLS a caller with one of them needs no password. The password stays good.',
  params: OfUser,
  body: Type.Object({
    certificates: Type.Array(
      Type.String({ pattern: '^[0-9a-f]{64}$', description: 'must be 64 hexadecimal digits in lower case', examples: [EXAMPLE] }),
      { maxItems: 10, uniqueItems: true },
    ),
  }),
  async handle({ params: { name }, body: { certificates }, parts, afterCommit }) {
    await parts.credentials.assignCertificates(parts.db, name, certificates)
    afterCommit(parts.credentials.forget)
  },
  audited: auditedUser,
})

export const userEndpoints = [usersList, userCreate, userChange, userRemove, userPassword, userAllowedAddresses, userCertificates]
