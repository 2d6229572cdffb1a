// What the generations of keystore/create have in common: the key is made for a genuine request, stored sealed, and answered signed.
import type { Static } from '@sinclair/typebox'
import { Type } from '@sinclair/typebox'
import { applicationSecretOf, type Decoy, serverKeysOf } from '../../../channel/secrets.ts'
import type { Client } from '../../../channel/stages/receive.ts'
import { findSigningMasterKeys } from '../../../domain/application/master-keys.ts'
import { places } from '../../../domain/secrets/secrets.ts'
import { NotBlank, ObjectRequest, ObjectResponse } from '../../../http/types.ts'
import { ownBytes } from '../../../lib/bytes.ts'
import { PawlError } from '../../../lib/errors.ts'
import { sourceOf } from '../../../lib/source.ts'
import type { ActivationKeys, Protocol, SigningKeys, TemporaryKeyRequest } from '../../../protocol/protocol.ts'
import type { ReadActivationRow } from '../../../storage/activation/find.ts'
import type { VersionRow } from '../../../storage/application/version.ts'
import {
  insertTemporaryKey,
  insertTemporaryKeyOfApplication,
  type TemporaryKeyRow,
} from '../../../storage/application/temporary-keys.ts'
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
 * Answers a request without an activation from what this process remembers of the application, in one statement that confirms it. Undefined
 * where that does not give an answer, whatever the reason: the caller reads and decides. A MAC is always computed, so that time does not
 * tell which applications are remembered.
 */
export async function issueFromMemory<Keys extends ActivationKeys>(
  parts: DeviceParts,
  decoy: Decoy<Keys>,
  asked: TemporaryKeyRequest<Keys>,
  isTaken: (version: VersionRow) => boolean,
): Promise<Static<typeof KeystoreResponse>['responseObject'] | undefined> {
  if (asked.activationId !== undefined) return undefined
  const known = parts.applicationSigners.recall(asked.applicationKey, asked.algorithm)
  const isGenuine = verifyKeystoreRequest(parts, decoy, asked, known?.version, undefined)
  if (known === undefined || !isGenuine || !isTaken(known.version)) return undefined
  const { signingKeys, version } = known
  const made = await makeTemporaryKey(parts, asked, signingKeys)
  if (made === undefined) return undefined
  if (
    await insertTemporaryKeyOfApplication(parts.db, { key: made.row, version, masterKeyPairIds: signingKeys.masterKeyPairIds })
  ) {
    parts.recentKeys.remember({ version, temporaryKey: made.row })
    return { jwt: made.jwt }
  }
  parts.applicationSigners.forget(asked.applicationKey, asked.algorithm)
  return undefined
}

/**
 * Makes the key of a genuine request, signed by the application or by the activation the request names. Throws TEMPORARY_KEY_FAILED when
 * the client's own keys are not valid.
 */
export async function issueTemporaryKey<Keys extends ActivationKeys>(
  parts: DeviceParts,
  protocol: Protocol<Keys>,
  asked: TemporaryKeyRequest<Keys>,
  { version, activation }: { readonly version: VersionRow; readonly activation: ReadActivationRow | undefined },
): Promise<Static<typeof KeystoreResponse>['responseObject']> {
  const isOfActivation = asked.activationId !== undefined && activation !== undefined
  const made = isOfActivation
    ? await makeTemporaryKey(parts, asked, serverKeysOf(parts.recordKeys, protocol, activation))
    : await makeAndRemember(parts, asked, version)
  if (made === undefined) throw refuseTemporaryKey(parts, 'the keys of the request are not valid')
  await insertTemporaryKey(parts.db, made.row)
  if (!isOfActivation) parts.recentKeys.remember({ version, temporaryKey: made.row })
  return { jwt: made.jwt }
}

async function makeAndRemember<Keys extends ActivationKeys>(
  parts: DeviceParts,
  asked: TemporaryKeyRequest<Keys>,
  version: VersionRow,
): Promise<MadeKey | undefined> {
  const signingKeys = await findSigningMasterKeys(parts, version.applicationId, asked.algorithm)
  parts.applicationSigners.remember(asked.algorithm, { version, signingKeys })
  return makeTemporaryKey(parts, asked, signingKeys)
}

interface MadeKey {
  readonly row: TemporaryKeyRow
  readonly jwt: string
}

/** Undefined when the client's own keys are not valid. */
async function makeTemporaryKey<Keys extends ActivationKeys>(
  { platform, recordKeys, settings }: DeviceParts,
  asked: TemporaryKeyRequest<Keys>,
  signingKeys: SigningKeys,
): Promise<MadeKey | undefined> {
  const temporaryKeyId = platform.uuid()
  const issuedAt = platform.now()
  const expiresAt = issuedAt + settings.temporaryKeyValiditySeconds * 1000
  const issued = await asked.issue({ temporaryKeyId, issuedAt, expiresAt, salt: platform.randomBytes(32) }, signingKeys)
  if (issued === undefined) return undefined
  const row = {
    temporaryKeyId,
    applicationKey: asked.applicationKey,
    activationId: asked.activationId ?? null,
    // In memory of its own: the row of an application's key is remembered.
    privateKey: ownBytes(recordKeys.seal(places.temporaryPrivateKey(temporaryKeyId), issued.envelopeKey)),
    expiresAt: new Date(expiresAt),
  }
  return { row, jwt: issued.jwt }
}

/** An error TEMPORARY_KEY_FAILED whose reason the log knows. */
export function refuseTemporaryKey({ events }: DeviceParts, reason: string): PawlError {
  events.temporaryKeyRefused({ reason })
  return new PawlError('TEMPORARY_KEY_FAILED', { detail: reason })
}
