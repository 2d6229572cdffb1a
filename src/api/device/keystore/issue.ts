// Issues temporary keys for both generations of keystore/create: makes one for a genuine request, stores it sealed, and answers it signed.
import type { Static } from '@sinclair/typebox'
import { Type } from '@sinclair/typebox'
import { applicationSecretOf, type Decoy, serverKeysOf } from '../../../channel/secrets.ts'
import type { Client } from '../../../channel/stages/receive.ts'
import { findSigningMasterKeys } from '../../../domain/application/master-keys.ts'
import { places } from '../../../domain/secrets/secrets.ts'
import { NotBlank, ObjectRequest, ObjectResponse } from '../../../http/types.ts'
import { PawlError } from '../../../lib/errors.ts'
import { sourceOf } from '../../../lib/address.ts'
import type { ActivationKeys, Protocol, TemporaryKeyRequest } from '../../../protocol/protocol.ts'
import type { ReadActivationRow } from '../../../storage/activation/find.ts'
import type { VersionRow } from '../../../storage/application/version.ts'
import { insertTemporaryKey } from '../../../storage/application/temporary-keys.ts'
import type { DeviceParts } from '../parts.ts'

export const KeystoreRequest = ObjectRequest(Type.Object({ jwt: NotBlank(8192) }))
export const KeystoreResponse = ObjectResponse(Type.Object({ jwt: Type.String() }))

/**
 * Throws TOO_MANY_REQUESTS when the source of a request without an activation has had its number of keys. Such a request needs no more than
 * what every copy of the app holds, and its answer takes some of the most expensive steps. Requests of an activation need its key and are
 * not counted.
 */
export function limitTemporaryKeys(
  { temporaryKeys, platform }: DeviceParts,
  { ip }: Client,
  { activationId }: Pick<TemporaryKeyRequest, 'activationId'>,
): void {
  if (activationId === undefined) temporaryKeys.take(sourceOf(ip), platform.monotonic())
}

/** Always computed: a missing party is checked against the decoy. */
export function verifyKeystoreRequest<Keys extends ActivationKeys>(
  { recordKeys }: DeviceParts,
  decoy: Decoy<Keys>,
  asked: TemporaryKeyRequest<Keys>,
  version: VersionRow | undefined,
  keys: Keys | undefined,
): boolean {
  const own = asked.activationId === undefined ? undefined : (keys ?? decoy.activationKeys)
  return asked.verify(applicationSecretOf(recordKeys, decoy, version), own)
}

/**
 * Makes the key of a genuine request, signed by the application or by the activation the request names. Throws TEMPORARY_KEY_FAILED when
 * the client's own keys are not valid, and when the activation's key was altered in the database.
 */
export async function issueTemporaryKey<Keys extends ActivationKeys>(
  parts: DeviceParts,
  protocol: Protocol<Keys>,
  asked: TemporaryKeyRequest<Keys>,
  { version, activation }: { readonly version: VersionRow; readonly activation: ReadActivationRow | undefined },
): Promise<Static<typeof KeystoreResponse>['responseObject']> {
  const { platform, recordKeys, settings } = parts
  const isOfActivation = asked.activationId !== undefined && activation !== undefined
  const signingKeys = isOfActivation
    ? serverKeysOf(recordKeys, protocol, activation)
    : await findSigningMasterKeys(parts, version.applicationId, asked.algorithm)
  if (signingKeys === undefined) throw refuseTemporaryKey(parts, 'the server key of the activation does not open')
  const temporaryKeyId = platform.uuid()
  const issuedAt = platform.now()
  const expiresAt = issuedAt + settings.temporaryKeyValiditySeconds * 1000
  const issued = await asked.issue({ temporaryKeyId, issuedAt, expiresAt, salt: platform.randomBytes(32) }, signingKeys)
  if (issued === undefined) throw refuseTemporaryKey(parts, 'the keys of the request are not valid')
  await insertTemporaryKey(parts.db, {
    temporaryKeyId,
    applicationKey: asked.applicationKey,
    activationId: asked.activationId ?? null,
    privateKey: recordKeys.seal(places.temporaryPrivateKey(temporaryKeyId), issued.envelopeKey),
    expiresAt: new Date(expiresAt),
  })
  return { jwt: issued.jwt }
}

/** An error TEMPORARY_KEY_FAILED whose reason the log knows. */
export function refuseTemporaryKey({ events }: DeviceParts, reason: string): PawlError {
  events.temporaryKeyRefused({ reason })
  return new PawlError('TEMPORARY_KEY_FAILED', { detail: reason })
}
