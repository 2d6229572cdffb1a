// Issues temporary keys for both generations of keystore/create: makes a key, stores it sealed, and signs the answer.
import type { Static } from '@sinclair/typebox'
import { Type } from '@sinclair/typebox'
import { applicationSecretOf, type Decoy, masterKeysOf, serverKeysOf } from '../../../channel/secrets.ts'
import type { Client } from '../../../channel/stages/receive.ts'
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
 * Limits the keys of requests without an activation. Throws TOO_MANY_REQUESTS when their source has asked for too many keys. Every copy of the app
 * can make such a request, and the answer takes expensive computations. Requests of an activation are counted when their MAC is right
 * (issueTemporaryKey), so that nobody else uses up its keys.
 */
export function limitTemporaryKeys(parts: DeviceParts, client: Client, asked: Pick<TemporaryKeyRequest, 'activationId'>): void {
  if (asked.activationId === undefined) takeKey(parts, client, asked)
}

const takeKey = (
  { temporaryKeys, platform }: DeviceParts,
  client: Client,
  asked: Pick<TemporaryKeyRequest, 'activationId'>,
): void => void temporaryKeys.take(askerOf(client, asked), platform.monotonic())

/** Who asks for a key: a source, or one activation at a source. A request that somebody repeats from elsewhere takes no key of the phone. */
const askerOf = ({ ip }: Client, { activationId }: Pick<TemporaryKeyRequest, 'activationId'>): string =>
  activationId === undefined ? sourceOf(ip) : `${sourceOf(ip)} ${activationId}`

/** Whether the MAC of a request is right. It is always computed, with the keys of the decoy if the right ones are missing. */
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
 * Makes a key for a genuine request, and signs the answer with the keys of the activation that the request names, or else with those of the
 * application. All who ask take turns, because the computations take milliseconds. Throws TEMPORARY_KEY_FAILED when the keys of the request are not
 * valid, when the signing keys were altered in the database, and when the activation was removed. Throws TOO_MANY_REQUESTS when the activation has
 * asked for too many keys.
 */
export async function issueTemporaryKey<Keys extends ActivationKeys>(
  parts: DeviceParts,
  protocol: Protocol<Keys>,
  client: Client,
  asked: TemporaryKeyRequest<Keys>,
  { version, activation }: { readonly version: VersionRow; readonly activation: ReadActivationRow | undefined },
): Promise<Static<typeof KeystoreResponse>['responseObject']> {
  const { platform, recordKeys, settings } = parts
  if (asked.activationId !== undefined) takeKey(parts, client, asked)
  const isOfActivation = asked.activationId !== undefined && activation !== undefined
  const signingKeys = isOfActivation
    ? serverKeysOf(recordKeys, protocol, activation)
    : await masterKeysOf(parts, version.applicationId, asked.algorithm)
  if (signingKeys === undefined) throw refuseTemporaryKey(parts, 'the key that signs does not open')
  const temporaryKeyId = platform.uuid()
  const { issued, expiresAt } = await parts.temporaryKeyTurns.run(
    async () => {
      const issuedAt = platform.now()
      const expiresAt = issuedAt + settings.temporaryKeyValiditySeconds * 1000
      const terms = { temporaryKeyId, issuedAt, expiresAt, salt: platform.randomBytes(32) }
      return { issued: await asked.issue(terms, signingKeys), expiresAt }
    },
    { key: askerOf(client, asked) },
  )
  if (issued === undefined) throw refuseTemporaryKey(parts, 'the keys of the request are not valid')
  const isStored = await insertTemporaryKey(parts.db, {
    temporaryKeyId,
    applicationKey: asked.applicationKey,
    activationId: asked.activationId ?? null,
    privateKey: recordKeys.seal(places.temporaryPrivateKey(temporaryKeyId), issued.envelopeKey),
    expiresAt: new Date(expiresAt),
  })
  if (!isStored) throw refuseTemporaryKey(parts, 'the activation was deleted meanwhile')
  return { jwt: issued.jwt }
}

/** Logs the reason, and returns the error TEMPORARY_KEY_FAILED. */
export function refuseTemporaryKey({ events }: DeviceParts, reason: string): PawlError {
  events.temporaryKeyRefused({ reason })
  return new PawlError('TEMPORARY_KEY_FAILED', { detail: reason })
}
