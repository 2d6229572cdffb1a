// ecies/decryptor: gives the keys of one envelope of 3.0 to 3.3 to a back end that opens the envelope itself (cloud §15.3).
import { type Static, Type } from '@sinclair/typebox'
import { OptionalOrNull } from '../../http/types.ts'
import { toBase64 } from '../../lib/base64.ts'
import { PawlError } from '../../lib/errors.ts'
import { parseKeyRequest, readRequestKeys } from '../../protocol/v3/envelope.ts'
import { recordOpening } from '../../storage/request/door-envelopes.ts'
import { findSealed, openSealed, readSealed, type ScopeName } from '../door/envelope.ts'
import { DOOR_ROLES, headersOf, requireRight } from '../door/members.ts'
import { type Dialect, type ReferenceCall, referenceEndpoint } from './endpoint.ts'
import { composeHeader } from './phone-request.ts'
import { Given, Optional } from './members.ts'

const KeyRequest = Type.Object({
  activationId: Optional,
  applicationKey: Given,
  temporaryKeyId: Optional,
  ephemeralPublicKey: Given,
  nonce: Optional,
  protocolVersion: Given,
  timestamp: OptionalOrNull(Type.Integer({ description: 'milliseconds since 1970-01-01 UTC' })),
})

export const eciesDecryptor = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: 'ecies/decryptor',
    operationId: 'referenceDecryptor',
    summary: 'The keys of one envelope that a phone sent to the bank',
    description:
      'Needs the right `keys:derive`, and without `activationId` also `envelopes:application`. The keys open this envelope and its answer, of the ' +
      'generic labels. From 3.2 on an envelope is spent by this call. All that is wrong with it is `ERR0018`.',
    errors: ['ENCRYPTION_FAILED'],
    roles: DOOR_ROLES,
    request: KeyRequest,
    response: Type.Object({
      secretKey: Type.String({ description: 'Base64 of 48 bytes: KEY_ENC, KEY_MAC, KEY_IV' }),
      sharedInfo2: Type.String({ description: 'Base64 of 32 bytes: the base of sharedInfo2' }),
    }),
    async handle(call) {
      const scope: ScopeName = typeof call.request.activationId === 'string' ? 'ACTIVATION' : 'APPLICATION'
      requireRight(call.caller, 'keys:derive')
      // Requests of phones that are not bound yet have the same label, so this scope needs a right.
      if (scope === 'APPLICATION') requireRight(call.caller, 'envelopes:application')
      const { envelopeKey, base } = readRequestKeys(await deriveKeys(call, scope))
      return { secretKey: toBase64(envelopeKey), sharedInfo2: toBase64(base) }
    },
  })

/** Uses up the envelope, and returns its exported keys. Throws ENCRYPTION_FAILED for every fault of the envelope. */
async function deriveKeys(
  { request, parts, caller, applicationId, source }: ReferenceCall<Static<typeof KeyRequest>>,
  scope: ScopeName,
) {
  const { activationId, applicationKey, protocolVersion } = request
  const header = composeHeader({
    version: protocolVersion,
    application_key: applicationKey,
    ...(scope === 'ACTIVATION' && { activation_id: activationId ?? '' }),
  })
  const headers = headersOf('encryption', header ?? '', { address: source })
  const sent = { method: 'POST', headers, contentType: undefined, body: new Uint8Array(0), query: undefined, ip: source }
  const sealed = readSealed(parts, scope, sent, (_protocol, context) => {
    const envelope = parseKeyRequest(context, request)
    if (envelope === undefined) throw new PawlError('ENCRYPTION_FAILED', { detail: 'the envelope is not well-formed' })
    return envelope
  })
  const seen = await findSealed(parts, applicationId, sealed, null)
  const opened = await openSealed(parts, sealed, seen, false)
  const at = await recordOpening(parts.db, {
    uses: opened.uniqueValues,
    kept: undefined,
    audit: {
      applicationId,
      userId: opened.activation?.userId ?? null,
      activationId: opened.activation?.activationId ?? '',
      eventType: 'envelope_keys_derived',
      eventData: sealed.context.sharedInfo1,
      occurredAt: new Date(parts.platform.now()),
      verifiedBy: caller.username,
    },
  })
  if (at === undefined) throw new PawlError('ENCRYPTION_FAILED', { detail: 'used meanwhile by another request' })
  return opened.exportAnswerKeys()
}
